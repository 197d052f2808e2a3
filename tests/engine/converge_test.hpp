// The parts of the engine that bring containers to where the ledger wants them, without the handlers of calls.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/cri/messages/runtime_client.hpp"
#include "core/engine/converge/mover.hpp"
#include "core/engine/converge/rebalancer.hpp"
#include "core/engine/converge/reconciler.hpp"
#include "core/placement/decide.hpp"
#include "core/simulate/simulated_loop.hpp"
#include "store/store.hpp"
#include "tests/engine/ledgers.hpp"
#include "tests/engine/scripted_runtime.hpp"
#include "tests/engine/transition_text.hpp"
#include "tests/support/error_log.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::engine {

/// A machine of eight cores in two nodes, a store in memory, and time that passes when the test says so.
class ConvergeTest : public ::testing::Test, public Observer {
 protected:
  explicit ConvergeTest(placement::PlacementRules rules = {}) : rules_(std::move(rules)) {}

  /// A daemon takes this over. Containers that the runtime is to have are the test's to put there.
  void begin(const std::vector<Allocation>& allocations, const std::vector<Pod>& pods = {});

  void commit(const Event& event) {
    committer_->commit(event);
    loop_.run();
  }
  /// Nothing if there is none.
  const Allocation* find(const std::string& name) const { return committer_->ledger().find(besteffort(name).key); }
  /// As it would have been made for an allocation of ledgers.hpp, on the CPUs that it is to have.
  ScriptedRuntime::Container container_of(const std::string& name,
                                          operations::ContainerState state = operations::ContainerState::kRunning);
  /// The allocation's container is in the runtime, and its queue knows that it is where it is to be.
  void start_converged(const std::string& name,
                       operations::ContainerState state = operations::ContainerState::kRunning);

  /// All that was committed since the last call, in the form of transition_text.hpp.
  std::vector<std::string> take_transitions() { return std::exchange(transitions_, {}); }
  void on_durable(const Transition& transition) override;

  TempDir directory_;
  testing::KernelTree kernel_{directory_.path(), CpuSet::range(0, 7)};
  ScriptedRuntime runtime_{kernel_};
  simulate::SimulatedLoop loop_;
  std::vector<std::string> errors_;  ///< that were logged
  const std::shared_ptr<Log> log_ = testing::make_error_log(errors_);
  const std::unique_ptr<store::Store> store_ = *store::Store::open_in_memory("boot", 0);
  const std::shared_ptr<const topology::Topology> topology_ = testing::machine("node:2 core:4 pu:1");
  PlacedHandlers placed_handlers_{placement::RuntimeHandlers{.foreign = {"kata*"}}};
  bool store_regressed_ = false;
  /// The time of each transaction of the store; none: no time.
  std::optional<std::chrono::milliseconds> transaction_time_;
  KubeletCpus kubelet_cpus_;
  std::string why_unknown_;  ///< as in Reconciler::Deps

  const placement::PlacementRules rules_;
  cri::RuntimeClient client_{runtime_, {}};
  Placer placer_{
      {topology_, placement::make_candidates(*topology_, topology_->allowed), rules_,
       [](const auto& request, const placement::PlacementRules& rules) { return decide(*request, rules, {}); }}};
  std::unique_ptr<Committer> committer_;
  std::unique_ptr<CpusetWriter> cpusets_;
  std::unique_ptr<Exits> exits_;
  std::unique_ptr<Mover> mover_;
  std::unique_ptr<Rebalancer> rebalancer_;
  std::unique_ptr<Reconciler> reconciler_;

 private:
  std::vector<std::string> transitions_;
};

}  // namespace topolet::engine
