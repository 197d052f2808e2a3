#include "core/plugin/policy_thread_state.hpp"

#include <fmt/format.h>

namespace topolet {

void PolicyThread::State::post(std::shared_ptr<Run> run) {
  MutexLock lock(mutex_);
  next_ = std::move(run);
  to_worker_.notify_one();
}

void PolicyThread::State::stop() {
  MutexLock lock(mutex_);
  stopping_ = true;
  to_worker_.notify_all();
}

std::shared_ptr<PolicyThread::Run> PolicyThread::State::take() {
  MutexLock lock(mutex_);
  while (next_ == nullptr && !stopping_) to_worker_.wait(mutex_);
  return std::exchange(next_, nullptr);
}

bool PolicyThread::State::finish(std::shared_ptr<Run> run) {
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

std::optional<PolicyThread::LostVote> PolicyThread::State::wait_for(Run& run) {
  MutexLock lock(mutex_);
  while (!run.done) {
    const auto now = std::chrono::steady_clock::now();
    // A call that begins after this look can't be late before the look after it.
    const auto until = (run.call ? run.call->began_really : now) + options_.deadline;
    if (now >= until) return give_up(run);
    to_caller_.wait_until(mutex_, until);
  }
  return std::nullopt;
}

std::optional<Error> PolicyThread::State::enter(Run& run, const std::string& plugin, PluginPolicy* policy) {
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
  run.call = Run::Call{plugin, policy, options_.clock.steady(), std::chrono::steady_clock::now()};
  return std::nullopt;
}

void PolicyThread::State::leave(Run& run, const Error* error) {
  MutexLock lock(mutex_);
  const Run::Call call = *std::exchange(run.call, std::nullopt);
  Record& record = records_[call.plugin];
  if (run.abandoned) {
    judge_call_inside(call.plugin, record);
    record.seen.call_inside = false;
    return;
  }
  record.times.add(std::chrono::steady_clock::now() - call.began_really);
  if (error == nullptr) return;
  const bool failed = error->code == Code::kInternal;
  ++(failed ? record.seen.lost.failed : record.seen.lost.declined);
  log_lost_vote(error->message);
  if (failed) strike_bad(call.plugin, record, error->message);
}

void PolicyThread::State::report_bad_answer(const std::string& plugin, const std::string& what) {
  MutexLock lock(mutex_);
  Record& record = records_[plugin];
  ++record.seen.lost.failed;
  log_lost_vote(fmt::format("{}: {}", plugin, what));
  strike_bad(plugin, record, what);
}

void PolicyThread::State::quarantine(const std::string& plugin, const std::string& why) {
  MutexLock lock(mutex_);
  Record& record = records_[plugin];
  const bool before = record.conduct.quarantined();
  record.conduct.quarantine(why);
  tell_quarantine(plugin, record, before);
}

std::vector<PluginState> PolicyThread::State::states() {
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

Status PolicyThread::State::reset(const std::string& plugin) {
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

bool PolicyThread::State::has_abandoned_runs() {
  MutexLock lock(mutex_);
  return abandoned_runs_ > 0;
}

std::optional<std::chrono::milliseconds> PolicyThread::State::until_tick(const PluginPolicy* plugin) {
  if (plugin == nullptr || plugin->tick_interval().count() == 0) return std::nullopt;
  MutexLock lock(mutex_);
  const std::optional<Conduct::Time>& last = records_[plugin->name()].last_tick;
  if (!last) return std::chrono::milliseconds(0);
  return std::chrono::ceil<std::chrono::milliseconds>(*last + plugin->tick_interval() - options_.clock.steady());
}

std::chrono::milliseconds PolicyThread::State::note_tick(const std::string& plugin) {
  MutexLock lock(mutex_);
  const Conduct::Time now = options_.clock.steady();
  records_[plugin].last_tick = now;
  return std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch());
}

std::shared_ptr<const TopologyView> PolicyThread::State::topology_view(
    const std::shared_ptr<const Topology>& topology) {
  MutexLock lock(mutex_);
  if (topology_view_ == nullptr || topology_view_->topology() != topology) {
    topology_view_ = std::make_shared<const TopologyView>(topology);
  }
  return topology_view_;
}

PolicyThread::LostVote PolicyThread::State::give_up(Run& run) {
  run.abandoned = true;
  ++abandoned_runs_;
  const Run::Call& call = *run.call;
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

void PolicyThread::State::judge_call_inside(const std::string& plugin, Record& record) {
  const auto limit = options_.deadline * Conduct::kHopelessDeadlines;
  if (!record.seen.call_inside || options_.clock.steady() - record.inside_since < limit) return;
  const bool before = record.conduct.quarantined();
  record.conduct.strike_hopeless(fmt::format("a call took {} times the deadline of {} ms or more",
                                             Conduct::kHopelessDeadlines, options_.deadline.count()));
  tell_quarantine(plugin, record, before);
}

void PolicyThread::State::strike_bad(const std::string& plugin, Record& record, const std::string& what) {
  const bool before = record.conduct.quarantined();
  record.conduct.strike_bad(options_.clock.steady(), what);
  tell_quarantine(plugin, record, before);
}

void PolicyThread::State::log_lost_vote(const std::string& what) {
  options_.log->warn("plugin {}; its vote is lost", what);
}

void PolicyThread::State::tell_quarantine(const std::string& plugin, const Record& record, bool before) {
  if (before || !record.conduct.quarantined()) return;
  options_.log->error("plugin {} is in quarantine and not asked any more: {}", plugin, record.conduct.why());
  if (options_.on_quarantine) options_.on_quarantine(plugin, record.conduct.why());
}

}  // namespace topolet
