// The daemon as a whole: its parts, put together in the order in which they need each other.
//
// The room core/daemon, namespace topolet::daemon: wiring only, from main.cpp to the parts, and what systemd wants of
// the process. It may include every room; no room may include it.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/illness.hpp"
#include "core/base/log_fwd.hpp"
#include "core/base/mutex.hpp"
#include "core/base/result.hpp"
#include "core/config/options.hpp"
#include "core/control/server.hpp"
#include "core/cri/messages/runtime_client.hpp"
#include "core/cri/socket/listener.hpp"
#include "core/cri/socket/runtime_lock.hpp"
#include "core/cri/wire/proxy.hpp"
#include "core/daemon/audit_outlet.hpp"
#include "core/daemon/describe_status.hpp"
#include "core/daemon/recent_denials.hpp"
#include "core/daemon/runtime_probe.hpp"
#include "core/daemon/take_over.hpp"
#include "core/daemon/watchdog.hpp"
#include "core/engine/engine.hpp"
#include "core/fronts/cri/cri_front.hpp"
#include "core/fronts/nri/front.hpp"
#include "core/fronts/nri/guard.hpp"
#include "core/fronts/nri/runtime_facts.hpp"
#include "core/load/sampler_thread.hpp"
#include "core/machine/machine_watch.hpp"
#include "core/metrics/metrics.hpp"
#include "core/plugin/guard/control_thread.hpp"
#include "core/plugin/guard/crash_log.hpp"
#include "core/plugin/host/loaded_config.hpp"
#include "core/plugin/host/running_plugins.hpp"
#include "core/replay/operations.hpp"
#include "core/replay/recorder.hpp"
#include "core/watch/feed.hpp"
#include "core/watch/server.hpp"
#include "store/store.hpp"

namespace topolet::daemon {

/// A value that one thread sets and another one reads.
template <class Value>
class Shared {
 public:
  void set(Value value) TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    value_ = std::move(value);
  }
  Value get() const TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return value_;
  }

 private:
  mutable Mutex mutex_;
  Value value_ TOPOLET_GUARDED_BY(mutex_);
};

using SharedText = Shared<std::string>;

/// Makes the directory of a socket that `option` names.
Status make_parent(const std::string& socket_path, const char* option);

/// Runs from start() to stop(). Not for use by several threads, but for reload().
class Daemon {
 public:
  /// The objects that must outlive it, except the function, which reads the configuration again for reload().
  struct Deps {
    std::function<config::RawConfig()> read_config;
    std::shared_ptr<Log> log;
    plugin::ControlThread& control;
    plugin::CrashLog& crashes;
    /// The sockets of the process whose place this one takes; without any, it binds its own.
    std::shared_ptr<HandedOver> sockets = nullptr;
    /// When clients are served, before the service manager is told.
    std::function<void()> on_serving = {};
    /// Starts the process that is to take this one's place.
    std::function<Result<pid_t>()> start_successor = {};
  };
  /// Puts everything together and serves. The error says what cannot be had and what to do about it.
  /// `setup` must be without mistakes.
  static Result<std::unique_ptr<Daemon>> start(const plugin::LoadedConfig& setup, Deps deps);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  /// The result of a reload: the plugins enabled now, and the changed keys that only a restart applies.
  struct ReloadResult {
    std::vector<std::string> plugins;
    std::vector<std::string> restart_needed;
  };
  /// Reads the configuration again and applies [plugins], the plugins' sections and log-level. On an error, which names
  /// all that is wrong, nothing has changed. Any thread.
  Result<ReloadResult> reload() TOPOLET_EXCLUDES(reloading_);

  /// Lets the other process take this one's place: it gets the sockets once the calls that the core has are answered,
  /// or five seconds have passed, and the store is closed. True if it serves then. This one goes on with what is
  /// under way on the connections it has. False if it was refused, and all is as before, or if it ended before it
  /// served: then must_respawn() is true.
  /// `release_path` lets go of the path on which the other one is to be asked itself.
  bool hand_over(Successor& successor, const std::function<void()>& release_path);
  /// The sockets to start again with, by a process that has nothing else; see hand_over().
  bool must_respawn() const { return must_respawn_; }
  HandedOver take_sockets() { return std::move(sockets_); }
  /// No client is connected any more, or none has called for a while.
  bool is_deserted() const;

  /// Ends serving, lets calls in flight end, and closes the store. Containers stay as they are.
  void stop();

  /// True if a plugin is stuck in a call, or, once it is stopped, a thread in a file system that does not return: the
  /// process must end by _exit, see PolicyThread and Writer::stop().
  bool must_exit_at_once() const { return is_stuck_ || (plugins_ && plugins_->has_abandoned_calls()); }

 private:
  Daemon(config::DaemonOptions options, Deps deps);

  // In the order in which start() calls them.
  Status open_listener(const config::DaemonOptions& options);
  Status open_control(const config::DaemonOptions& options);
  Status lock_runtime(const config::DaemonOptions& options, const std::filesystem::path& config_file);
  void open_watch(const config::DaemonOptions& options);
  void open_record(const config::DaemonOptions& options);
  Status open_store(const config::Options& options);
  Status create_plugins(const plugin::LoadedConfig& setup);
  void make_proxy(const config::DaemonOptions& options);
  Status read_machine(const config::PlacementOptions& options);
  std::shared_ptr<const topology::Topology> machine_now() const;
  Status make_engine(const config::Options& options, const config::RawConfig& raw);
  placement::Decision decide(const std::shared_ptr<const placement::PolicyRequest>& request,
                             const placement::PlacementRules& rules);
  void publish(std::shared_ptr<const plugin::ContainerEvent> container_event);
  std::vector<plugin::MoveRequest> tick(const replay::Recorder::MakeView& view);
  engine::Engine::Deps engine_deps(const std::shared_ptr<const topology::Topology>& topology,
                                   engine::Engine::Machine machine, const placement::PlacementRules& configured_rules);
  void open_nri(const config::NriOptions& options, const operations::DemandRules& demand_rules);
  nri::Validator::Judge nri_judge() const;
  void adopt_nri_plugin(UniqueFd connection, Successor& bringer);
  bool is_nri_front() const { return options_.front == config::Front::kNri; }
  void make_sampler(const config::DaemonOptions& options);
  void accept_clients();
  void start_watchdog(const config::DaemonOptions& options);
  void check_store();
  void recall_denials();
  void watch_health();

