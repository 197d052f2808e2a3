// The operator's rules for placements.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace topolet::placement {

/// The containers that get CPUs of their own: Guaranteed ones of whole CPUs and those whose annotation says so, only
/// the latter, or none.
enum class ExclusiveRule : std::uint8_t { kGuaranteedInteger, kAnnotated, kNever };
enum class WhenFull : std::uint8_t { kDeny, kShare };
/// The containers whose exclusive CPUs are among those that the kernel isolates: those whose annotation says so; all if
/// there are enough, else they are from the pool; all, and only from these.
enum class IsolatedRule : std::uint8_t { kAnnotated, kPrefer, kAlways };

/// The containers that topolet may move while they run, to give them or others a better place, unless their pod says
/// otherwise: none, those that share CPUs, or also those with CPUs of their own.
enum class HealRule : std::uint8_t { kOff, kShared, kAll };
/// How far containers are moved to make room for one that is created or resized: not at all, within their NUMA nodes,
/// or to any.
enum class MakeRoomRule : std::uint8_t { kOff, kNode, kAll };

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
  /// The time for which the CPUs of a failed container are kept for its next attempt; 0 = not at all.
  std::chrono::milliseconds crash_hold = std::chrono::minutes(5);
  /// The memory nodes of a running container may be changed at will, not only added to.
  bool memory_migrate = false;
  HealRule heal = HealRule::kShared;
  MakeRoomRule make_room = MakeRoomRule::kAll;
  /// A container for which so much memory or more is booked is not moved to other NUMA nodes, unless memory_migrate.
  std::uint64_t move_memory_bytes = std::uint64_t{256} << 20;
  /// Containers with CPUs of their own have no CFS quota.
  bool drop_exclusive_quota = false;
};

}  // namespace topolet::placement
