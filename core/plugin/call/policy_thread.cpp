#include "core/plugin/call/policy_thread.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

#include "core/base/log.hpp"
#include "core/plugin/call/abi_request.hpp"
#include "core/plugin/call/plugin_policy.hpp"
#include "core/plugin/call/plugin_records.hpp"
#include "core/plugin/call/shown_views.hpp"
#include "core/plugin/guard/abandonable_thread.hpp"
#include "core/plugin/guard/barrier.hpp"
#include "core/plugin/guard/crash_mark.hpp"

namespace topolet::plugin {

/// One attempt at a job. Shared by the caller and the thread it runs on; the last of them frees it, and with it all
/// that an abandoned call may still read.
///
/// Used by the thread that runs it, and by the caller once that is done; but on_abandoned() is called by the caller.
struct PolicyThread::Run : AbandonableTask {
  struct Call {
    AskedCall what;
    PluginPolicy* policy;  ///< null if it was not started
    bool has_turn;
    PluginRecords::Time began;
    RealTime began_real_time;
  };

  Run(std::shared_ptr<PluginRecords> its_records, std::shared_ptr<ViewCache> its_views,
      AbandonableThread<Run>& its_thread)
      : records(std::move(its_records)), thread(its_thread), shown(std::move(its_views)) {}

  void run() {
    try {
      std::optional<DecisionReads> reads;
      if (decision_began) reads.emplace();
      work(*this);
    } catch (...) {
      exception = std::current_exception();
    }
    if (!left_behind) shown.give_back();
  }

  void on_abandoned(Overrun overrun) {
    if (call->policy != nullptr) call->policy->abandon_call();
    if (call->has_turn) records->options().turns->end(call->what.plugin);
    const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - call->began_real_time;
    lost = LostVote{call->what.plugin, records->record_late(call->what, overrun, call->began, took).error()};
  }

  void release() {
    work = nullptr;
    votes = {};
    policies.clear();
    shown.retire();
    exception = nullptr;
  }

  /// Says that a call begins, or why it must not. `purpose`: what the plugin is asked to do.
  std::optional<Error> enter(AskedCall what, PluginPolicy* policy, const char* purpose) {
    if (left_behind) return Error{Code::kCancelled, "the decision was abandoned"};
    const bool is_called = policy != nullptr && what.can;
    const bool has_turn = is_called && begin_turn(what.plugin);
    const RealTime now = std::chrono::steady_clock::now();
    std::optional<std::string> missed;
    if (is_called && !has_turn) {
      missed = fmt::format("{}: an instance of it is being created or destroyed", purpose);
    } else if (what.can && decision_began && now - *decision_began >= records->options().decision_time) {
      missed = fmt::format("{}: the decision had taken {} ms already (placement.decision-ms)", purpose,
                           records->options().decision_time.count());
    }
    if (auto refused = records->enter(what, missed)) {
      if (has_turn) records->options().turns->end(what.plugin);
      return refused;
    }
    if (policy != nullptr) policy->forget_abandoned_call();
    call = Call{std::move(what), policy, has_turn, records->now(), now};
    thread.begin_call(*this, now);
    return std::nullopt;
  }

  /// Waits for the plugin's turn, but not so long that no time is left for other plugins. False if somebody else has it
  /// then.
  bool begin_turn(const std::string& plugin) const {
    const PolicyThread::Options& options = records->options();
    return options.turns->begin_until(plugin, std::chrono::steady_clock::now() + options.deadline);
  }

  /// Says that the call has returned; without a failure it answered. Returns how long it took.
  std::chrono::nanoseconds leave(const std::optional<CallFailure>& failure) {
    left_behind = !thread.end_call(*this);
    const Call ended = *std::exchange(call, std::nullopt);
    const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - ended.began_real_time;
    if (left_behind) {
      records->record_late_return(ended.what);
    } else {
      if (ended.has_turn) records->options().turns->end(ended.what.plugin);
      records->record_return(ended.what, took, failure);
    }
    return took;
  }

