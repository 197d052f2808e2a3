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

/// By what containers are heavy or light.
enum class Pair : std::uint8_t {
  kOff,
  kAnnotated,  ///< by the annotation topolet.io/cpu-profile
  kMeasured    ///< by that, or else by what containers of the same kind were measured to use
};

struct PolicyOptions {
  IsolateSiblings isolate_siblings = IsolateSiblings::kAnnotated;
  Pair pair = Pair::kOff;
  /// True if, where CPUs are handed out as whole cores, those of the last core beyond the request stay idle. If false,
  /// the numa plugin has denied such a request.
  bool rounds_up = true;
};

PolicyOptions read_options(const sdk::Options& options);

}  // namespace topolet::smt
