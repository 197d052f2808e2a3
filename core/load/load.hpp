// Measured load: how much containers use, and how much the CPUs of NUMA nodes can do. Plain values.
//
// The room core/load, namespace topolet::load: what is measured, for whoever decides by it (this file), and who
// measures it (sampler_thread.hpp). It sees core/base only.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace topolet::load {

/// What one container uses.
struct ContainerLoad {
  std::int64_t cpu_milli = 0;  ///< CPU time, in thousandths of a CPU
  /// The share of time in which a task of it could have run and had no CPU (PSI, `some`); none where it is not known.
  std::optional<std::uint32_t> psi_some_permille = {};
  std::chrono::milliseconds age{};  ///< since it was measured
  /// Its own CFS quota has held it back meanwhile: the kernel counts that as waiting for a CPU, too.
  bool is_throttled = false;
  std::optional<std::int64_t> memory_bytes = {};  ///< that its cgroup is charged for; none where it is not known
  /// The share of time in which a task of it waited for memory, or for a disk (PSI, `some`); as above.
  std::optional<std::uint32_t> memory_psi_permille = {};
  std::optional<std::uint32_t> io_psi_permille = {};
  /// How often in a minute memory.high held it back; none where it is not known, as with cgroup v1. For people: nobody
  /// decides by it, and it is not recorded.
  std::optional<std::uint32_t> memory_high_per_minute = {};

  friend bool operator==(const ContainerLoad&, const ContainerLoad&) = default;
};

/// What the CPUs of one NUMA node can do, less than they are where a hypervisor takes time from them.
struct NodeLoad {
  /// Thousandths of a CPU, of all its CPUs together; none where the hypervisor does not tell.
  std::optional<std::int64_t> effective_milli = {};
  std::chrono::milliseconds age{};  ///< since it was measured
  /// How much of its CPUs is used, by whomever; none where it is not known.
  std::optional<std::int64_t> used_milli = {};

  friend bool operator==(const NodeLoad&, const NodeLoad&) = default;
};

/// The same of one CPU.
struct CpuLoad {
  std::optional<std::int64_t> effective_milli = {};
  std::chrono::milliseconds age{};
  std::optional<std::int64_t> used_milli = {};

  friend bool operator==(const CpuLoad&, const CpuLoad&) = default;
};

/// For so long there must have been measurements before somebody decides by them.
constexpr std::chrono::seconds kSettled{60};

/// Nobody needs to know that it is longer.
constexpr std::chrono::minutes kLongestTold{5};

/// All that is measured. What is not in it is unknown, which is not the same as zero.
struct Load {
  std::map<std::string, ContainerLoad> containers;  ///< by the runtime's id
  std::map<std::uint32_t, NodeLoad> nodes;          ///< by OS index
  /// For how long samples have been taken without a break, kLongestTold at most; none where that is not known.
  std::optional<std::chrono::milliseconds> measured_for = {};
  std::map<std::uint32_t, CpuLoad> cpus = {};  ///< by OS index

  bool empty() const { return containers.empty() && nodes.empty() && cpus.empty(); }
  /// Somebody may decide by it.
  bool is_settled() const { return !measured_for || *measured_for >= kSettled; }

  friend bool operator==(const Load&, const Load&) = default;
};

/// Values that were measured longer ago say nothing about the load.
constexpr std::chrono::seconds kLongestAge{5};

/// Returns the load of the container with this id; nothing if it is not known, or no more.
std::optional<ContainerLoad> recent_load_of(const Load& load, const std::string& container_id);

/// Returns the capacity of a node; nothing if it is not known, or no more.
std::optional<NodeLoad> recent_load_of(const Load& load, std::uint32_t node);

/// Returns what is measured at that moment. Null: nothing is. Any thread.
using Source = std::function<std::shared_ptr<const Load>()>;

}  // namespace topolet::load