  const std::shared_ptr<PluginRecords> records;
  AbandonableThread<Run>& thread;          ///< which lives as long as it runs this
  std::optional<RealTime> decision_began;  ///< nothing: it is not a decision, and may take as long as its calls
  Work work;
  std::vector<std::shared_ptr<GuardedPolicy>> policies;
  placement::Votes votes;  ///< the same, as the job sees them
  std::exception_ptr exception;
  ShownViews shown;
  std::optional<Call> call;      ///< the one it is in
  bool left_behind = false;      ///< a call was abandoned
  std::optional<LostVote> lost;  ///< by that call
};

/// A plugin as the job sees it: times each call, and answers in its place where it must not be asked.
class PolicyThread::GuardedPolicy final : public placement::Policy {
 public:
  /// `run` owns this policy.
  GuardedPolicy(Run& run, const PluginVote& vote, std::optional<Error> lost)
      : run_(run), name_(vote.name), plugin_(vote.plugin), lost_(std::move(lost)) {}

  const std::string& name() const override { return name_; }

  Result<std::vector<placement::Verdict>> score(const placement::PolicyRequest& request) override {
    return ask<std::vector<placement::Verdict>>(kScore, "score the candidates",
                                                [&] { return plugin_->score(shown(request)); });
  }

  Result<std::vector<NodeSet>> propose(const placement::PolicyRequest& request) override {
    // Most plugins propose nothing, and are not entered for it.
    if (plugin_ != nullptr && !plugin_->has(kPropose)) return std::vector<NodeSet>();
    return ask<std::vector<NodeSet>>(kPropose, "propose nodes", [&] { return plugin_->propose(shown(request)); });
  }

  Result<placement::Pick> pick(const placement::PolicyRequest& request, std::size_t candidate, const CpuSet& usable,
                               std::size_t count) override {
    return ask<placement::Pick>(kPick, "pick CPUs",
                                [&] { return plugin_->pick(shown(request), candidate, usable, count); });
  }

  Result<placement::Pick> order_pick(const placement::PolicyRequest& request, std::size_t candidate,
                                     const CpuSet& usable, std::size_t count) override {
    return ask<placement::Pick>(kPick, "order the CPUs", [&] {
      return plugin_->pick(shown(request), candidate, usable, count, TOPOLET_PICK_ORDER);
    });
  }

  Result<placement::Pick> review_pick(const placement::PolicyRequest& request, std::size_t candidate,
                                      const CpuSet& usable, const CpuSet& chosen) override {
    return ask<placement::Pick>(kPick, "review the CPUs", [&] {
      return plugin_->pick(shown(request), candidate, usable, request.exclusive_cpus, TOPOLET_PICK_REVIEW, chosen);
    });
  }

  Result<placement::Adjustment> adjust(const placement::PolicyRequest& request,
                                       const placement::ChosenPlacement& chosen) override {
    return ask<placement::Adjustment>(kAdjust, "adjust the container",
                                      [&] { return plugin_->adjust(shown(request), chosen); });
  }

  std::chrono::microseconds time_spent() const override { return time_spent_; }

  Status notify(const ContainerEvent& container_event) {
    return ask<void>(kEvents, "hear of an event", [&] {
      return plugin_->notify(container_event, *run_.shown.cache().topology(container_event.topology, plugin_->known()));
    });
  }

  Result<TickAnswer> tick(const TickSnapshot& tick, const TickTime& now) {
    return ask<TickAnswer>(kTick, "look at the containers", [&] {
      const std::shared_ptr<const AbiTopology> topology = run_.shown.cache().topology(tick.topology, plugin_->known());
      const AbiLedger& ledger = run_.shown.ledger(tick.ledger, *topology, name_, plugin_->known());
      return plugin_->tick(tick, *topology, ledger, now);
    });
  }

 private:
  const AbiRequest& shown(const placement::PolicyRequest& request) {
    return run_.shown.request(request, name_, plugin_->known());
  }

  /// Once it must not be asked, it is not asked again in this run. Where it has nothing to say anyway, it does not
  /// matter that it is late.
  template <class T, class Capability, class Asking>
  Result<T> ask(const Capability& capability, const char* purpose, Asking asking) {
    if (lost_) return *lost_;
    constexpr bool kIsTick = std::is_same_v<Capability, std::decay_t<decltype(kTick)>>;
    lost_ = run_.enter({.plugin = name_,
                        .function = capability.name,
                        .kind = kIsTick ? CallKind::kForTick : CallKind::kForVote,
                        .can = plugin_ != nullptr && plugin_->has(capability)},
                       plugin_.get(), purpose);
    if (lost_) return *lost_;
    std::optional<CallResult<T>> answer;
    const auto thrown = thrown_by([&] {
      const CrashMark mark(name_.c_str(), capability.name);
      if (plugin_ == nullptr) {
        answer.emplace(CallFailure{CallFault::kDeclined, name_ + ": was not started"});
      } else {
        answer.emplace(ask_on_sound_memory<T>(capability.name, asking));
      }
    });
    if (thrown) answer.emplace(CallFailure{CallFault::kThrew, fmt::format("{}: {}", name_, *thrown)});
    const auto took = run_.leave(answer->has_value() ? std::nullopt : std::optional(answer->failure()));
    time_spent_ += std::chrono::duration_cast<std::chrono::microseconds>(took);
    return *std::move(answer);
  }

