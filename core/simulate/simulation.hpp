// The daemon's own engine and policies on a machine that need not exist, with a made-up runtime and a made-up kubelet.
//
// The room core/simulate, namespace topolet::simulate: runs the operations of a workload file; README.md beside this
// file describes them. It decides nothing itself. Start at Simulation. It may include every room of the core except
// daemon, control and cli.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/result.hpp"
#include "core/engine/engine.hpp"
#include "core/engine/state/allocation.hpp"
#include "core/load/load.hpp"
#include "core/placement/verdicts.hpp"
#include "core/plugin/host/loaded_config.hpp"
#include "core/simulate/kubelet.hpp"
#include "core/simulate/operation.hpp"
#include "core/simulate/plugin_activity.hpp"
#include "core/simulate/simulated_daemon.hpp"
#include "core/simulate/simulated_runtime.hpp"
#include "core/topology/discover.hpp"

namespace topolet::simulate {

/// A container that an operation moved without being about it.
struct MovedContainer {
  std::string pod;
  std::string container;
  std::string mode;
  CpuSet cpus;
  CpuSet withheld;
  NodeSet mems;
  std::string reason;       ///< empty where it follows the shared pool
  std::string reason_code;  ///< of the decision, as in placement::Decision; may be empty
};

/// The outcome of one operation. `outcome`: placed, unpinned, denied, released, ok, error.
struct OperationResult {
  std::string outcome = "ok";
  std::string mode;  ///< empty if there is no container, or it holds nothing
  CpuSet cpus;
  CpuSet withheld;
  NodeSet mems;
  std::string reason;
  std::string reason_code;       ///< as in placement::Decision, of a decision
  bool is_invalid_line = false;  ///< an error because the line makes no sense, rather than one of the runtime's
  std::vector<MovedContainer> changed;
  std::optional<placement::Verdicts> verdicts;  ///< of a decision
  std::vector<std::string> lost_votes;          ///< "plugin: why", in any of the decisions that it led to
  PluginActivity plugins;                       ///< of the first operation with that of the start
};

/// Has the result say that the line makes no sense.
void set_error(OperationResult& result, std::string reason);

/// The daemon's record of one container.
struct ContainerSnapshot {
  placement::ContainerKey key;
  std::string phase;  ///< in flight, in doubt, bound, started, crashed or kept: its CPUs wait for its next attempt
  std::string mode;
  CpuSet cpus;
  CpuSet withheld;
  NodeSet mems;
  CpuSet seen_on;  ///< as in engine::Allocation
};

/// The machine and the allocations at one moment.
struct Snapshot {
  std::shared_ptr<const topology::Topology> topology;
  engine::CpuInventory rules;
  CpuSet offline;
  placement::LedgerSnapshot ledger;
  std::vector<ContainerSnapshot> containers;  ///< failed ones too
};

/// One thread. The same operations have the same outcomes, as long as no plugin takes longer than it may.
class Simulation {
 public:
  /// `setup` without mistakes. INVALID_ARGUMENT for a machine that cannot be read, an error of a plugin's create(), or
  /// of a configuration that leaves no CPU of this machine.
  static Result<std::unique_ptr<Simulation>> make(topology::DiscoverOptions machine, plugin::LoadedConfig setup,
                                                  const SimulationOptions& options = {});
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  OperationResult apply(const Operation& operation);
  /// Returns the ledger's generation.
  std::uint64_t generation();
  Snapshot snapshot();
  /// Returns the lost votes of each plugin that has some so far.
  std::map<std::string, plugin::LostVotes> lost_votes() const { return daemon_.lost_votes(); }
  /// True while a call that came late has not returned: such a process must end by _exit.
  bool has_abandoned_calls() const { return daemon_.has_abandoned_calls(); }
  /// The simulated time, since 1970.
  std::chrono::milliseconds now() const { return daemon_.now(); }
  SimulatedRuntime& runtime() { return runtime_; }

 private:
  using ContainerName = std::pair<std::string, std::string>;  ///< pod uid, name
  struct HeldCpus {
    std::string mode;
    bool is_exclusive = false;  ///< by its placement, whatever was seen
    CpuSet cpus;
    CpuSet withheld;
    NodeSet mems;
    engine::Squeeze squeeze = engine::Squeeze::kNone;

    friend bool operator==(const HeldCpus&, const HeldCpus&) = default;
  };
  using HeldCpusByContainer = std::map<placement::ContainerKey, HeldCpus>;

  Simulation(topology::DiscoverOptions machine, plugin::LoadedConfig setup);
  Status start(const SimulationOptions& options);
  Result<engine::Engine::Machine> make_machine_now() const;

  void dispatch(const Operation& operation, OperationResult& result);
  void occupy(const Operation& operation, OperationResult& result);
  void change_online(const Operation& operation, OperationResult& result);
  void add_device(const Operation& operation, OperationResult& result);
  void apply_machine(OperationResult& result);
  void run_pod(const Operation& operation, OperationResult& result);
  void create(const Operation& operation, OperationResult& result);
  void end_init_containers(const Operation& create);
  void update(const Operation& operation, OperationResult& result);
  void exit(const Operation& operation, OperationResult& result);
  void stop(const Operation& operation, OperationResult& result);
  void remove_pod(const Operation& operation, OperationResult& result);
  void set_next_answer(const Operation& operation);
  bool take_offline(const CpuSet& cpus, OperationResult& result);
  bool bring_online(const CpuSet& cpus, OperationResult& result);
  void restart(const Operation& operation, OperationResult& result);
  void set_capacity(const Operation& operation, OperationResult& result);
  void heal(const Operation& operation, OperationResult& result);
  void release(const Operation& operation, OperationResult& result);
  void start(const Operation& operation, OperationResult& result);
  void set_sandbox(const Operation& operation, OperationResult& result);
  void set_cpuset(const Operation& operation, OperationResult& result);
  void set_stuck(const Operation& operation, OperationResult& result);
  void set_load(const Operation& operation, OperationResult& result);
  void set_container_load(const Operation& operation, OperationResult& result);
  std::shared_ptr<const load::Load> measure() const;

  HeldCpusByContainer held_cpus();
  std::optional<engine::Allocation> allocation_of(const Operation& operation);
  std::optional<std::string> container_id(const Operation& operation, OperationResult& result);
  void fill_placement(const Operation& operation, OperationResult& result);

  topology::DiscoverOptions machine_options_;
  const plugin::LoadedConfig setup_;
  CpuSet offline_;
  CpuSet occupied_;
  std::vector<Operation> devices_;
  std::uint64_t topology_generation_ = 1;
  std::shared_ptr<const topology::Topology> topology_;

  std::timed_mutex busy_;  ///< held while an operation is applied, and while a reader of the watch socket is answered
  SimulatedRuntime runtime_;
  SimulatedDaemon daemon_;

  std::map<std::string, SimulatedPod> pods_;
  std::map<ContainerName, std::uint32_t> next_attempts_;
  std::map<ContainerName, std::string> container_ids_;
  std::set<ContainerName> init_containers_;  ///< those that were not seen to end
  std::map<ContainerName, placement::Qos> classes_;
  std::map<ContainerName, load::ContainerLoad> loads_;  ///< measured from here on
  std::map<std::uint32_t, load::NodeLoad> node_loads_;
  std::map<std::uint32_t, load::CpuLoad> cpu_loads_;
  std::optional<std::chrono::milliseconds> measured_for_;
};

}  // namespace topolet::simulate
