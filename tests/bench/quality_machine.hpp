// A machine that need not exist, on which topolet's own engine and plugins place pods.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/simulate/simulation.hpp"
#include "tests/bench/churn.hpp"
#include "tests/moves/move_judge.hpp"

namespace topolet::bench {

struct MachineOptions {
  std::string topology;  ///< a file that `lstopo FILE.xml` wrote, or a description in hwloc's synthetic format
  std::string plugin_dir;
  std::vector<std::string> plugins;   ///< enabled ones
  std::vector<std::string> settings;  ///< SECTION.KEY=VALUE
  std::uint32_t gpus_per_node = 0;
  bool shared_may_burst = false;  ///< pods that share CPUs have no limit: they are Burstable
};

/// What is wrong with the configuration; empty if nothing is. An option that this build of topolet does not know is.
std::vector<std::string> mistakes_of(const MachineOptions& options);

/// Returns true if this build of topolet can be told what containers use.
bool takes_load();

/// Where a pod of the churn is.
struct Placed {
  bool is_denied = false;
  bool has_lost_votes = false;
  CpuSet cpus;          ///< of its first container
  CpuSet beside = {};   ///< of the second, if it has one
  CpuSet runs_on = {};  ///< of the first: `cpus`, and those that it may run on beside its home
};

/// Throws std::runtime_error, with all mistakes of the configuration, for a machine that cannot be had.
class QualityMachine {
 public:
  explicit QualityMachine(const MachineOptions& options);

  const std::shared_ptr<const topology::Topology>& topology() const { return topology_; }
  /// CPUs that pods may have.
  const CpuSet& cpus() const { return cpus_; }
  /// CPUs that no pod has for itself, nor keeps from others.
  const CpuSet& free() const { return free_; }
  std::uint32_t gpus() const { return static_cast<std::uint32_t>(gpu_nodes_.size()); }
  /// OS index of the NUMA node.
  std::uint32_t node_of_gpu(std::uint32_t gpu) const { return gpu_nodes_[gpu]; }
  const CpuSet& cpus_beside_gpu(std::uint32_t gpu) const;
  /// Pods that run, by place in the churn.
  const std::map<std::size_t, Placed>& pods() const { return pods_; }

  Placed admit(std::size_t pod, const Arrival& arrival);
  /// One that was denied may end, too.
  void end(std::size_t pod);
  /// Lets time pass, in which containers may be moved.
  void pass(std::chrono::seconds time);
  /// Says how much of its CPUs the first container of a pod uses, and how much of the time, in thousandths, it waits
  /// for them.
  void tell_load(std::size_t pod, std::int64_t milli, std::int64_t pressure_permille);

  /// Sees every operation with its outcome.
  const moves::MoveJudge& judge() const { return *judge_; }

 private:
  void add_gpus(std::uint32_t per_node);
  simulate::OperationResult apply(const simulate::Operation& operation);
  void create(const simulate::Operation& create, Placed& pod);
  void read_ledger();

  const bool shared_may_burst_;
  std::unique_ptr<simulate::Simulation> simulation_;
  std::unique_ptr<moves::MoveJudge> judge_;
  std::shared_ptr<const topology::Topology> topology_;
  CpuSet cpus_;
  CpuSet free_;
  std::vector<std::uint32_t> gpu_nodes_;
  std::map<std::size_t, Placed> pods_;
};

/// A pod of the churn and what was free when it came.
struct Admission {
  std::size_t pod = 0;
  const Arrival& arrival;
  const CpuSet& free_before;
  const Placed& placed;
};

/// Lets the pods of `churn` come and go. `look` is called after each admission.
void play(const Churn& churn, QualityMachine& machine, const std::function<void(const Admission&)>& look);

/// The same, and half of `interval` passes between what ends and what comes, and half of it afterwards. `rest` is
/// called after each half, with the pod that came or is to come.
void play(const Churn& churn, QualityMachine& machine, std::chrono::seconds interval,
          const std::function<void(const Admission&)>& look, const std::function<void(std::size_t)>& rest);

}  // namespace topolet::bench
