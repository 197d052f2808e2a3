// Settings of the processes of a container that only some front ends can pass on to the runtime. Plain values, with the
// kernel's numbers.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/index_set.hpp"

namespace topolet::placement {

/// The modes of set_mempolicy(2).
enum class MemoryMode : std::uint8_t {
  kPreferred = 1,
  kBind = 2,
  kInterleave = 3,
  kLocal = 4,
  kPreferredMany = 5,       ///< Linux 5.15
  kWeightedInterleave = 6,  ///< Linux 6.9
};
inline constexpr std::array kMemoryModes{MemoryMode::kPreferred,     MemoryMode::kBind,
                                         MemoryMode::kInterleave,    MemoryMode::kLocal,
                                         MemoryMode::kPreferredMany, MemoryMode::kWeightedInterleave};
std::string_view to_string(MemoryMode mode);  // "preferred", "bind", "weighted-interleave"…

/// The nodes from which the kernel takes the memory of a container.
struct MemoryPolicy {
  MemoryMode mode = MemoryMode::kLocal;
  NodeSet nodes = {};           ///< by os_index, or with `relative_nodes` by position; none with kLocal
  bool static_nodes = false;    ///< they stay the same when the container may use other nodes
  bool relative_nodes = false;  ///< positions among the nodes that the container may use
  bool numa_balancing = false;  ///< the kernel may move pages towards CPUs that use them

  friend bool operator==(const MemoryPolicy&, const MemoryPolicy&) = default;
};
std::string describe(const MemoryPolicy& policy);  // "interleave 0-1 static-nodes"

/// The policies of sched(7) that are not for real time.
enum class SchedulerClass : std::uint8_t { kOther = 0, kBatch = 3, kIdle = 5 };
inline constexpr std::array kSchedulerClasses{SchedulerClass::kOther, SchedulerClass::kBatch, SchedulerClass::kIdle};
std::string_view to_string(SchedulerClass scheduler_class);  // "other", "batch", "idle"

struct Scheduler {
  SchedulerClass scheduler_class = SchedulerClass::kOther;
  std::int32_t nice = 0;  ///< -20 to 19; 0 with kIdle

  friend bool operator==(const Scheduler&, const Scheduler&) = default;
};
std::string describe(const Scheduler& scheduler);  // "batch, nice 5"

/// The classes of ioprio_set(2).
enum class IoClass : std::uint8_t { kRealtime = 1, kBestEffort = 2, kIdle = 3 };
inline constexpr std::array kIoClasses{IoClass::kRealtime, IoClass::kBestEffort, IoClass::kIdle};
std::string_view to_string(IoClass io_class);  // "realtime", "best-effort", "idle"

struct IoPriority {
  IoClass io_class = IoClass::kBestEffort;
  std::int32_t priority = 0;  ///< 0, the first to be served, to 7; 0 with kIdle

  friend bool operator==(const IoPriority&, const IoPriority&) = default;
};
std::string describe(const IoPriority& priority);  // "best-effort 4"

/// What of these can be set for a container that is created, through a front end and the runtime behind it.
struct Settable {
  std::uint32_t memory_modes = 0;  ///< a bit `1 << mode` for each MemoryMode
  bool scheduler = false;
  bool io_priority = false;
  std::string through = {};  ///< for people: "CRI", or "NRI 0.12 of containerd v2.4.2"

  bool can_set(MemoryMode mode) const { return (memory_modes >> static_cast<unsigned>(mode) & 1U) != 0; }

  friend bool operator==(const Settable&, const Settable&) = default;
};
/// The bits of all modes.
std::uint32_t all_memory_modes();
/// Everything, as of the newest runtime on the newest kernel.
Settable all_settable(std::string through);

}  // namespace topolet::placement
