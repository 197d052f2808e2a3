// The one thread on which plugins are asked, and what becomes of a call that does not return.
#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/clock.hpp"
#include "core/base/log_fwd.hpp"
#include "core/base/mutex.hpp"
#include "core/base/result.hpp"
#include "core/placement/besteffort_share.hpp"
#include "core/placement/policy.hpp"
#include "core/placement/votes.hpp"
#include "core/plugin/call/container_event.hpp"
#include "core/plugin/call/plugin_policy.hpp"
#include "core/plugin/guard/call_turns.hpp"

namespace topolet::plugin {

/// Votes that were lost, by what became of the call.
struct LostVotes {
  std::uint64_t late = 0;
  std::uint64_t failed = 0;       ///< threw, gave an invalid reply, or wrote to what it was shown
  std::uint64_t declined = 0;     ///< the plugin gave up its vote itself
  std::uint64_t not_asked = 0;    ///< in quarantine, or an earlier call was still inside
  std::uint64_t out_of_time = 0;  ///< not asked because the decision had taken too long; not the plugin's fault

  std::uint64_t total() const { return late + failed + declined + not_asked + out_of_time; }
  LostVotes& operator+=(const LostVotes& other) {
    late += other.late;
    failed += other.failed;
    declined += other.declined;
    not_asked += other.not_asked;
    out_of_time += other.out_of_time;
    return *this;
  }
};

/// The statistics of one plugin since the start.
struct PluginStatistics {
  std::string name;
  std::uint64_t calls = 0;
  LostVotes lost;
  std::uint64_t late_ticks = 0;     ///< which are not votes
  std::uint64_t p99_us = 0;         ///< of the calls; an abandoned one counts as long as it was waited for
  bool has_abandoned_call = false;  ///< an abandoned call has not returned
  std::string quarantine;           ///< why it is not asked any more; empty = it is asked
  std::size_t late_lately = 0;      ///< votes and ticks within ten minutes, in which a few end in quarantine
  std::size_t failed_lately = 0;    ///< the same of calls that threw, or whose answer was invalid
  /// From when on it is tried again, since the epoch; nothing: it is not in quarantine, or until reset.
  std::optional<std::chrono::milliseconds> trial_at;
};

/// An enabled plugin with its say; to the core it is a placement::Vote.
struct PluginVote {
  std::string name;
  std::shared_ptr<PluginPolicy> plugin;  ///< null: it was not started, and every vote of it is lost
  std::int32_t weight = 1;               ///< this and the rest as in placement::Vote
  bool fail_closed = false;
  bool required = false;
  placement::CommonOptions common_options = {};
  placement::BestEffortShare besteffort = {};  ///< what the plugin says of it
};

/// Returns them in the order in which they count, as placement::Votes has them: events and ticks come in it, too.
std::vector<PluginVote> in_order_of_votes(std::vector<PluginVote> votes);

template <class Task>
class AbandonableThread;
class PluginRecords;
class ViewCache;

/// Runs whole decisions on one thread, each handed over once. A call into a plugin that uses more CPU time than the
/// deadline, or takes twice as long by the clock, is abandoned: its thread and its job are left to themselves, the job
/// is run again on a new thread, and there that plugin's calls answer DEADLINE_EXCEEDED instead of asking it. The
/// decision sees a lost vote like any other. On a busy machine a thread has not the CPU all the time; one that sleeps
/// never uses it.
///
/// A plugin is never called while an earlier call is still inside it. MisbehaviourTracker decides when it is put into
/// quarantine and when it is tried again.
///
/// Once a decision has taken Options::decision_time, attempts that were abandoned included, no call of it begins any
/// more: those that are left answer DEADLINE_EXCEEDED, a lost vote that is not held against the plugin.
///
/// While another thread creates or destroys an instance of a plugin, none of its instances is called: a call waits for
/// as long as Options::deadline, and is then lost in the same way.
///
/// All functions are safe from any thread, but not from inside a job. Runs go one at a time.
class PolicyThread {
 public:
  using RealTime = std::chrono::steady_clock::time_point;

  struct Options {
    std::chrono::milliseconds deadline{50};        ///< for each call: the CPU time that its thread may use
    std::chrono::milliseconds decision_time{200};  ///< for all calls of a decision: the last must begin by then
    Clock clock;                                   ///< for the quarantine rules; waiting goes by the real clock
    /// The CPU time that a thread has used, by its clock. Empty: as the kernel has it.
    std::function<std::chrono::nanoseconds(clockid_t)> cpu_time = {};
    std::shared_ptr<Log> log = make_silent_log();
    /// Shared with those who call the same plugins on other threads.
    std::shared_ptr<CallTurns> turns = std::make_shared<CallTurns>();
    /// Told when a plugin is put into quarantine, also anew after a trial, and, with an empty `why`, when that ends. On
    /// any thread; must not call back.
    std::function<void(const std::string& plugin, const std::string& why)> on_quarantine = {};