  void move_clients();
  void release_runtime(const Successor& successor);
  void end_core();
  void end_plugins();
  void close_store();

  std::optional<NriFacts> nri_facts() const;
  Status report(const config::DaemonOptions& options, control::v1::StatusResponse& response);
  Status set_capacity(const control::v1::SetCapacityRequest& request, control::v1::SetCapacityResponse& response);
  Status heal(const control::v1::HealRequest& request, control::v1::HealResponse& response);
  Status report_load(const control::v1::LoadRequest& request, control::v1::LoadResponse& response);
  Status release(const control::v1::ReleaseRequest& request, control::v1::ReleaseResponse& response);
  void tell_load_state(control::v1::LoadState& state) const;
  std::optional<metrics::LoadFigures> load_figures() const;
  Status report_fits(const watch::v1::FitsRequest& request, watch::v1::FitsResponse& response,
                     const watch::WatchHandlers::IsWanted& is_wanted);
  std::string metrics_text();
  std::optional<std::map<std::string, std::uint32_t>> largest_exclusive(std::uint64_t generation);
  std::vector<Illness> illnesses(const engine::EngineSummary* engine) const;
  watch::v1::PluginList list_plugins() const;
  Result<ReloadResult> apply_config(const config::RawConfig& raw) TOPOLET_REQUIRES(reloading_);

  const Deps deps_;
  const std::shared_ptr<Log> log_;
  const config::DaemonOptions options_;
  std::optional<cri::RuntimeLock> runtime_lock_;  ///< none if there can be none
  std::unique_ptr<store::Store> store_;
  /// Shared with abandoned calls.
  const std::shared_ptr<AuditOutlet> audit_outlet_ = std::make_shared<AuditOutlet>();
  /// Shared with the check of the database.
  const std::shared_ptr<SharedText> store_damage_ = std::make_shared<SharedText>();
  SharedText reload_error_;                          ///< of the last reload; empty if there was none, or it went well
  SharedText watch_error_;                           ///< why nobody can watch; empty if somebody can, or nobody is to
  Shared<std::vector<std::string>> restart_needed_;  ///< by the last reload: keys that only a restart applies
  RecentDenials denials_;
  std::shared_ptr<replay::Recorder> recorder_;             ///< null: nothing is recorded
  std::unique_ptr<replay::OperationRecorder> operations_;  ///< with a recorder
  std::unique_ptr<plugin::RunningPlugins> plugins_;
  std::unique_ptr<metrics::Metrics> metrics_;  ///< null: nobody can ask for them
  /// The last values that were computed for the metrics; used on the thread that answers for them.
  struct LargestExclusive {
    std::uint64_t generation = 0;
    std::chrono::steady_clock::time_point computed_at;
    std::map<std::string, std::uint32_t> cpus;
  };
  std::optional<LargestExclusive> largest_exclusive_;
  std::unique_ptr<watch::Feed> feed_;  ///< null: nobody can watch
  const std::shared_ptr<cri::MemoryClaims> memory_claims_ =
      std::make_shared<cri::MemoryClaims>();  ///< of all listeners
  std::unique_ptr<cri::Listener> listener_;   ///< null with daemon.front = nri
  std::unique_ptr<cri::Proxy> proxy_;
  std::unique_ptr<RuntimeProbe> runtime_probe_;
  std::unique_ptr<cri::RuntimeClient> runtime_client_;
  std::unique_ptr<nri::OwnUpdates> own_updates_;  ///< with daemon.front = nri
  std::shared_ptr<nri::SettableNow> settable_;    ///< with daemon.front = nri
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<cri::CriFront> front_;                      ///< null with daemon.front = nri
  std::unique_ptr<nri::Front> nri_front_;                     ///< with daemon.front = nri
  std::unique_ptr<nri::Guard> nri_guard_;                     ///< null: nri.guard = off, or the front is the guard
  bool refuses_foreign_cpusets_ = false;                      ///< nri.guard = deny
  std::shared_ptr<const topology::Topology> first_topology_;  ///< until the engine has it
  std::unique_ptr<machine::MachineWatch> watch_;
  std::unique_ptr<load::SamplerThread> sampler_;
  std::unique_ptr<cri::OwnServer> control_;
  std::unique_ptr<cri::OwnServer> watch_server_;  ///< null: nobody can watch
  std::unique_ptr<Watchdog> watchdog_;
  std::unique_ptr<Watchdog> health_watch_;

  std::int64_t setup_ = 0;  ///< the number of what decisions are made with; of start(), and then of reload()
  bool is_stuck_ = false;
  bool is_serving_ = false;
  bool writer_ended_ = true;
  bool must_respawn_ = false;
  HandedOver sockets_;  ///< as they were handed over, in case they come back
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  Mutex reloading_;
  config::RawConfig raw_ TOPOLET_GUARDED_BY(reloading_);  ///< as it was read at the start
};

}  // namespace topolet::daemon
