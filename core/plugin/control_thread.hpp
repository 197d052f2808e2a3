// Where plugins are loaded, made and ended, and how one that does not come back from that is left behind.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/base/log.hpp"
#include "core/base/result.hpp"

namespace topolet {

/// Runs the [control] calls into plugins one after the other on a thread of its own. A call that takes longer than the
/// limit is given up on once somebody waits: its thread and its work are left to themselves, and another thread goes on
/// with the next. All functions are safe from any thread, but not from inside a call.
class ControlThread {
 public:
  struct Options {
    std::chrono::milliseconds limit{10000};  ///< for each call
    std::shared_ptr<Log> log = make_silent_log();
  };
  /// Must own all that it uses: it may go on after it was given up on. Must not throw.
  using Work = std::function<void()>;
  using Send = std::function<void(const std::string& plugin, const char* call, Work work)>;

  explicit ControlThread(Options options);
  /// Waits as drain() does.
  ~ControlThread();
  ControlThread(const ControlThread&) = delete;
  ControlThread& operator=(const ControlThread&) = delete;

  /// Runs `work` and waits for it. `call`: "load", "create" or "destroy", a literal. DEADLINE_EXCEEDED if it was given
  /// up on; UNAVAILABLE if no thread can be had for it.
  Status run(const std::string& plugin, const char* call, Work work);

  /// A way to have work done without waiting for it. May outlive this.
  Send send() const;

  /// Waits until all that was sent is done or given up on.
  void drain();

  /// The call into the plugin that was given up on and has not come back, if there is one.
  std::optional<std::string> stuck_in(const std::string& plugin) const;
  /// The plugin that is stuck in this call.
  std::optional<std::string> who_is_stuck(const std::string& call) const;
  /// Such a process must end by _exit: no exit handler may run under a call.
  bool has_abandoned_calls() const;

 private:
  class State;
  const std::shared_ptr<State> state_;
};

}  // namespace topolet
