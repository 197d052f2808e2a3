// The one thread on which plugins decide, and how a plugin that does not come back is left behind.
#pragma once

#include <any>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/clock.hpp"
#include "core/base/log.hpp"
#include "core/base/mutex.hpp"
#include "core/base/result.hpp"
#include "core/placement/policy.hpp"
#include "core/plugin/happenings.hpp"

namespace topolet {

/// Votes that were lost, by what became of the call.
struct LostVotes {
  std::uint64_t late = 0;
  std::uint64_t failed = 0;     ///< threw, or gave nonsense
  std::uint64_t declined = 0;   ///< the plugin gave its vote up itself
  std::uint64_t not_asked = 0;  ///< in quarantine, or an earlier call was still inside

  std::uint64_t total() const { return late + failed + declined + not_asked; }
};

/// What is known of one plugin since the start.
struct PluginState {
  std::string name;
  std::uint64_t calls = 0;
  LostVotes lost;
  std::uint64_t p99_us = 0;  ///< of the calls; one that was given up on counts with the deadline
  bool call_inside = false;  ///< a call that was given up on has not come back
  std::string quarantine;    ///< why it is not asked any more; empty = it is asked
};

/// Runs whole decisions on one thread, one hand-over each. A call into a policy that takes longer than the deadline is
/// given up on: its thread and its job are left to themselves, the job is run again on a new thread, and there that
/// policy's calls answer DEADLINE_EXCEEDED instead of asking it. The decision sees a lost vote like any other.
///
/// A policy is never called while an earlier call is still inside it. Three late calls in ten minutes, three INTERNAL
/// errors in ten minutes, or one call of ten times the deadline put it into quarantine: it is not asked until reset.
///
/// All functions are safe from any thread, but not from inside a job. Runs go one at a time.
class PolicyThread {
 public:
  /// One decision: a pure function of the voters. It must own all that it reads (by shared pointers to constants) and
  /// write nothing but its result: the same job may be run again while an abandoned run of it has not ended.
  /// The requests it passes to the voters stay unchanged until it returns.
  using Job = std::function<std::any(const std::vector<Voter>& voters)>;

  struct Options {
    std::chrono::milliseconds deadline{50};  ///< for each call
    Clock clock;                             ///< for the quarantine rules; waiting goes by the real clock
    std::shared_ptr<Log> log = make_silent_log();
    /// Told when a plugin is put into quarantine and, with an empty `why`, when that ends. On any thread; must not call
    /// back.
    std::function<void(const std::string& plugin, const std::string& why)> on_quarantine = {};
  };

  explicit PolicyThread(Options options);
  /// Threads with a call inside are left running; see has_abandoned_calls().
  ~PolicyThread();
  PolicyThread(const PolicyThread&) = delete;
  PolicyThread& operator=(const PolicyThread&) = delete;

  /// Runs the job and waits for it. Throws what the job throws. If no thread can be had, all votes are lost.
  std::any run(const std::vector<Voter>& voters, const Job& job) TOPOLET_EXCLUDES(run_mutex_);

  /// The same with a typed result.
  template <class R, class TypedJob>
  R run_as(const std::vector<Voter>& voters, TypedJob job) {
    return std::any_cast<R>(
        run(voters, [job = std::move(job)](const std::vector<Voter>& asked) { return std::any(R(job(asked))); }));
  }

  /// Tells each plugin among the voters that hears events, in their order. Between decisions; calls that are late or
  /// fail are treated as in a decision, and nobody else notices. Returns at once if nobody hears.
  void notify(const std::vector<Voter>& voters, std::shared_ptr<const Happening> happening)
      TOPOLET_EXCLUDES(run_mutex_);

  /// Calls each plugin whose interval has passed since its last tick; the first time as soon as it is asked.
  /// Returns what they wish for. `view` is made only if somebody is due.
  std::vector<ReplacementWish> tick(const std::vector<Voter>& voters,
                                    const std::function<std::shared_ptr<const TickView>()>& view)
      TOPOLET_EXCLUDES(run_mutex_);

  /// How long from now until a plugin is due for tick(), by the injected clock; nothing if none wants ticks.
  std::optional<std::chrono::milliseconds> until_tick(const std::vector<Voter>& voters) const;

  /// Counts an answer that only the core could see through, such as a foreign CPU, against the plugin.
  void report_bad_answer(const std::string& plugin, const std::string& what);

  /// Puts a plugin into quarantine for what it did in an earlier process.
  void quarantine(const std::string& plugin, const std::string& why);

  /// All plugins that were asked or put into quarantine so far, by name.
  std::vector<PluginState> states() const;

  /// Ends a quarantine. NOT_FOUND if the plugin was never asked; FAILED_PRECONDITION while a call is still inside it.
  Status reset(const std::string& plugin);

  /// True while a call that was given up on has not come back. Such a process must end by _exit: the instance it is
  /// inside of must not be destroyed, and the library's exit handlers must not run under it.
  bool has_abandoned_calls() const;

 private:
  struct Run;
  class State;
  class GuardedPolicy;
  struct LostVote {
    std::string plugin;
    Error error;
  };
  struct Worker {
    std::thread thread;
    std::shared_ptr<std::atomic<bool>> ended;
  };

  std::shared_ptr<Run> prepare(const std::vector<Voter>& voters, const Job& job,
                               const std::vector<LostVote>& lost) const;
  std::any run_without_plugins(const std::vector<Voter>& voters, const Job& job, const char* why) const;
  Worker start_worker() const;
  void abandon_worker() TOPOLET_REQUIRES(run_mutex_);

  const std::shared_ptr<State> state_;
  Mutex run_mutex_;
  Worker worker_ TOPOLET_GUARDED_BY(run_mutex_);
  std::vector<Worker> abandoned_ TOPOLET_GUARDED_BY(run_mutex_);
};

}  // namespace topolet
