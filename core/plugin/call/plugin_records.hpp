// The behaviour of each plugin since the start.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/log.hpp"
#include "core/base/mutex.hpp"
#include "core/base/result.hpp"
#include "core/plugin/call/call_result.hpp"
#include "core/plugin/call/call_times.hpp"
#include "core/plugin/call/plugin_policy.hpp"
#include "core/plugin/call/policy_thread.hpp"
#include "core/plugin/guard/abandonable_thread.hpp"
#include "core/plugin/guard/misbehaviour_tracker.hpp"

namespace topolet::plugin {

/// A call into a plugin, as it is entered.
struct AskedCall {
  std::string plugin;
  const char* function;  ///< "score"
  CallKind kind = CallKind::kForVote;
  bool can = true;  ///< whether the plugin has that function
};

/// Counts the calls of each plugin and what became of them, and decides which plugins are in quarantine. Logs each lost
/// vote and each quarantine. Safe from any thread.
class PluginRecords {
 public:
  using Time = MisbehaviourTracker::Time;

  explicit PluginRecords(PolicyThread::Options options) : options_(std::move(options)) {}

  const PolicyThread::Options& options() const { return options_; }
  /// By the injected clock.
  Time now() const { return options_.clock.steady(); }

  /// Counts a call that is about to begin, or says why the plugin must not be asked. `missed`: where that is nobody's
  /// fault, what it would have been asked to do, and why it cannot be.
  std::optional<Error> enter(const AskedCall& call, const std::optional<std::string>& missed) TOPOLET_EXCLUDES(mutex_);
  /// A call returned in time; without a failure it answered.
  void record_return(const AskedCall& call, std::chrono::nanoseconds took, const std::optional<CallFailure>& failure)
      TOPOLET_EXCLUDES(mutex_);
  /// A call that began at `began`, and has taken `took` by the real clock, was abandoned. Returns why its vote is lost.
  CallFailure record_late(const AskedCall& call, Overrun overrun, Time began, std::chrono::nanoseconds took)
      TOPOLET_EXCLUDES(mutex_);
  /// An abandoned call returned.
  void record_late_return(const AskedCall& call) TOPOLET_EXCLUDES(mutex_);

  void report_invalid_reply(const std::string& plugin, const std::string& what) TOPOLET_EXCLUDES(mutex_);
  /// A plugin asked for moves in a tick that made no sense; the others stand.
  void report_refused_move(const std::string& plugin, const std::string& what) TOPOLET_EXCLUDES(mutex_);
  void quarantine(const std::string& plugin, const std::string& why) TOPOLET_EXCLUDES(mutex_);
  std::vector<PluginStatistics> statistics() TOPOLET_EXCLUDES(mutex_);
  Status reset(const std::string& plugin) TOPOLET_EXCLUDES(mutex_);

  /// Nothing if it wants no ticks; 0 or less if it is due.
  std::optional<std::chrono::milliseconds> until_tick(const PluginPolicy& plugin) TOPOLET_EXCLUDES(mutex_);
  /// Records that it is called now, and returns that time.
  TickTime record_tick(const std::string& plugin) TOPOLET_EXCLUDES(mutex_);

 private:
  struct PluginRecord {
    MisbehaviourTracker misbehaviour;
    PluginStatistics seen;
    CallTimes times;
    Time abandoned_since;                          ///< of the abandoned call
    CallKind abandoned_kind = CallKind::kForVote;  ///< the same
    std::optional<Time> last_tick;
  };

  void quarantine_if_overlong(const std::string& plugin, PluginRecord& record) TOPOLET_REQUIRES(mutex_);
  void record_failed_call(const std::string& plugin, PluginRecord& record, const std::string& what)
      TOPOLET_REQUIRES(mutex_);
  /// Returns why the plugin must not be asked. A call in quarantine that is let through is its trial.
  std::optional<Error> refusal_of(const AskedCall& call, PluginRecord& record) TOPOLET_REQUIRES(mutex_);
  void end_trial(const AskedCall& call, PluginRecord& record) TOPOLET_REQUIRES(mutex_);
  /// Counts and logs it. `what` begins with the plugin's name.
  void lose_vote(PluginRecord& record, CallFault fault, const std::string& what) TOPOLET_REQUIRES(mutex_);
  void log_lost_vote(const std::string& what) const { options_.log->warn("plugin {}; its vote is lost", what); }
  /// `before`: how it was.
  void report_quarantine(const std::string& plugin, const PluginRecord& record, const MisbehaviourTracker& before)
      TOPOLET_REQUIRES(mutex_);

  const PolicyThread::Options options_;
  Mutex mutex_;
  std::map<std::string, PluginRecord> records_ TOPOLET_GUARDED_BY(mutex_);
};

}  // namespace topolet::plugin
