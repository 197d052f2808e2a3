#include "core/plugin/policy_thread.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <exception>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "core/plugin/barrier.hpp"
#include "core/plugin/call_times.hpp"
#include "core/plugin/conduct.hpp"
#include "core/plugin/crash_mark.hpp"
#include "core/plugin/plugin_policy.hpp"
#include "core/plugin/request_view.hpp"

namespace topolet {
namespace {

using Steady = std::chrono::steady_clock;

/// The call a run is in.
struct Call {
  std::string plugin;
  PluginPolicy* policy;      ///< null if it is none
  Steady::time_point began;  ///< by the injected clock
  Steady::time_point began_really;
};

struct Record {
  Conduct conduct;
  PluginState seen;
  CallTimes times;
  Conduct::Time inside_since;  ///< of the call that was given up on
  std::optional<Conduct::Time> last_tick;
};

}  // namespace

/// One attempt at a job. Shared by the caller and the thread it runs on; the last of them frees it, and with it all
/// that a call that was given up on may still read.
struct PolicyThread::Run {
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

  void post(std::shared_ptr<Run> run) TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    next_ = std::move(run);
    to_worker_.notify_one();
  }

  void stop() TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    stopping_ = true;
    to_worker_.notify_all();
  }

  /// The next run, or null at the end.
  std::shared_ptr<Run> take() TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (next_ == nullptr && !stopping_) to_worker_.wait(mutex_);
    return std::exchange(next_, nullptr);
  }

  /// False if the run was given up on; the thread must then end.
  bool finish(std::shared_ptr<Run> run) TOPOLET_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      run->done = true;
      to_caller_.notify_one();
      if (!run->abandoned) {
        // Before the caller goes on, who then holds the last reference to all that the job owned.
        run.reset();
        return true;
      }
    }
    // The last reference to an instance may be in there, so it goes before the call counts as back.
    run.reset();
    MutexLock lock(mutex_);
    --abandoned_runs_;
    return false;
  }

  /// Waits until the run is done, or gives up on it and says whose fault it was.
  std::optional<LostVote> wait_for(Run& run) TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (!run.done) {
      const auto now = Steady::now();
      // A call that begins after this look can't be late before the look after it.
      const auto until = (run.call ? run.call->began_really : now) + options_.deadline;
      if (now >= until) return give_up(run);
      to_caller_.wait_until(mutex_, until);
    }
    return std::nullopt;
  }

  /// Says that a call begins, or why it must not.
  std::optional<Error> enter(Run& run, const std::string& plugin, PluginPolicy* policy) TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (run.abandoned) return Error{Code::kCancelled, "the decision was given up on"};
    Record& record = records_[plugin];
    judge_call_inside(plugin, record);
    if (record.conduct.quarantined()) {
      ++record.seen.lost.not_asked;
      return Error{Code::kFailedPrecondition, fmt::format("{}: in quarantine: {}", plugin, record.conduct.why())};
    }
    if (record.seen.call_inside) {
      ++record.seen.lost.not_asked;
      return Error{Code::kFailedPrecondition, fmt::format("{}: an earlier call has not come back", plugin)};
    }
    ++record.seen.calls;
    run.call = Call{plugin, policy, options_.clock.steady(), Steady::now()};
    return std::nullopt;
  }

  /// Says that a call is back; `error` is null if it answered.
  void leave(Run& run, const Error* error) TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const Call call = *std::exchange(run.call, std::nullopt);
    Record& record = records_[call.plugin];
    if (run.abandoned) {
      judge_call_inside(call.plugin, record);
      record.seen.call_inside = false;
      return;
    }
    record.times.add(Steady::now() - call.began_really);
    if (error == nullptr) return;
    const bool failed = error->code == Code::kInternal;
    ++(failed ? record.seen.lost.failed : record.seen.lost.declined);
    log_lost_vote(error->message);
    if (failed) strike_bad(call.plugin, record, error->message);
  }

  void report_bad_answer(const std::string& plugin, const std::string& what) TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    Record& record = records_[plugin];
    ++record.seen.lost.failed;
    log_lost_vote(fmt::format("{}: {}", plugin, what));
    strike_bad(plugin, record, what);
  }

  void quarantine(const std::string& plugin, const std::string& why) TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    Record& record = records_[plugin];
    const bool before = record.conduct.quarantined();
    record.conduct.quarantine(why);
    tell_quarantine(plugin, record, before);
  }

  std::vector<PluginState> states() TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    std::vector<PluginState> states;
    for (auto& [plugin, record] : records_) {
      judge_call_inside(plugin, record);
      PluginState& state = states.emplace_back(record.seen);
      state.name = plugin;
      state.p99_us = record.times.p99_us();
      state.quarantine = record.conduct.why();
    }
    return states;
  }

  Status reset(const std::string& plugin) TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const auto found = records_.find(plugin);
    if (found == records_.end()) {
      return Error{Code::kNotFound, fmt::format("plugin {} was never asked, so there is nothing to reset", plugin)};
    }
    if (found->second.seen.call_inside) {
      return Error{Code::kFailedPrecondition,
                   fmt::format("plugin {}: restart needed: a call is still inside; it was given up on and has not come "
                               "back",
                               plugin)};
    }
    const bool before = found->second.conduct.quarantined();
    found->second.conduct.reset();
    if (before && options_.on_quarantine) options_.on_quarantine(plugin, "");
    return {};
  }

  bool has_abandoned_runs() TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return abandoned_runs_ > 0;
  }

  /// Nothing if it wants no ticks; 0 or less if it is due.
  std::optional<std::chrono::milliseconds> until_tick(const PluginPolicy* plugin) TOPOLET_EXCLUDES(mutex_) {
    if (plugin == nullptr || plugin->tick_interval().count() == 0) return std::nullopt;
    MutexLock lock(mutex_);
    const std::optional<Conduct::Time>& last = records_[plugin->name()].last_tick;
    if (!last) return std::chrono::milliseconds(0);
    return std::chrono::ceil<std::chrono::milliseconds>(*last + plugin->tick_interval() - options_.clock.steady());
  }

  /// Returns the time that it notes.
  std::chrono::milliseconds note_tick(const std::string& plugin) TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const Conduct::Time now = options_.clock.steady();
    records_[plugin].last_tick = now;
    return std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch());
  }

  /// The topology changes rarely and is the largest part of a view, so its last view is kept.
  std::shared_ptr<const TopologyView> topology_view(const std::shared_ptr<const Topology>& topology)
      TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (topology_view_ == nullptr || topology_view_->topology() != topology) {
      topology_view_ = std::make_shared<const TopologyView>(topology);
    }
    return topology_view_;
  }

 private:
  LostVote give_up(Run& run) TOPOLET_REQUIRES(mutex_) {
    run.abandoned = true;
    ++abandoned_runs_;
    const Call& call = *run.call;
    if (call.policy != nullptr) call.policy->give_up();
    Record& record = records_[call.plugin];
    ++record.seen.lost.late;
    record.times.add(options_.deadline);
    record.seen.call_inside = true;
    record.inside_since = call.began;
    const std::string what = fmt::format("{}: no answer within {} ms", call.plugin, options_.deadline.count());
    log_lost_vote(what);
    const bool before = record.conduct.quarantined();
    record.conduct.strike_late(options_.clock.steady(), what);
    tell_quarantine(call.plugin, record, before);
    return {call.plugin, {Code::kDeadlineExceeded, what}};
  }

  void judge_call_inside(const std::string& plugin, Record& record) TOPOLET_REQUIRES(mutex_) {
    const auto limit = options_.deadline * Conduct::kHopelessDeadlines;
    if (!record.seen.call_inside || options_.clock.steady() - record.inside_since < limit) return;
    const bool before = record.conduct.quarantined();
    record.conduct.strike_hopeless(fmt::format("a call took {} times the deadline of {} ms or more",
                                               Conduct::kHopelessDeadlines, options_.deadline.count()));
    tell_quarantine(plugin, record, before);
  }

  void strike_bad(const std::string& plugin, Record& record, const std::string& what) TOPOLET_REQUIRES(mutex_) {
    const bool before = record.conduct.quarantined();
    record.conduct.strike_bad(options_.clock.steady(), what);
    tell_quarantine(plugin, record, before);
  }

  /// `what` begins with the plugin's name.
  void log_lost_vote(const std::string& what) { options_.log->warn("plugin {}; its vote is lost", what); }

  void tell_quarantine(const std::string& plugin, const Record& record, bool before) TOPOLET_REQUIRES(mutex_) {
    if (before || !record.conduct.quarantined()) return;
    options_.log->error("plugin {} is in quarantine and not asked any more: {}", plugin, record.conduct.why());
    if (options_.on_quarantine) options_.on_quarantine(plugin, record.conduct.why());
  }

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

