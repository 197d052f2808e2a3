// The daemon as a whole: its parts, put together in the order in which they need each other.
#pragma once

#include <memory>
#include <vector>

#include "core/base/log.hpp"
#include "core/base/result.hpp"
#include "core/cri/listener.hpp"
#include "core/cri/proxy.hpp"
#include "core/daemon/engine.hpp"
#include "core/options.hpp"
#include "core/plugin/load.hpp"
#include "core/plugin/policy_thread.hpp"
#include "store/store.hpp"

namespace topolet {

/// Runs from start() to stop(). Not for use by several threads.
class Daemon {
 public:
  /// Puts everything together and serves. The error says what cannot be had and what to do about it.
  static Result<std::unique_ptr<Daemon>> start(const Options& options, const std::vector<PluginLibrary>& libraries,
                                               const std::shared_ptr<Log>& log);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  /// Ends serving, lets calls in flight end, and closes the store. Containers stay as they are.
  void stop();

  /// True if a plugin is stuck in a call: the process must end by _exit, see PolicyThread.
  bool must_exit_at_once() const { return policies_->has_abandoned_calls(); }

 private:
  Daemon() = default;

  Status open_store(const Options& options);
  Status create_policies(const Options& options, const std::vector<PluginLibrary>& libraries);
  Status make_engine(const Options& options);

  std::shared_ptr<Log> log_;
  std::unique_ptr<Store> store_;
  std::vector<Voter> voters_;
  std::unique_ptr<PolicyThread> policies_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Proxy> proxy_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace topolet
