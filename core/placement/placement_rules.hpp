// The operator's rules for placements.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace topolet::placement {

/// Who gets CPUs of its own: Guaranteed containers of whole CPUs and those whose annotation says so, the latter only,
/// nobody.
enum class ExclusiveRule : std::uint8_t { kGuaranteedInteger, kAnnotated, kNever };
enum class WhenFull : std::uint8_t { kDeny, kShare };
/// Whose exclusive CPUs are among those that the kernel isolates: of containers whose annotation says so; of all if
/// there are enough, else they are from the pool; of all, and no others.
enum class IsolatedRule : std::uint8_t { kAnnotated, kPrefer, kAlways };

/// As the option has it.
constexpr std::string_view to_string(IsolatedRule rule) {
  if (rule == IsolatedRule::kPrefer) return "prefer";
  return rule == IsolatedRule::kAlways ? "always" : "annotated";
}

struct PlacementRules {
  ExclusiveRule exclusive = ExclusiveRule::kGuaranteedInteger;
  WhenFull when_full = WhenFull::kDeny;
  IsolatedRule isolated = IsolatedRule::kAnnotated;
  std::uint32_t min_shared_cpus = 1;
  std::vector<std::string> reserved_namespaces = {"kube-system"};
  /// Patterns of the namespaces whose pods may take more than they request, in which * is any text; the reserved ones
  /// always may.
  std::vector<std::string> exclusive_namespaces;
  /// The topolet.io annotations that count, without that prefix; absent = all.
  std::optional<std::vector<std::string>> annotations;
  std::string node_name;  ///< of this node in Kubernetes, which zones are written for
  /// How long the CPUs of a container that failed are kept for its next attempt; 0 = not at all.
  std::chrono::milliseconds crash_hold = std::chrono::minutes(5);
  /// The memory nodes of a running container may be changed at will, not only added to.
  bool memory_migrate = false;
  /// Containers with CPUs of their own have no CFS quota.
  bool drop_exclusive_quota = false;
};

}  // namespace topolet::placement
