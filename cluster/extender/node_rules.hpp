// The rules of a node's topoletd: which containers of a pod get CPUs of their own, and from which CPUs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace topolet::extender {

/// The rules that a node's object publishes; absent are those that it does not, such as that of an older agent.
struct NodeRules {
  enum class Isolated : std::uint8_t {
    kUntold,     ///< CPUs are all alike
    kAnnotated,  ///< those that the kernel isolates are for containers whose annotation says so
    kPrefer,     ///< they are for all, and if they are short, the others are
    kAlways,     ///< all get them, and no others
  };
  Isolated isolated = Isolated::kUntold;
  std::optional<std::vector<std::string>> reserved_namespaces = {};   ///< untold: kube-system
  std::optional<std::vector<std::string>> exclusive_namespaces = {};  ///< patterns; untold: as the extender is told

  bool reserves(std::string_view name_space) const;

  friend bool operator==(const NodeRules&, const NodeRules&) = default;
};

/// The source of a container's CPUs.
enum class CpuSource : std::uint8_t {
  kPool,
  kPreferIsolated,  ///< isolated CPUs if there is room, else the pool's
  kIsolated,
};

}  // namespace topolet::extender