    /// By the clock.
    std::chrono::milliseconds longest_call() const { return 2 * deadline; }
  };

  explicit PolicyThread(Options options);
  /// Threads with a call inside are left running; see has_abandoned_calls().
  ~PolicyThread();
  PolicyThread(const PolicyThread&) = delete;
  PolicyThread& operator=(const PolicyThread&) = delete;

  /// Runs `job` with the placement::Votes of the plugins, and waits for what it returns. Throws what
  /// the job throws. If no thread can be had, all votes are lost.
  ///
  /// A job is a pure function of the votes. It must own all that it reads (by shared pointers to constants) and write
  /// nothing: it may be run again while an abandoned run of it has not ended. The requests it passes to the policies
  /// stay unchanged until it returns. `began`: since when Options::decision_time counts, where that is before now.
  template <class R, class Job>
  R run_as(const std::vector<PluginVote>& plugins, Job job, std::optional<RealTime> began = std::nullopt) {
    return run_typed<R>(
        plugins, [job = std::move(job)](Run& attempt) -> R { return job(votes_of(attempt)); },
        began.value_or(std::chrono::steady_clock::now()));
  }

  /// Tells each plugin that handles events, in their order. Between decisions; calls that are late or fail are treated
  /// as in a decision, and nobody else notices. Returns at once if no plugin handles events.
  void publish(const std::vector<PluginVote>& plugins, std::shared_ptr<const ContainerEvent> container_event)
      TOPOLET_EXCLUDES(run_mutex_);

  /// Calls each plugin whose interval has passed since its last tick, or that wants to be called before; the first time
  /// as soon as it is asked. Returns the moves that they request. `view` is called only if a plugin is due. `woken`:
  /// where the names of those go that wanted it.
  std::vector<MoveRequest> tick(const std::vector<PluginVote>& plugins,
                                const std::function<std::shared_ptr<const TickSnapshot>()>& view,
                                std::vector<std::string>* woken = nullptr) TOPOLET_EXCLUDES(run_mutex_);

  /// Returns the time until a plugin is due for tick(), by the injected clock; nothing if none wants ticks.
  std::optional<std::chrono::milliseconds> until_tick(const std::vector<PluginVote>& plugins) const;

  /// Counts an answer against the plugin that only the core could find invalid, such as one with a CPU that was not
  /// offered.
  void report_invalid_reply(const std::string& plugin, const std::string& what);

  /// Puts a plugin into quarantine for what it did in an earlier process.
  void quarantine(const std::string& plugin, const std::string& why);

  /// All plugins that were asked or put into quarantine so far, by name.
  std::vector<PluginStatistics> states() const;

  /// Ends a quarantine. NOT_FOUND if the plugin was never asked; FAILED_PRECONDITION while a call is still inside it.
  Status reset(const std::string& plugin);

  /// True while an abandoned call has not returned. Such a process must end by _exit: the instance it is inside of must
  /// not be destroyed, and the library's exit handlers must not run under it.
  bool has_abandoned_calls() const;

 private:
  struct Run;
  class GuardedPolicy;
  struct LostVote {
    std::string plugin;
    Error error;
  };
  using Work = std::function<void(Run& attempt)>;

  /// Runs what `make_work` makes, once for each attempt. `decision_began`: of a decision only.
  void run(const std::vector<PluginVote>& plugins, const std::function<Work()>& make_work,
           std::optional<RealTime> decision_began) TOPOLET_EXCLUDES(run_mutex_);
  template <class R, class TypedWork>
  R run_typed(const std::vector<PluginVote>& plugins, TypedWork work,
              std::optional<RealTime> decision_began = std::nullopt) {
    std::shared_ptr<std::optional<R>> result;
    const auto make_work = [&]() -> Work {
      // Each attempt has its own: an abandoned one may still write it.
      result = std::make_shared<std::optional<R>>();
      return [work, result](Run& attempt) { result->emplace(work(attempt)); };
    };
    run(plugins, make_work, decision_began);
    return std::move(**result);
  }
  static const placement::Votes& votes_of(const Run& run);

  std::shared_ptr<Run> prepare(const std::vector<PluginVote>& plugins, Work work,
                               const std::vector<LostVote>& lost) const;
  void run_without_plugins(const std::vector<PluginVote>& plugins, Work work, const std::string& why) const;

  const std::shared_ptr<PluginRecords> records_;
  const std::shared_ptr<ViewCache> views_;
  const std::shared_ptr<AbandonableThread<Run>> thread_;
  Mutex run_mutex_;
};

}  // namespace topolet::plugin
