#include "core/plugin/policy_thread.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <system_error>
#include <utility>

#include "core/plugin/barrier.hpp"
#include "core/plugin/crash_mark.hpp"
#include "core/plugin/plugin_policy.hpp"
#include "core/plugin/policy_thread_state.hpp"
#include "core/plugin/request_view.hpp"

namespace topolet {

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

  Result<std::vector<NodeSet>> propose(const PolicyRequest& request) override {
    // Most plugins propose nothing, and are not entered for it.
    if (plugin_ != nullptr && !plugin_->proposes()) return std::vector<NodeSet>();
    return ask<std::vector<NodeSet>>(
        "propose", [&] { return plugin_ != nullptr ? plugin_->propose(view(request)) : policy_->propose(request); });
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
