// The daemon's own engine and policies, which may be killed and come back from their store.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/log.hpp"
#include "core/base/result.hpp"
#include "core/daemon/setup.hpp"
#include "core/engine/engine.hpp"
#include "core/plugin/policy_thread.hpp"
#include "core/plugin/state_store.hpp"
#include "core/simulate/driven_loop.hpp"
#include "core/simulate/recording_store.hpp"
#include "core/simulate/runtime_connection.hpp"
#include "store/store.hpp"

namespace topolet::simulate {

/// What it would keep on disk, and time, go on from one run of the daemon to the next. After every function it is
/// running, with nothing left to do before its next timer. One thread.
class SimulatedDaemon {
 public:
  /// Both must outlive this.
  SimulatedDaemon(const Setup& setup, SimulatedRuntime& runtime);
  ~SimulatedDaemon();
  SimulatedDaemon(const SimulatedDaemon&) = delete;
  SimulatedDaemon& operator=(const SimulatedDaemon&) = delete;

  /// For the first time. The error of a plugin's create(), or of the store.
  Status start(engine::Engine::Machine machine);
  /// As for engine::Engine::change_machine(), for the runs that follow too.
  void change_machine(engine::Engine::Machine machine);

  /// A call of the kubelet, with the time that it takes. If the daemon is killed before it has answered, the call is
  /// made once more when it is back, unless the kill says otherwise.
  Answer call(const std::string& method, const std::string& request);
  void observe(const Observation& observation);
  void look(const std::function<void(const engine::Ledger& ledger)>& look);
  void advance(std::chrono::milliseconds time);

  /// Kills it, and has it come back. Whatever was to come of kill_at() does not.
  void restart();
  /// Kills it at a call that is yet to come, and has it come back at once.
  void kill_at(Kill kill);
  /// The methods at whose calls the daemon was killed, since forget().
  const std::vector<std::string>& killed_at() const { return killed_at_; }

  /// Written since forget(), by whichever run.
  const std::vector<DecidedRow>& decisions() const { return decisions_; }
  void forget();

  std::int64_t memory_total_bytes() const { return memory_total_bytes_; }

 private:
  struct Run;

  Status begin_run();
  Status make_policies(Run& run) const;
  void come_back();
  void work();
  std::optional<Answer> call_once(const std::string& method, const std::string& request);

  const Setup& setup_;
  SimulatedRuntime& runtime_;
  const std::shared_ptr<Log> log_ = make_silent_log();
  const std::shared_ptr<StateStore> plugin_state_ = std::make_shared<StateInMemory>();
  VirtualTime time_;
  std::unique_ptr<Store> store_;
  std::vector<DecidedRow> decisions_;
  engine::Engine::Machine machine_;
  std::int64_t memory_total_bytes_ = 0;
  std::optional<Kill> kill_;
  bool kubelet_repeats_ = true;
  std::vector<std::string> killed_at_;
  std::uint64_t runs_ = 0;
  std::unique_ptr<Run> run_;
};

}  // namespace topolet::simulate
