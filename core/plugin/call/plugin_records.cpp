#include "core/plugin/call/plugin_records.hpp"

#include <fmt/format.h>

namespace topolet::plugin {

std::optional<Error> PluginRecords::enter(const AskedCall& call, const std::optional<std::string>& missed) {
  MutexLock lock(mutex_);
  PluginRecord& record = records_[call.plugin];
  quarantine_if_overlong(call.plugin, record);
  if (std::optional<Error> refused = refusal_of(call, record)) {
    // Nobody waits for the answer of a tick.
    if (call.kind == CallKind::kForVote) ++record.seen.lost.not_asked;
    return refused;
  }
  if (missed) {
    ++record.seen.lost.out_of_time;
    // The same words each time: a denial that is repeated is known by them.
    Error error{Code::kDeadlineExceeded, fmt::format("{}: was not asked to {}", call.plugin, *missed)};
    log_lost_vote(error.message);
    return error;
  }
  if (record.misbehaviour.quarantined()) {
    record.misbehaviour.begin_trial();
    options_.log->info("plugin {}: {} is its trial: its quarantine ends if that goes well", call.plugin, call.function);
  }
  ++record.seen.calls;
  return std::nullopt;
}

std::optional<Error> PluginRecords::refusal_of(const AskedCall& call, PluginRecord& record) {
  const MisbehaviourTracker& misbehaviour = record.misbehaviour;
  // A call that the plugin cannot answer anyway is not a trial.
  if (misbehaviour.quarantined() && !(call.can && misbehaviour.may_be_tried(now(), call.kind))) {
    return Error{Code::kFailedPrecondition, fmt::format("{}: in quarantine: {}", call.plugin, misbehaviour.why())};
  }
  if (record.seen.has_abandoned_call) {
    return Error{Code::kFailedPrecondition, fmt::format("{}: an earlier call has not returned", call.plugin)};
  }
  return std::nullopt;
}

void PluginRecords::record_return(const AskedCall& call, std::chrono::nanoseconds took,
                                  const std::optional<CallFailure>& failure) {
  MutexLock lock(mutex_);
  PluginRecord& record = records_[call.plugin];
  record.times.add(took);
  if (failure) lose_vote(record, failure->fault, failure->message);
  if (failure && failure->fault != CallFault::kDeclined) {
    record_failed_call(call.plugin, record, failure->message);
  } else if (record.misbehaviour.quarantined()) {
    end_trial(call, record);
  }
}

void PluginRecords::end_trial(const AskedCall& call, PluginRecord& record) {
  record.misbehaviour.record_good_call(now());
  if (record.misbehaviour.quarantined()) return;
  options_.log->info("plugin {} is asked again: {} was in time in its trial", call.plugin, call.function);
  if (options_.on_quarantine) options_.on_quarantine(call.plugin, "");
}

CallFailure PluginRecords::record_late(const AskedCall& call, Overrun overrun, Time began,
                                       std::chrono::nanoseconds took) {
  MutexLock lock(mutex_);
  PluginRecord& record = records_[call.plugin];
  record.times.add(took);
  record.seen.has_abandoned_call = true;
  record.abandoned_since = began;
  record.abandoned_kind = call.kind;
  const std::string limit = overrun == Overrun::kCpuTime ? fmt::format("{} ms of CPU time", options_.deadline.count())
                                                         : fmt::format("{} ms", options_.longest_call().count());
  CallFailure late{CallFault::kLate, fmt::format("{}: {}: no answer within {}", call.plugin, call.function, limit)};
  if (call.kind == CallKind::kForVote) {
    lose_vote(record, late.fault, late.message);
  } else {
    ++record.seen.late_ticks;
    options_.log->warn("plugin {}; what it would have asked for is dropped", late.message);
  }
  const MisbehaviourTracker before = record.misbehaviour;
  record.misbehaviour.record_late_call(now(), call.kind, late.message);
  report_quarantine(call.plugin, record, before);
  return late;
}

void PluginRecords::record_late_return(const AskedCall& call) {
  MutexLock lock(mutex_);
  PluginRecord& record = records_[call.plugin];
  quarantine_if_overlong(call.plugin, record);
  record.seen.has_abandoned_call = false;
}

void PluginRecords::report_invalid_reply(const std::string& plugin, const std::string& what) {
  MutexLock lock(mutex_);
  PluginRecord& record = records_[plugin];
  lose_vote(record, CallFault::kInvalidReply, fmt::format("{}: {}", plugin, what));
  record_failed_call(plugin, record, what);
}

void PluginRecords::report_refused_move(const std::string& plugin, const std::string& what) {
  MutexLock lock(mutex_);
  PluginRecord& record = records_[plugin];
  ++record.seen.lost.failed;
  options_.log->warn("plugin {}: tick asked for what was refused: {}", plugin, what);
  record_failed_call(plugin, record, what);
}

void PluginRecords::quarantine(const std::string& plugin, const std::string& why) {
  MutexLock lock(mutex_);
  PluginRecord& record = records_[plugin];
  const MisbehaviourTracker before = record.misbehaviour;
  record.misbehaviour.quarantine(why);
  report_quarantine(plugin, record, before);
}

std::vector<PluginStatistics> PluginRecords::statistics() {
  MutexLock lock(mutex_);
  std::vector<PluginStatistics> states;
  for (auto& [plugin, record] : records_) {
    quarantine_if_overlong(plugin, record);
    PluginStatistics& state = states.emplace_back(record.seen);
    state.name = plugin;
    state.p99_us = record.times.p99_us();
    state.quarantine = record.misbehaviour.why();
    state.late_lately = record.misbehaviour.late_lately(now());
    state.failed_lately = record.misbehaviour.failed_lately(now());
    if (const std::optional<Time> trial = record.misbehaviour.trial_at()) {
      state.trial_at = options_.clock.wall() + std::chrono::ceil<std::chrono::milliseconds>(*trial - now());
    }
  }
  return states;
}

Status PluginRecords::reset(const std::string& plugin) {
  MutexLock lock(mutex_);
  const auto found = records_.find(plugin);
  if (found == records_.end()) {
    return Error{Code::kNotFound,
                 fmt::format("plugin {} has not been asked yet, so there is nothing to reset", plugin)};
  }
  if (found->second.seen.has_abandoned_call) {
    return Error{Code::kFailedPrecondition,
                 fmt::format("plugin {}: restart needed: an abandoned call has not returned", plugin)};
  }
  const MisbehaviourTracker before = found->second.misbehaviour;
  found->second.misbehaviour.reset();
  if (before.quarantined() && options_.on_quarantine) options_.on_quarantine(plugin, "");
  return {};
}

std::optional<std::chrono::milliseconds> PluginRecords::until_tick(const PluginPolicy& plugin) {
  if (plugin.tick_interval().count() == 0) return std::nullopt;
  MutexLock lock(mutex_);
  const std::optional<Time>& last = records_[plugin.name()].last_tick;
  if (!last) return std::chrono::milliseconds(0);
  const std::chrono::milliseconds interval =
      plugin.wants_tick() ? std::chrono::milliseconds(TOPOLET_TICK_MIN_MS) : plugin.tick_interval();
  return std::chrono::ceil<std::chrono::milliseconds>(*last + interval - now());
}

TickTime PluginRecords::record_tick(const std::string& plugin) {
  MutexLock lock(mutex_);
  const Time ticked = now();
  records_[plugin].last_tick = ticked;
  return {std::chrono::duration_cast<std::chrono::milliseconds>(ticked.time_since_epoch()), options_.clock.wall()};
}

void PluginRecords::quarantine_if_overlong(const std::string& plugin, PluginRecord& record) {
  if (!record.seen.has_abandoned_call || record.abandoned_kind != CallKind::kForVote) return;
  const auto limit = options_.longest_call() * MisbehaviourTracker::kOverlong;
  if (now() - record.abandoned_since < limit) return;
  const MisbehaviourTracker before = record.misbehaviour;
  record.misbehaviour.record_overlong_call(now(), fmt::format("a call took at least {} ms, {} times what it may",
                                                              limit.count(), MisbehaviourTracker::kOverlong));
  report_quarantine(plugin, record, before);
}

void PluginRecords::record_failed_call(const std::string& plugin, PluginRecord& record, const std::string& what) {
  const MisbehaviourTracker before = record.misbehaviour;
  record.misbehaviour.record_failed_call(now(), what);
  report_quarantine(plugin, record, before);
}

void PluginRecords::lose_vote(PluginRecord& record, CallFault fault, const std::string& what) {
  LostVotes& lost = record.seen.lost;
  switch (fault) {
    case CallFault::kLate:
      ++lost.late;
      break;
    case CallFault::kDeclined:
      ++lost.declined;
      break;
    case CallFault::kThrew:
    case CallFault::kBadStatus:
    case CallFault::kInvalidReply:
    case CallFault::kWroteToLent:
    case CallFault::kWroteToShown:
      ++lost.failed;
      break;
  }
  log_lost_vote(what);
}

void PluginRecords::report_quarantine(const std::string& plugin, const PluginRecord& record,
                                      const MisbehaviourTracker& before) {
  const MisbehaviourTracker& misbehaviour = record.misbehaviour;
  const bool is_as_before = misbehaviour.why() == before.why() && misbehaviour.trial_at() == before.trial_at();
  if (!misbehaviour.quarantined() || is_as_before) return;
  std::string why = misbehaviour.why();
  if (misbehaviour.trial_at()) why += fmt::format("; it is tried again in {} minutes", misbehaviour.wait().count());
  options_.log->error(
      "plugin {} is in quarantine and no longer asked: {}; `topolet plugin reset {}` or a reload ends that", plugin,
      why, plugin);
  if (options_.on_quarantine) options_.on_quarantine(plugin, why);
}

}  // namespace topolet::plugin