  /// Where memory that others are lent, too, was written to, the plugin is asked again on memory of its own: it may
  /// have been a thread of another one.
  template <class T, class Asking>
  CallResult<T> ask_on_sound_memory(const char* function, Asking& asking) {
    if (run_.shown.cache().lends_apart()) return ask_apart<T>(function, asking);
    CallResult<T> answer = asking();
    if (answer || answer.failure().fault != CallFault::kWroteToShown || plugin_->is_call_abandoned()) return answer;
    run_.shown.cache().lend_apart(
        fmt::format("what plugins are lent to read was written to while {} of plugin {} was running, by it or by a "
                    "thread of another",
                    function, name_));
    return ask_apart<T>(function, asking);
  }

  template <class T, class Asking>
  CallResult<T> ask_apart(const char* function, Asking& asking) {
    plugin_->watch_topology();
    if (run_.shown.were_written_by(name_, plugin_->known())) {
      return CallFailure{CallFault::kWroteToLent,
                         fmt::format("{}: was not asked to {}: it wrote to memory that it was lent to read when its "
                                     "earlier call had returned",
                                     name_, function)};
    }
    CallResult<T> answer = asking();
    if (answer) return answer;
    const CallFault fault = answer.failure().fault;
    if (fault == CallFault::kWroteToLent || fault == CallFault::kWroteToShown) {
      run_.shown.cache().check_topology();
      run_.shown.forget();
    }
    return answer;
  }

