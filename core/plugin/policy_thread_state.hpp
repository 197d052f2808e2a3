// What the threads of a PolicyThread share: its runs, the call each is in, and how each plugin has behaved.
#pragma once

#include <any>
#include <chrono>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/plugin/call_times.hpp"
#include "core/plugin/conduct.hpp"
#include "core/plugin/plugin_policy.hpp"
#include "core/plugin/policy_thread.hpp"
#include "core/plugin/request_view.hpp"

namespace topolet {

/// One attempt at a job. Shared by the caller and the thread it runs on; the last of them frees it, and with it all
/// that a call that was given up on may still read.
struct PolicyThread::Run {
  /// The call it is in.
  struct Call {
    std::string plugin;
    PluginPolicy* policy;                         ///< null if it is none
    std::chrono::steady_clock::time_point began;  ///< by the injected clock
    std::chrono::steady_clock::time_point began_really;
  };

  Job job;
  std::vector<Voter> voters;

  // Touched by the thread that runs it; by the caller once `done`.
  std::any result;
  std::exception_ptr exception;
  const PolicyRequest* viewed = nullptr;
  std::unique_ptr<RequestView> view;

  // Guarded by the state's mutex.
  std::optional<Call> call;
  bool done = false;
  bool abandoned = false;
};

/// What the threads share. Outlives the PolicyThread for as long as an abandoned thread is inside a call.
class PolicyThread::State {
 public:
  explicit State(Options options) : options_(std::move(options)) {}

  const Options& options() const { return options_; }

  void post(std::shared_ptr<Run> run) TOPOLET_EXCLUDES(mutex_);
  void stop() TOPOLET_EXCLUDES(mutex_);
  /// The next run, or null at the end.
  std::shared_ptr<Run> take() TOPOLET_EXCLUDES(mutex_);
  /// False if the run was given up on; the thread must then end.
  bool finish(std::shared_ptr<Run> run) TOPOLET_EXCLUDES(mutex_);
  /// Waits until the run is done, or gives up on it and says whose fault it was.
  std::optional<LostVote> wait_for(Run& run) TOPOLET_EXCLUDES(mutex_);
  /// Says that a call begins, or why it must not.
  std::optional<Error> enter(Run& run, const std::string& plugin, PluginPolicy* policy) TOPOLET_EXCLUDES(mutex_);
  /// Says that a call is back; `error` is null if it answered.
  void leave(Run& run, const Error* error) TOPOLET_EXCLUDES(mutex_);
  void report_bad_answer(const std::string& plugin, const std::string& what) TOPOLET_EXCLUDES(mutex_);
  void quarantine(const std::string& plugin, const std::string& why) TOPOLET_EXCLUDES(mutex_);
  std::vector<PluginState> states() TOPOLET_EXCLUDES(mutex_);
  Status reset(const std::string& plugin) TOPOLET_EXCLUDES(mutex_);
  bool has_abandoned_runs() TOPOLET_EXCLUDES(mutex_);
  /// Nothing if it wants no ticks; 0 or less if it is due.
  std::optional<std::chrono::milliseconds> until_tick(const PluginPolicy* plugin) TOPOLET_EXCLUDES(mutex_);
  /// Returns the time that it notes.
  std::chrono::milliseconds note_tick(const std::string& plugin) TOPOLET_EXCLUDES(mutex_);
  /// The topology changes rarely and is the largest part of a view, so its last view is kept.
  std::shared_ptr<const TopologyView> topology_view(const std::shared_ptr<const Topology>& topology)
      TOPOLET_EXCLUDES(mutex_);

 private:
  struct Record {
    Conduct conduct;
    PluginState seen;
    CallTimes times;
    Conduct::Time inside_since;  ///< of the call that was given up on
    std::optional<Conduct::Time> last_tick;
  };

  LostVote give_up(Run& run) TOPOLET_REQUIRES(mutex_);
  void judge_call_inside(const std::string& plugin, Record& record) TOPOLET_REQUIRES(mutex_);
  void strike_bad(const std::string& plugin, Record& record, const std::string& what) TOPOLET_REQUIRES(mutex_);
  /// `what` begins with the plugin's name.
  void log_lost_vote(const std::string& what);
  void tell_quarantine(const std::string& plugin, const Record& record, bool before) TOPOLET_REQUIRES(mutex_);

  const Options options_;
  Mutex mutex_;
  CondVar to_worker_;
  CondVar to_caller_;
  std::shared_ptr<Run> next_ TOPOLET_GUARDED_BY(mutex_);
  bool stopping_ TOPOLET_GUARDED_BY(mutex_) = false;
  int abandoned_runs_ TOPOLET_GUARDED_BY(mutex_) = 0;
  std::map<std::string, Record> records_ TOPOLET_GUARDED_BY(mutex_);
  std::shared_ptr<const TopologyView> topology_view_ TOPOLET_GUARDED_BY(mutex_);
};

}  // namespace topolet
