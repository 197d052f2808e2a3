// The settings in AdjustReply that only some front ends can pass on to the runtime.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/placement/linux_settings.hpp"
#include "core/plugin/call/sink_replies.hpp"

namespace topolet::plugin {

using placement::IoClass;
using placement::MemoryMode;
using placement::MemoryPolicy;
using placement::SchedulerClass;

static_assert(static_cast<int>(MemoryMode::kPreferred) == TOPOLET_MEMORY_PREFERRED);
static_assert(static_cast<int>(MemoryMode::kBind) == TOPOLET_MEMORY_BIND);
static_assert(static_cast<int>(MemoryMode::kInterleave) == TOPOLET_MEMORY_INTERLEAVE);
static_assert(static_cast<int>(MemoryMode::kLocal) == TOPOLET_MEMORY_LOCAL);
static_assert(static_cast<int>(MemoryMode::kPreferredMany) == TOPOLET_MEMORY_PREFERRED_MANY);
static_assert(static_cast<int>(MemoryMode::kWeightedInterleave) == TOPOLET_MEMORY_WEIGHTED_INTERLEAVE);
static_assert(static_cast<int>(SchedulerClass::kOther) == TOPOLET_SCHEDULER_OTHER);
static_assert(static_cast<int>(SchedulerClass::kBatch) == TOPOLET_SCHEDULER_BATCH);
static_assert(static_cast<int>(SchedulerClass::kIdle) == TOPOLET_SCHEDULER_IDLE);
static_assert(static_cast<int>(IoClass::kRealtime) == TOPOLET_IO_REALTIME);
static_assert(static_cast<int>(IoClass::kBestEffort) == TOPOLET_IO_BEST_EFFORT);
static_assert(static_cast<int>(IoClass::kIdle) == TOPOLET_IO_IDLE);

namespace {

constexpr std::uint32_t kKnownMemoryFlags =
    TOPOLET_MEMORY_STATIC_NODES | TOPOLET_MEMORY_RELATIVE_NODES | TOPOLET_MEMORY_NUMA_BALANCING;

/// The enumerator with this number; none where this host knows none.
template <class All>
auto known(const All& all, std::int32_t number) -> std::optional<typename All::value_type> {
  const auto found =
      std::find_if(all.begin(), all.end(), [number](auto one) { return static_cast<std::int32_t>(one) == number; });
  return found == all.end() ? std::nullopt : std::optional(*found);
}

/// Why the kernel would refuse the policy; empty if it would not.
std::string contradiction_in(const MemoryPolicy& policy) {
  const auto with = [&policy](const char* what) { return fmt::format("{} {}", to_string(policy.mode), what); };
  const bool is_local = policy.mode == MemoryMode::kLocal;
  if (is_local && !policy.nodes.empty()) return with("names nodes");
  if (!is_local && policy.nodes.empty()) return with("names no node");
  if (policy.mode == MemoryMode::kPreferred && policy.nodes.size() > 1) return with("names more than one node");
  if (policy.static_nodes && policy.relative_nodes) return with("has nodes that are both static and relative");
  if (is_local && (policy.static_nodes || policy.relative_nodes)) return with("has static or relative nodes");
  const bool may_balance = policy.mode == MemoryMode::kBind || policy.mode == MemoryMode::kPreferredMany;
  return policy.numa_balancing && !may_balance ? with("has numa-balancing") : std::string();
}

NodeSet nodes_of(const topology::Topology& topology) {
  NodeSet nodes;
  for (const topology::Node& node : topology.nodes) nodes.insert(node.os_index);
  return nodes;
}

}  // namespace

/// Nothing counts as a mistake.
std::int32_t AdjustReply::leave_unset(std::string setting) {
  unusable_settings.push_back(std::move(setting));
  return TOPOLET_UNSUPPORTED;
}

std::int32_t AdjustReply::set_memory_policy(std::int32_t mode, topolet_set nodes, std::uint32_t flags) {
  constexpr const char* kNoun = "memory_policy";
  if (call_abandoned) return TOPOLET_LATE;
  const auto memory_mode = known(placement::kMemoryModes, mode);
  if (!memory_mode || (flags & ~kKnownMemoryFlags) != 0) return TOPOLET_UNSUPPORTED;
  std::optional<MemoryPolicy>& set = adjustment.added.memory_policy;
  if (const std::int32_t status = check_set(nodes, kNoun, set.has_value()); status != TOPOLET_OK) return status;
  const MemoryPolicy policy{*memory_mode, NodeSet::from_words({nodes.words, nodes.words + nodes.count}),
                            (flags & TOPOLET_MEMORY_STATIC_NODES) != 0, (flags & TOPOLET_MEMORY_RELATIVE_NODES) != 0,
                            (flags & TOPOLET_MEMORY_NUMA_BALANCING) != 0};
  if (const std::string why = contradiction_in(policy); !why.empty())
    return record_fault(TOPOLET_INVALID, fmt::format("{} {}", kNoun, why));
  if (const NodeSet missing = policy.nodes - nodes_of(*request.topology); !missing.empty() && !policy.relative_nodes) {
    return record_fault(TOPOLET_OUT_OF_RANGE,
                        fmt::format("{} names nodes {}, which the machine does not have", kNoun, missing.to_string()));
  }
  if (!request.settable.can_set(*memory_mode))
    return leave_unset(fmt::format("memory policy '{}'", to_string(*memory_mode)));
  set = policy;
  return TOPOLET_OK;
}

std::int32_t AdjustReply::set_scheduler(std::int32_t scheduler_class, std::int32_t nice) {
  if (call_abandoned) return TOPOLET_LATE;
  const auto known_class = known(placement::kSchedulerClasses, scheduler_class);
  if (!known_class) return TOPOLET_UNSUPPORTED;
  const bool is_idle = *known_class == SchedulerClass::kIdle;
  if (nice < TOPOLET_NICE_MIN || nice > TOPOLET_NICE_MAX || (is_idle && nice != 0)) {
    return record_fault(TOPOLET_OUT_OF_RANGE,
                        fmt::format("scheduler has nice {}; {} to {} are allowed, and 0 with idle", nice,
                                    TOPOLET_NICE_MIN, TOPOLET_NICE_MAX));
  }
  std::optional<placement::Scheduler>& set = adjustment.added.scheduler;
  if (set) return record_fault(TOPOLET_DUPLICATE, "scheduler is set twice");
  if (!request.settable.scheduler) return leave_unset("a scheduler class");
  set = {*known_class, nice};
  return TOPOLET_OK;
}

std::int32_t AdjustReply::set_io_priority(std::int32_t io_class, std::int32_t priority) {
  if (call_abandoned) return TOPOLET_LATE;
  const auto known_class = known(placement::kIoClasses, io_class);
  if (!known_class) return TOPOLET_UNSUPPORTED;
  const bool is_idle = *known_class == IoClass::kIdle;
  if (priority < 0 || priority > TOPOLET_IO_PRIORITY_MAX || (is_idle && priority != 0)) {
    return record_fault(TOPOLET_OUT_OF_RANGE,
                        fmt::format("io_priority has priority {}; 0 to {} are allowed, and 0 with idle", priority,
                                    TOPOLET_IO_PRIORITY_MAX));
  }
  std::optional<placement::IoPriority>& set = adjustment.added.io_priority;
  if (set) return record_fault(TOPOLET_DUPLICATE, "io_priority is set twice");
  if (!request.settable.io_priority) return leave_unset("an I/O priority");
  set = {*known_class, priority};
  return TOPOLET_OK;
}

}  // namespace topolet::plugin