/// A voter's policy as the job sees it: times each call, and answers in its place where it must not be asked.
class PolicyThread::GuardedPolicy final : public Policy {
 public:
  /// `run` owns this policy.
  GuardedPolicy(std::shared_ptr<State> state, Run& run, std::shared_ptr<Policy> policy, std::optional<Error> lost)
      : state_(std::move(state)),
        run_(run),
        policy_(std::move(policy)),
        plugin_(dynamic_cast<PluginPolicy*>(policy_.get())),
        lost_(std::move(lost)) {}

  const std::string& name() const override { return policy_->name(); }

  Result<std::vector<Verdict>> score(const PolicyRequest& request) override {
    return ask<std::vector<Verdict>>("score", [&] {
      return plugin_ != nullptr ? plugin_->score(view(request)) : policy_->score(request);  //
    });
  }

  Result<Pick> pick(const PolicyRequest& request, std::size_t candidate, const CpuSet& usable,
                    std::size_t count) override {
    return ask<Pick>("pick", [&] {
      return plugin_ != nullptr ? plugin_->pick(view(request), candidate, usable, count)
                                : policy_->pick(request, candidate, usable, count);
    });
  }

  Result<Pick> pick_beside(const PolicyRequest& request, std::size_t candidate, const CpuSet& usable,
                           const CpuSet& chosen) override {
    return ask<Pick>("pick", [&] {
      return plugin_ != nullptr ? plugin_->pick(view(request), candidate, usable, request.exclusive_cpus, chosen)
                                : policy_->pick_beside(request, candidate, usable, chosen);
    });
  }

