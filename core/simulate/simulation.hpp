// The daemon's own engine and policies on a machine that need not exist, with a runtime and a kubelet that are made up.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/result.hpp"
#include "core/daemon/setup.hpp"
#include "core/engine/engine.hpp"
#include "core/simulate/kubelet.hpp"
#include "core/simulate/operation.hpp"
#include "core/simulate/simulated_daemon.hpp"
#include "core/simulate/simulated_runtime.hpp"
#include "core/topology/discover.hpp"

namespace topolet::simulate {

/// A container that an operation moved without being about it.
struct Moved {
  std::string pod;
  std::string container;
  std::string mode;
  CpuSet cpus;
  CpuSet withheld;
  NodeSet mems;
  std::string reason;  ///< empty where it follows the shared pool
};

/// What came of one operation. `outcome`: placed, unpinned, denied, released, ok, error.
struct Outcome {
  std::string outcome = "ok";
  std::string mode;  ///< empty where there is no container, or it holds nothing
  CpuSet cpus;
  CpuSet withheld;
  NodeSet mems;
  std::string reason;
  bool is_bad_line = false;  ///< an error because the line makes no sense, rather than one of the runtime's
  std::vector<Moved> changed;
  std::optional<VerdictsRow> verdicts;  ///< of a decision
};

/// What the daemon keeps for one container.
struct KeptContainer {
  ContainerKey key;
  std::string phase;  ///< in flight, in doubt, bound, started, or crashed: kept for its next attempt
  std::string mode;
  CpuSet cpus;
  CpuSet withheld;
  NodeSet mems;
};

/// The machine and who holds what, at one moment.
struct Picture {
  std::shared_ptr<const Topology> topology;
  engine::LedgerRules rules;
  CpuSet offline;
  LedgerView ledger;
  std::vector<KeptContainer> containers;  ///< failed ones too
};

/// One thread. The same operations have the same outcomes.
class Simulation {
 public:
  /// `setup` without mistakes. INVALID_ARGUMENT for a machine that cannot be read, an error of a plugin's create(), or
  /// of a configuration that leaves no CPU of this machine.
  static Result<std::unique_ptr<Simulation>> make(DiscoverOptions machine, Setup setup);
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  Outcome apply(const Operation& operation);
  Picture picture();
  SimulatedRuntime& runtime() { return runtime_; }

 private:
  using ContainerName = std::pair<std::string, std::string>;  ///< pod uid, name
  struct Place {
    std::string mode;
    CpuSet cpus;
    CpuSet withheld;
    NodeSet mems;

    friend bool operator==(const Place&, const Place&) = default;
  };
  using Places = std::map<ContainerKey, Place>;

  Simulation(DiscoverOptions machine, Setup setup);
  Status start();
  Result<engine::Engine::Machine> make_machine_now() const;

  void act(const Operation& operation, Outcome& outcome);
  void occupy(const Operation& operation, Outcome& outcome);
  void change_online(const Operation& operation, Outcome& outcome);
  void add_device(const Operation& operation, Outcome& outcome);
  void apply_machine(Outcome& outcome);
  void run_pod(const Operation& operation, Outcome& outcome);
  void create(const Operation& operation, Outcome& outcome);
  void update(const Operation& operation, Outcome& outcome);
  void exit(const Operation& operation, Outcome& outcome);
  void stop(const Operation& operation, Outcome& outcome);
  void remove_pod(const Operation& operation, Outcome& outcome);
  void set_next_answer(const Operation& operation);
  void restart(const Operation& operation);

  Places places();
  std::optional<engine::Allocation> allocation_of(const Operation& operation);
  std::optional<std::string> container_id(const Operation& operation, Outcome& outcome);
  void describe(const Operation& operation, Outcome& outcome);

  DiscoverOptions machine_options_;
  const Setup setup_;
  CpuSet offline_;
  CpuSet occupied_;
  std::vector<Operation> devices_;
  std::uint64_t topology_generation_ = 1;
  std::shared_ptr<const Topology> topology_;

  SimulatedRuntime runtime_;
  SimulatedDaemon daemon_;

  std::map<std::string, SimulatedPod> pods_;
  std::map<ContainerName, std::uint32_t> next_attempts_;
  std::map<ContainerName, std::string> container_ids_;
};

}  // namespace topolet::simulate
