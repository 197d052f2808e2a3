// The daemon as a whole: its parts, put together in the order in which they need each other.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/log.hpp"
#include "core/base/result.hpp"
#include "core/control/server.hpp"
#include "core/cri/listener.hpp"
#include "core/cri/proxy.hpp"
#include "core/daemon/machine_watch.hpp"
#include "core/daemon/plugins.hpp"
#include "core/daemon/quarantine_audit.hpp"
#include "core/daemon/setup.hpp"
#include "core/engine/engine.hpp"
#include "core/options.hpp"
#include "core/plugin/control_thread.hpp"
#include "core/plugin/crash_log.hpp"
#include "store/store.hpp"

namespace topolet {

/// Runs from start() to stop(). Not for use by several threads, but for reload().
class Daemon {
 public:
  /// What must outlive it, but for the function, which reads the configuration again for reload().
  struct Surroundings {
    std::function<RawConfig()> read_config;
    std::shared_ptr<Log> log;
    ControlThread& control;
    CrashLog& crashes;
  };
  /// Puts everything together and serves. The error says what cannot be had and what to do about it.
  /// `setup` must be without mistakes.
  static Result<std::unique_ptr<Daemon>> start(const Setup& setup, Surroundings surroundings);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  /// What a reload did: the plugins enabled now, and the changed keys that only a restart applies.
  struct Reloaded {
    std::vector<std::string> plugins;
    std::vector<std::string> restart_needed;
  };
  /// Reads the configuration again and applies [plugins], the plugins' sections and log-level. On an error, which names
  /// all that is wrong, nothing has changed. Any thread.
  Result<Reloaded> reload() TOPOLET_EXCLUDES(reloading_);

  /// Ends serving, lets calls in flight end, and closes the store. Containers stay as they are.
  void stop();

  /// True if a plugin is stuck in a call: the process must end by _exit, see PolicyThread.
  bool must_exit_at_once() const { return plugins_->has_abandoned_calls(); }

 private:
  explicit Daemon(Surroundings surroundings);

  Status open_listener(const DaemonOptions& options);
  void make_proxy(const DaemonOptions& options);
  void serve();
  Status open_store(const Options& options);
  Status create_plugins(const Setup& setup);
  Status make_engine(const Options& options);
  Status open_control(const DaemonOptions& options);
  Status report(const DaemonOptions& options, control::v1::StatusResponse& response);
  Result<Reloaded> apply(const RawConfig& raw) TOPOLET_REQUIRES(reloading_);

  const Surroundings around_;
  const std::shared_ptr<Log> log_;
  std::unique_ptr<Store> store_;
  /// Shared with calls that were given up on.
  const std::shared_ptr<QuarantineAudit> quarantine_audit_ = std::make_shared<QuarantineAudit>();
  std::unique_ptr<Plugins> plugins_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Proxy> proxy_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<MachineWatch> watch_;
  std::unique_ptr<ControlServer> control_;

  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  Mutex reloading_;
  RawConfig raw_ TOPOLET_GUARDED_BY(reloading_);  ///< as it was read at the start
};

}  // namespace topolet