  Result<Adjustment> adjust(const PolicyRequest& request, const Chosen& chosen) override {
    return ask<Adjustment>("adjust", [&] {
      return plugin_ != nullptr ? plugin_->adjust(view(request), chosen) : policy_->adjust(request, chosen);
    });
  }

  /// The next two for plugins only.
  Result<bool> notify(const Happening& happening) {
    return ask<bool>("notify", [&]() -> Result<bool> {
      const Status status = plugin_->notify(happening, *state_->topology_view(happening.topology));
      if (!status) return status.error();
      return true;
    });
  }

  Result<std::vector<ReplacementWish>> tick(const TickView& tick, std::chrono::milliseconds now) {
    return ask<std::vector<ReplacementWish>>(
        "tick", [&] { return plugin_->tick(tick, *state_->topology_view(tick.topology), now); });
  }

 private:
  template <class T, class Asking>
  Result<T> ask(const char* call, Asking asking) {
    if (lost_) return *lost_;
    if (const auto refused = state_->enter(run_, name(), plugin_)) return *refused;
    std::optional<Result<T>> answer;
    const auto thrown = thrown_by([&] {
      const CrashMark mark(name().c_str(), call);
      answer.emplace(asking());
    });
    if (thrown) {
      answer.emplace(Error{Code::kInternal, fmt::format("{}: {}", name(), *thrown)});
    }
    state_->leave(run_, answer->ok() ? nullptr : &answer->error());
    return *std::move(answer);
  }

  /// Built at the first call of a run and shared by all plugins of it.
  const RequestView& view(const PolicyRequest& request) {
    if (run_.viewed != &request) {
      run_.view = std::make_unique<RequestView>(request, state_->topology_view(request.topology));
      run_.viewed = &request;
    }
    return *run_.view;
  }

  const std::shared_ptr<State> state_;
  Run& run_;
  const std::shared_ptr<Policy> policy_;
  PluginPolicy* const plugin_;
  const std::optional<Error> lost_;
};

PolicyThread::PolicyThread(Options options) : state_(std::make_shared<State>(std::move(options))) {}

PolicyThread::~PolicyThread() {
  MutexLock lock(run_mutex_);
  state_->stop();
  if (worker_.thread.joinable()) worker_.thread.join();
  for (Worker& worker : abandoned_) {
    if (*worker.ended) {
      worker.thread.join();
    } else {
      worker.thread.detach();
    }
  }
}

std::any PolicyThread::run(const std::vector<Voter>& voters, const Job& job) {
  MutexLock lock(run_mutex_);
  std::vector<LostVote> lost;
  while (true) {
    try {
      if (!worker_.thread.joinable()) worker_ = start_worker();
    } catch (const std::system_error& error) {
      return run_without_plugins(voters, job, error.what());
    }
    const std::shared_ptr<Run> run = prepare(voters, job, lost);
    state_->post(run);
    if (auto late = state_->wait_for(*run)) {
      lost.push_back(*std::move(late));
      abandon_worker();
      continue;
    }
    if (run->exception) std::rethrow_exception(run->exception);
    return std::move(run->result);
  }
}

std::any PolicyThread::run_without_plugins(const std::vector<Voter>& voters, const Job& job, const char* why) const {
  state_->options().log->error("plugins are not asked, as no thread can be started for them: {}", why);
  std::vector<LostVote> lost;
  for (const Voter& voter : voters) {
    const std::string& name = voter.policy->name();
    lost.push_back({name, {Code::kUnavailable, fmt::format("{}: no thread can be started to ask it", name)}});
  }
  const std::shared_ptr<Run> run = prepare(voters, job, lost);
  return run->job(run->voters);
}

