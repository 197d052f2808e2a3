// Measures the load of the machine and of its containers.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.hpp"
#include "core/base/index_set.hpp"
#include "core/base/unique_fd.hpp"
#include "core/load/cgroup_files.hpp"
#include "core/load/counter_window.hpp"
#include "core/load/cpu_times.hpp"
#include "core/load/load.hpp"
#include "core/load/stolen_share.hpp"

namespace topolet::load {

/// A container to be measured.
struct RunningContainer {
  std::string id;            ///< the runtime's
  std::int64_t process = 0;  ///< one that belongs to it

  friend bool operator==(const RunningContainer&, const RunningContainer&) = default;
};

/// What is to be measured.
struct Subjects {
  std::vector<RunningContainer> containers;
  std::map<std::uint32_t, CpuSet> nodes;  ///< the CPUs of each NUMA node, by OS index
};

/// What is known after one round of measurements.
struct Sample {
  Load load;  ///< with ages as of `taken_at`
  std::chrono::steady_clock::time_point taken_at;
  std::chrono::milliseconds measured_for{};  ///< since the first round
  bool tells_steal = false;                  ///< a hypervisor has reported steal since this machine was booted
  bool has_hypervisor = true;                ///< there may be one: only x86 tells that there is none
  std::string error;                         ///< why CPUs cannot be measured; empty if they can
};

/// Reads the kernel's files, each time that it is asked. Values are means over the last five seconds, rounded to 1 % of
/// a CPU and of the time, and 1 MiB. What has happened while the machine was suspended, or nobody read for seconds, is
/// not counted. Not synchronised.
class Sampler {
 public:
  struct Deps {
    std::filesystem::path proc = "/proc";
    /// Returns the cgroup of a container; nothing if it cannot be told (yet).
    std::function<std::optional<CgroupDirectories>(const RunningContainer&)> find_cgroup;
    Clock clock = {};
  };
  explicit Sampler(Deps deps);

  /// To be called once a second. What is not among the subjects any more is forgotten.
  Sample sample(const Subjects& subjects);

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Cpu {
    CpuTimes last;
    CounterWindow busy;
    StolenShare stolen;
  };
  struct Container {
    std::optional<CgroupFiles> files;
    Time look_again_at;  ///< for its cgroup, while that is not known
    Time read_memory_at;
    CounterWindow usage;
    CounterWindow throttled;
    CounterWindow cpu_pressure;
    CounterWindow memory_pressure;
    CounterWindow io_pressure;
    CounterWindow memory_high;
    ContainerLoad load;
    std::optional<Time> measured_at;  ///< its CPU time; none: not yet
  };

  void drop_interval_unless_steady(Time now);
  std::string read_cpus(Time now);
  void add_cpu(std::uint32_t os_index, const CpuTimes& times, Time now);
  void read_containers(const std::vector<RunningContainer>& running, Time now);
  void read_container(const RunningContainer& running, Container& container, Time now);
  void read_memory(Container& container, Time now);
  Load load_of(const std::map<std::uint32_t, CpuSet>& nodes, Time now) const;
  CpuLoad load_of_cpu(const Cpu& cpu) const;
  bool knows_steal() const { return tells_steal_ || !has_hypervisor_; }
  NodeLoad load_of_node(const CpuSet& cpus, const std::map<std::uint32_t, CpuLoad>& loads) const;

  const Deps deps_;
  UniqueFd stat_;
  std::string stat_text_;
  std::optional<Time> first_;
  std::optional<Time> last_;
  std::chrono::milliseconds last_wall_{};
  bool tells_steal_ = false;
  const bool has_hypervisor_;
  std::map<std::uint32_t, Cpu> cpus_;
  std::map<std::string, Container> containers_;
};

}  // namespace topolet::load
