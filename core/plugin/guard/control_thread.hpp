// The thread on which plugins are loaded, created and destroyed, and what becomes of a call that does not return.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/base/log_fwd.hpp"
#include "core/base/result.hpp"
#include "core/plugin/guard/call_turns.hpp"

namespace topolet::plugin {

template <class Task>
class AbandonableThread;

/// Returns true if the call of a ControlThread that this thread is in has been abandoned.
bool is_abandoned_control_call();

/// Runs the calls that the ABI marks [control] one after the other on a thread of its own. A call that takes longer
/// than the limit is abandoned as soon as somebody waits: its thread and its work are left to themselves, and another
/// thread goes on with the next call. A call begins when no other thread is in the plugin. All functions are safe from
/// any thread, but not from inside a call.
class ControlThread {
 public:
  struct Options {
    std::chrono::milliseconds limit{10000};  ///< for each call
    std::shared_ptr<Log> log = make_silent_log();
    /// Shared with those who call the same plugins on other threads.
    std::shared_ptr<CallTurns> turns = std::make_shared<CallTurns>();
  };
  /// Must own all that it uses: it may go on after it was abandoned. Its exceptions are logged.
  using Work = std::function<void()>;
  using Post = std::function<void(const std::string& plugin, const char* call, Work work)>;

  explicit ControlThread(Options options);
  /// Waits as drain() does.
  ~ControlThread();
  ControlThread(const ControlThread&) = delete;
  ControlThread& operator=(const ControlThread&) = delete;

  const std::shared_ptr<CallTurns>& turns() const { return options_.turns; }

  /// Runs `work` and waits for it. `call` is the literal "load", "create" or "destroy". DEADLINE_EXCEEDED if it was
  /// abandoned; UNAVAILABLE if no thread can be started for it.
  Status run(const std::string& plugin, const char* call, Work work);

  /// Runs work without waiting for it. May outlive this object.
  Post send() const;

  /// Waits until all work is done or abandoned.
  void drain();

  /// The abandoned call into the plugin that has not returned, if there is one.
  std::optional<std::string> stuck_call_of(const std::string& plugin) const;
  /// The plugin that is stuck in this call.
  std::optional<std::string> plugin_stuck_in(const std::string& call) const;
  /// If so, the process must end by _exit: no exit handler may run while a call is under way.
  bool has_abandoned_calls() const;

 private:
  struct Call;
  using Thread = AbandonableThread<Call>;

  const Options options_;
  const std::shared_ptr<Thread> thread_;
};

}  // namespace topolet::plugin
