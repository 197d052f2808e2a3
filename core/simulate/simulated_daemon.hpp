// The daemon's own engine and policies, which may be killed and come back from their store.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/log_fwd.hpp"
#include "core/base/result.hpp"
#include "core/engine/engine.hpp"
#include "core/load/load.hpp"
#include "core/operations/operation.hpp"
#include "core/plugin/call/policy_thread.hpp"
#include "core/plugin/host/in_memory_plugin_state.hpp"
#include "core/plugin/host/loaded_config.hpp"
#include "core/simulate/plugin_activity.hpp"
#include "core/simulate/recording_store.hpp"
#include "core/simulate/runtime_connection.hpp"
#include "core/simulate/simulated_loop.hpp"

namespace topolet::simulate {

/// By which topoletd hears of containers.
enum class SimulatedFront : std::uint8_t {
  kCri,
  kInAnswer,  ///< the same, but that neighbours are told with the answer to a create, and may have NRI's settings
  kNri,       ///< see nri_front.hpp
};

struct SimulationOptions {
  SimulatedFront front = SimulatedFront::kCri;
  std::filesystem::path state_dir = {};  ///< where the state database is kept; in memory if it is empty
  std::string watch_socket = {};         ///< the path of a watch socket to serve; none if it is empty
  /// Return how long the store's next transaction takes, and until an update that the daemon makes by itself arrives.
  /// Without them neither takes any time. An operation does not wait for what takes longer than its answer.
  std::function<std::chrono::milliseconds()> transaction_time = {};
  std::function<std::chrono::milliseconds()> update_time = {};
  std::filesystem::path record = {};                       ///< as daemon.record; none if it is empty
  std::uint64_t record_bytes = std::uint64_t{256} << 20U;  ///< as daemon.record-mib
};

/// The database and the time go on from one run of the daemon to the next. When a function returns, the daemon is
/// running and has nothing to do before its next timer. One thread.
class SimulatedDaemon {
 public:
  /// All must outlive this. Whoever calls a function, but for lost_votes() and what is const, holds `busy` if there is
  /// a watch socket.
  SimulatedDaemon(const plugin::LoadedConfig& setup, SimulatedRuntime& runtime, std::timed_mutex& busy);
  ~SimulatedDaemon();
  SimulatedDaemon(const SimulatedDaemon&) = delete;
  SimulatedDaemon& operator=(const SimulatedDaemon&) = delete;

  /// What tells the measured load, which outlives each run. To be set before start().
  void set_load_source(load::Source source) { load_ = std::move(source); }
  /// For the first time. The error of a plugin's create(), of the store, or of the watch socket.
  Status start(engine::Engine::Machine machine, const SimulationOptions& options = {});
  /// As for engine::Engine::change_machine(), for the runs that follow too.
  void change_machine(engine::Engine::Machine machine);

  /// A call of the kubelet, with the time that it takes. If the daemon is killed before it has answered, the call is
  /// made once more when it is back, unless the kill says otherwise.
  cri::RuntimeResponse call(const std::string& method, const std::string& request);
  void observe(const cri::ObservedMessage& observation);
  void read_ledger(const std::function<void(const engine::Ledger& ledger)>& read_ledger);
  Result<engine::Engine::CapacityAnswer> set_capacity(engine::Engine::CapacityRequest request);
  /// With the time that it takes.
  Result<engine::Engine::HealReport> heal(bool is_dry);
  Result<engine::ReleaseReport> release(bool cpusets);
  void advance(std::chrono::milliseconds time);
  /// Somebody sets the wall clock by so much, forward or back; no time passes.
  void set_wall_clock(std::chrono::milliseconds by) { time_.set_wall(by); }

  /// Kills the daemon and starts it again, with its database or with a new one, and on another machine if there is one.
  /// Cancels a kill_at() that is still to come.
  void restart(bool loses_database = false, std::optional<engine::Engine::Machine> machine = std::nullopt);
  /// Kills it at a call that is yet to come, and has it come back at once.
  void kill_at(KillPoint kill);
  /// The methods at whose calls the daemon was killed, since clear_recorded().
  const std::vector<std::string>& killed_during() const { return killed_during_; }

  /// Written since clear_recorded(), by whichever run. A denial that was only counted once more is there, too, without
  /// verdicts.
  const std::vector<store::DecidedRow>& decisions() const { return decisions_.rows; }
  void clear_recorded();
  /// Returns what plugins did since the last time, by whichever run.
  PluginActivity take_activity() { return activity_.take(); }

  /// Returns the lost votes of each plugin that has some, in all runs.
  std::map<std::string, plugin::LostVotes> lost_votes() const;
  /// As for PolicyThread, of all runs.
  bool has_abandoned_calls() const;

  std::chrono::milliseconds now() const { return time_.now(); }
  std::int64_t memory_total_bytes() const { return memory_total_bytes_; }
  /// False where topoletd counts the attempts of containers by itself.
  bool is_told_attempts() const { return options_.front != SimulatedFront::kNri; }

 private:
  struct Run;

  Status open_store();
  Status lose_database();
  Status begin_run();
  void open_nri_front(Run& run, const operations::DemandRules& rules);
  void end_run();
  Status open_record(Run& run) const;
  Status make_policies(Run& run) const;
  Status open_watch_socket(Run& run);
  void restart_after_kill();
  void run_until_idle();
  template <class Report, class Ask>
  Result<Report> answer_of(Ask ask);
  std::optional<cri::RuntimeResponse> call_once(const std::string& method, const std::string& request);

  const plugin::LoadedConfig& setup_;
  SimulatedRuntime& runtime_;
  std::timed_mutex& busy_;
  SimulationOptions options_;
  load::Source load_;
  const std::shared_ptr<Log> log_ = make_silent_log();
  const std::shared_ptr<store::PluginStateStore> plugin_state_ = std::make_shared<plugin::InMemoryPluginState>();
  ActivityRecorder activity_;
  SimulatedTime time_;
  std::unique_ptr<store::Store> store_;
  RecordedDecisions decisions_;
  engine::Engine::Machine machine_;
  std::int64_t memory_total_bytes_ = 0;
  bool loses_database_ = false;  ///< with the kill that comes next
  std::optional<KillPoint> kill_;
  bool kubelet_retries_ = true;
  std::vector<std::string> killed_during_;
  std::uint64_t runs_ = 0;
  std::unique_ptr<Run> run_;
  std::map<std::string, plugin::LostVotes> lost_before_;              ///< in the runs before this one
  std::vector<std::shared_ptr<plugin::PolicyThread>> left_policies_;  ///< of runs before, with a call inside
};

}  // namespace topolet::simulate
