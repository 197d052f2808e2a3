// The plugin's options as the policy uses them.
#pragma once

#include <topolet/policy.hpp>

#include <cstdint>
#include <string_view>

namespace topolet::smt {

/// The annotations that are read, without topolet.io/.
inline constexpr std::string_view kSmtAnnotation = "smt";
inline constexpr std::string_view kIsolate = "isolate";  ///< its value that keeps threads idle
inline constexpr std::string_view kCpuProfileAnnotation = "cpu-profile";

/// Whose sibling threads nobody else may use.
enum class IsolateSiblings : std::uint8_t {
  kOff,
  kAnnotated,  ///< those of containers with the annotation topolet.io/smt = isolate
  kExclusive   ///< those of all containers with exclusive CPUs, unless annotated topolet.io/smt = share
};

struct PolicyOptions {
  IsolateSiblings isolate_siblings = IsolateSiblings::kAnnotated;
  bool pair = false;
  /// True if, where CPUs are handed out as whole cores, those of the last core beyond the request stay idle. If false,
  /// the numa plugin has denied such a request.
  bool rounds_up = true;
};

PolicyOptions read_options(const sdk::Options& options);

}  // namespace topolet::smt