  Run& run_;
  const std::string name_;
  const std::shared_ptr<PluginPolicy> plugin_;  ///< null if it was not started
  std::optional<Error> lost_;                   ///< why it is not asked
  std::chrono::microseconds time_spent_{};
};

std::vector<PluginVote> in_order_of_votes(std::vector<PluginVote> votes) {
  std::stable_sort(votes.begin(), votes.end(), [](const PluginVote& a, const PluginVote& b) {
    return placement::wins_over(a.weight, a.name, b.weight, b.name);
  });
  return votes;
}

PolicyThread::PolicyThread(Options options)
    : records_(std::make_shared<PluginRecords>(std::move(options))),
      views_(std::make_shared<ViewCache>(records_->options().log, records_->options().clock)),
      thread_(std::make_shared<AbandonableThread<Run>>(AbandonableThread<Run>::Options{
          .name = "topolet-policy",
          .limit = records_->options().longest_call(),
          .cpu_limit = records_->options().deadline,
          .cpu_time = records_->options().cpu_time ? records_->options().cpu_time : &cpu_time_by,
          .when_idle = AbandonableThread<Run>::WhenIdle::kWait})) {}

PolicyThread::~PolicyThread() {
  MutexLock lock(run_mutex_);
  thread_->stop();
}

void PolicyThread::run(const std::vector<PluginVote>& plugins, const std::function<Work()>& make_work,
                       std::optional<RealTime> decision_began) {
  using Ending = AbandonableThread<Run>::Ending;
  MutexLock lock(run_mutex_);
  std::vector<LostVote> lost;
  while (true) {
    const std::shared_ptr<Run> attempt = prepare(plugins, make_work(), lost);
    attempt->decision_began = decision_began;
    const Result<Ending> ending = thread_->run(attempt);
    if (!ending) return run_without_plugins(plugins, make_work(), ending.error().message);
    if (*ending == Ending::kAbandoned) {
      lost.push_back(*std::move(attempt->lost));
      continue;
    }
    if (attempt->exception) std::rethrow_exception(attempt->exception);
    return;
  }
}

void PolicyThread::run_without_plugins(const std::vector<PluginVote>& plugins, Work work,
                                       const std::string& why) const {
  records_->options().log->error("plugins are not asked, as a thread for them cannot be started: {}", why);
  std::vector<LostVote> lost;
  for (const PluginVote& vote : plugins) {
    lost.push_back(
        {vote.name, {Code::kUnavailable, fmt::format("{}: a thread to ask it on cannot be started", vote.name)}});
  }
  const std::shared_ptr<Run> attempt = prepare(plugins, std::move(work), lost);
  attempt->work(*attempt);
}

void PolicyThread::publish(const std::vector<PluginVote>& plugins,
                           std::shared_ptr<const ContainerEvent> container_event) {
  views_->check_topology_now_and_then();
  for (const PluginVote& vote : plugins) {
    if (vote.plugin == nullptr || !vote.plugin->hears_of(container_event->kind)) continue;
    // A run each: an abandoned run is run again, and no plugin may be told of an event twice.
    const Status told = run_typed<Status>(
        {vote}, [container_event](Run& attempt) { return attempt.policies.front()->notify(*container_event); });
    if (!told) records_->options().log->debug("an event was not delivered: {}", told.error().message);
  }
}

std::vector<MoveRequest> PolicyThread::tick(const std::vector<PluginVote>& plugins,
                                            const std::function<std::shared_ptr<const TickSnapshot>()>& view,
                                            std::vector<std::string>* woken) {
  using Told = Result<TickAnswer>;
  views_->check_topology_now_and_then();
  std::shared_ptr<const TickSnapshot> seen;
  std::vector<MoveRequest> moves;
  for (const PluginVote& vote : plugins) {
    if (const auto until = until_tick({vote}); !until || until->count() > 0) continue;
    if (seen == nullptr) seen = view();
    if (vote.plugin->begin_tick() && woken != nullptr) woken->push_back(vote.name);
    const Told told = run_typed<Told>({vote}, [seen, now = records_->record_tick(vote.name)](Run& attempt) {
      return attempt.policies.front()->tick(*seen, now);
    });
    if (!told) {
      records_->options().log->debug("a tick failed: {}", told.error().message);
      continue;
    }
    moves.insert(moves.end(), told->moves.begin(), told->moves.end());
    if (!told->refused.empty()) records_->report_refused_move(vote.name, told->refused);
  }
  return moves;
}

std::optional<std::chrono::milliseconds> PolicyThread::until_tick(const std::vector<PluginVote>& plugins) const {
  std::optional<std::chrono::milliseconds> soonest;
  for (const PluginVote& vote : plugins) {
    if (vote.plugin == nullptr) continue;
    const auto until = records_->until_tick(*vote.plugin);
    if (until && (!soonest || *until < *soonest)) soonest = until;
  }
  if (soonest) soonest = std::max(*soonest, std::chrono::milliseconds(0));
  return soonest;
}

const placement::Votes& PolicyThread::votes_of(const Run& run) { return run.votes; }

std::shared_ptr<PolicyThread::Run> PolicyThread::prepare(const std::vector<PluginVote>& plugins, Work work,
                                                         const std::vector<LostVote>& lost) const {
  auto attempt = std::make_shared<Run>(records_, views_, *thread_);
  attempt->work = std::move(work);
  std::vector<placement::Vote> votes;
  for (const PluginVote& vote : plugins) {
    const auto is_this = [&vote](const LostVote& lost_vote) { return lost_vote.plugin == vote.name; };
    const auto lost_vote = std::find_if(lost.begin(), lost.end(), is_this);
    auto policy = std::make_shared<GuardedPolicy>(
        *attempt, vote, lost_vote == lost.end() ? std::nullopt : std::optional(lost_vote->error));
    attempt->policies.push_back(policy);
    votes.push_back({std::move(policy), vote.weight, vote.fail_closed, vote.required, vote.common_options});
  }
  attempt->votes = std::move(votes);
  return attempt;
}

void PolicyThread::report_invalid_reply(const std::string& plugin, const std::string& what) {
  records_->report_invalid_reply(plugin, what);
}

std::vector<PluginStatistics> PolicyThread::states() const { return records_->statistics(); }

void PolicyThread::quarantine(const std::string& plugin, const std::string& why) { records_->quarantine(plugin, why); }

Status PolicyThread::reset(const std::string& plugin) { return records_->reset(plugin); }

bool PolicyThread::has_abandoned_calls() const { return thread_->has_abandoned(); }

}  // namespace topolet::plugin