void PolicyThread::notify(const std::vector<Voter>& voters, std::shared_ptr<const Happening> happening) {
  for (const Voter& voter : voters) {
    const auto* plugin = dynamic_cast<const PluginPolicy*>(voter.policy.get());
    if (plugin == nullptr || !plugin->hears_events()) continue;
    // One run each: a run that is given up on is run again, and nobody may hear of an event twice.
    using Told = Result<bool>;
    const Told told = run_as<Told>({voter}, [happening](const std::vector<Voter>& asked) {
      return static_cast<GuardedPolicy&>(*asked.front().policy).notify(*happening);
    });
    if (!told) state_->options().log->debug("an event was not heard: {}", told.error().message);
  }
}

std::vector<ReplacementWish> PolicyThread::tick(const std::vector<Voter>& voters,
                                                const std::function<std::shared_ptr<const TickView>()>& view) {
  std::shared_ptr<const TickView> seen;
  std::vector<ReplacementWish> wishes;
  for (const Voter& voter : voters) {
    const auto until = state_->until_tick(dynamic_cast<const PluginPolicy*>(voter.policy.get()));
    if (!until || until->count() > 0) continue;
    if (seen == nullptr) seen = view();
    using Wishes = Result<std::vector<ReplacementWish>>;
    const Wishes told =
        run_as<Wishes>({voter}, [seen, now = state_->note_tick(voter.policy->name())](const std::vector<Voter>& asked) {
          return static_cast<GuardedPolicy&>(*asked.front().policy).tick(*seen, now);
        });
    if (told) {
      wishes.insert(wishes.end(), told->begin(), told->end());
    } else {
      state_->options().log->debug("a tick went wrong: {}", told.error().message);
    }
  }
  return wishes;
}

std::optional<std::chrono::milliseconds> PolicyThread::until_tick(const std::vector<Voter>& voters) const {
  std::optional<std::chrono::milliseconds> soonest;
  for (const Voter& voter : voters) {
    const auto until = state_->until_tick(dynamic_cast<const PluginPolicy*>(voter.policy.get()));
    if (until && (!soonest || *until < *soonest)) soonest = until;
  }
  if (soonest) soonest = std::max(*soonest, std::chrono::milliseconds(0));
  return soonest;
}

std::shared_ptr<PolicyThread::Run> PolicyThread::prepare(const std::vector<Voter>& voters, const Job& job,
                                                         const std::vector<LostVote>& lost) const {
  auto run = std::make_shared<Run>();
  run->job = job;
  run->voters = voters;
  for (Voter& voter : run->voters) {
    const auto is_this = [&voter](const LostVote& vote) { return vote.plugin == voter.policy->name(); };
    const auto vote = std::find_if(lost.begin(), lost.end(), is_this);
    voter.policy = std::make_shared<GuardedPolicy>(state_, *run, std::move(voter.policy),
                                                   vote == lost.end() ? std::nullopt : std::optional(vote->error));
  }
  return run;
}

PolicyThread::Worker PolicyThread::start_worker() const {
  auto ended = std::make_shared<std::atomic<bool>>(false);
  std::thread thread([state = state_, ended] {
    const CrashStack stack;
    while (auto run = state->take()) {
      try {
        run->result = run->job(run->voters);
      } catch (...) {
        run->exception = std::current_exception();
      }
      if (!state->finish(std::move(run))) break;
    }
    *ended = true;
  });
  pthread_setname_np(thread.native_handle(), "topolet-policy");
  return {std::move(thread), std::move(ended)};
}

void PolicyThread::abandon_worker() {
  const auto back = [](Worker& worker) {
    if (!*worker.ended) return false;
    worker.thread.join();
    return true;
  };
  abandoned_.erase(std::remove_if(abandoned_.begin(), abandoned_.end(), back), abandoned_.end());
  abandoned_.push_back(std::move(worker_));
  worker_ = {};
}

void PolicyThread::report_bad_answer(const std::string& plugin, const std::string& what) {
  state_->report_bad_answer(plugin, what);
}

std::vector<PluginState> PolicyThread::states() const { return state_->states(); }

void PolicyThread::quarantine(const std::string& plugin, const std::string& why) { state_->quarantine(plugin, why); }

Status PolicyThread::reset(const std::string& plugin) { return state_->reset(plugin); }

bool PolicyThread::has_abandoned_calls() const { return state_->has_abandoned_runs(); }

}  // namespace topolet
