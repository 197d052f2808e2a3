#include "core/placement/linux_settings.hpp"

#include <fmt/format.h>

#include <utility>

namespace topolet::placement {

std::string_view to_string(MemoryMode mode) {
  switch (mode) {
    case MemoryMode::kPreferred:
      return "preferred";
    case MemoryMode::kBind:
      return "bind";
    case MemoryMode::kInterleave:
      return "interleave";
    case MemoryMode::kLocal:
      return "local";
    case MemoryMode::kPreferredMany:
      return "preferred-many";
    case MemoryMode::kWeightedInterleave:
      return "weighted-interleave";
  }
  return "unknown";
}

std::string describe(const MemoryPolicy& policy) {
  return fmt::format("{}{}{}{}{}{}", to_string(policy.mode), policy.nodes.empty() ? "" : " ", policy.nodes.to_string(),
                     policy.static_nodes ? " static-nodes" : "", policy.relative_nodes ? " relative-nodes" : "",
                     policy.numa_balancing ? " numa-balancing" : "");
}

std::string_view to_string(SchedulerClass scheduler_class) {
  switch (scheduler_class) {
    case SchedulerClass::kOther:
      return "other";
    case SchedulerClass::kBatch:
      return "batch";
    case SchedulerClass::kIdle:
      return "idle";
  }
  return "unknown";
}

std::string describe(const Scheduler& scheduler) {
  if (scheduler.scheduler_class == SchedulerClass::kIdle) return "idle";
  return fmt::format("{}, nice {}", to_string(scheduler.scheduler_class), scheduler.nice);
}

std::string_view to_string(IoClass io_class) {
  switch (io_class) {
    case IoClass::kRealtime:
      return "realtime";
    case IoClass::kBestEffort:
      return "best-effort";
    case IoClass::kIdle:
      return "idle";
  }
  return "unknown";
}

std::string describe(const IoPriority& priority) {
  if (priority.io_class == IoClass::kIdle) return "idle";
  return fmt::format("{} {}", to_string(priority.io_class), priority.priority);
}

std::uint32_t all_memory_modes() {
  std::uint32_t modes = 0;
  for (const MemoryMode mode : kMemoryModes) modes |= 1U << static_cast<unsigned>(mode);
  return modes;
}

Settable all_settable(std::string through) { return {all_memory_modes(), true, true, std::move(through)}; }

}  // namespace topolet::placement
