#include "core/plugin/call/plugin_records.hpp"

#include <fmt/format.h>

namespace topolet::plugin {

std::optional<Error> PluginRecords::enter(const std::string& plugin, const char* missed) {
  MutexLock lock(mutex_);
  PluginRecord& record = records_[plugin];
  quarantine_if_overlong(plugin, record);
  if (record.misbehaviour.quarantined()) {
    ++record.seen.lost.not_asked;
    return Error{Code::kFailedPrecondition, fmt::format("{}: in quarantine: {}", plugin, record.misbehaviour.why())};
  }
  if (record.seen.has_abandoned_call) {
    ++record.seen.lost.not_asked;
    return Error{Code::kFailedPrecondition, fmt::format("{}: an earlier call has not returned", plugin)};
  }
  if (missed != nullptr) {
    ++record.seen.lost.out_of_time;
    // The same words each time: a denial that is repeated is known by them.
    Error error{Code::kDeadlineExceeded,
                fmt::format("{}: was not asked to {}: the decision had taken {} ms already (placement.decision-ms)",
                            plugin, missed, options_.decision_time.count())};
    log_lost_vote(error.message);
    return error;
  }
  ++record.seen.calls;
  return std::nullopt;
}

void PluginRecords::record_return(const std::string& plugin, std::chrono::nanoseconds took,
                                  const std::optional<CallFailure>& failure) {
  MutexLock lock(mutex_);
  PluginRecord& record = records_[plugin];
  record.times.add(took);
  if (!failure) return;
  lose_vote(record, failure->fault, failure->message);
  if (failure->fault != CallFault::kDeclined) record_failed_call(plugin, record, failure->message);
}

CallFailure PluginRecords::record_late(const std::string& plugin, Time began) {
  MutexLock lock(mutex_);
  PluginRecord& record = records_[plugin];
  record.times.add(options_.deadline);
  record.seen.has_abandoned_call = true;
  record.abandoned_since = began;
  CallFailure late{CallFault::kLate, fmt::format("{}: no answer within {} ms", plugin, options_.deadline.count())};
  lose_vote(record, late.fault, late.message);
  const bool before = record.misbehaviour.quarantined();
  record.misbehaviour.record_late_call(now(), late.message);
  report_quarantine(plugin, record, before);
  return late;
}

void PluginRecords::record_late_return(const std::string& plugin) {
  MutexLock lock(mutex_);
  PluginRecord& record = records_[plugin];
  quarantine_if_overlong(plugin, record);
  record.seen.has_abandoned_call = false;
}

void PluginRecords::report_invalid_reply(const std::string& plugin, const std::string& what) {
  MutexLock lock(mutex_);
  PluginRecord& record = records_[plugin];
  lose_vote(record, CallFault::kInvalidReply, fmt::format("{}: {}", plugin, what));
  record_failed_call(plugin, record, what);
}

void PluginRecords::quarantine(const std::string& plugin, const std::string& why) {
  MutexLock lock(mutex_);
  PluginRecord& record = records_[plugin];
  const bool before = record.misbehaviour.quarantined();
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
  const bool before = found->second.misbehaviour.quarantined();
  found->second.misbehaviour.reset();
  if (before && options_.on_quarantine) options_.on_quarantine(plugin, "");
  return {};
}

std::optional<std::chrono::milliseconds> PluginRecords::until_tick(const PluginPolicy& plugin) {
  if (plugin.tick_interval().count() == 0) return std::nullopt;
  MutexLock lock(mutex_);
  const std::optional<Time>& last = records_[plugin.name()].last_tick;
  if (!last) return std::chrono::milliseconds(0);
  return std::chrono::ceil<std::chrono::milliseconds>(*last + plugin.tick_interval() - now());
}

std::chrono::milliseconds PluginRecords::record_tick(const std::string& plugin) {
  MutexLock lock(mutex_);
  const Time ticked = now();
  records_[plugin].last_tick = ticked;
  return std::chrono::duration_cast<std::chrono::milliseconds>(ticked.time_since_epoch());
}

void PluginRecords::quarantine_if_overlong(const std::string& plugin, PluginRecord& record) {
  const auto limit = options_.deadline * MisbehaviourTracker::kOverlongDeadlines;
  if (!record.seen.has_abandoned_call || now() - record.abandoned_since < limit) return;
  const bool before = record.misbehaviour.quarantined();
  record.misbehaviour.record_overlong_call(fmt::format("a call took at least {} times the deadline of {} ms",
                                                       MisbehaviourTracker::kOverlongDeadlines,
                                                       options_.deadline.count()));
  report_quarantine(plugin, record, before);
}

void PluginRecords::record_failed_call(const std::string& plugin, PluginRecord& record, const std::string& what) {
  const bool before = record.misbehaviour.quarantined();
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
      ++lost.failed;
      break;
  }
  log_lost_vote(what);
}

void PluginRecords::report_quarantine(const std::string& plugin, const PluginRecord& record, bool before) {
  if (before || !record.misbehaviour.quarantined()) return;
  options_.log->error(
      "plugin {} is in quarantine and no longer asked: {}; `topolet plugin reset {}` or a reload ends that", plugin,
      record.misbehaviour.why(), plugin);
  if (options_.on_quarantine) options_.on_quarantine(plugin, record.misbehaviour.why());
}

}  // namespace topolet::plugin
