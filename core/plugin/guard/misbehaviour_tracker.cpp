#include "core/plugin/guard/misbehaviour_tracker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/plugin/guard/strikes.hpp"

namespace topolet::plugin {
namespace {

/// Adds a strike. Returns true if that makes `limit` of them within the window.
bool strike(std::deque<MisbehaviourTracker::Time>& times, MisbehaviourTracker::Time now, std::size_t limit) {
  times.push_back(now);
  if (times.size() > limit) times.pop_front();
  return times.size() == limit && now - times.front() <= kStrikeWindow;
}

std::size_t count_lately(const std::deque<MisbehaviourTracker::Time>& times, MisbehaviourTracker::Time now) {
  return static_cast<std::size_t>(
      std::count_if(times.begin(), times.end(), [now](auto time) { return now - time <= kStrikeWindow; }));
}

std::string too_often(const char* kind, std::size_t limit, const std::string& what) {
  return fmt::format("{} {} times in {} minutes, last: {}", kind, limit, kStrikeWindow.count(), what);
}

}  // namespace

void MisbehaviourTracker::record_late_call(Time now, CallKind kind, const std::string& what) {
  const bool is_vote = kind == CallKind::kForVote;
  const std::size_t limit = is_vote ? kStrikes : kLateTicks;
  const bool struck_out = strike(is_vote ? late_votes_ : late_ticks_, now, limit);
  if (std::exchange(on_trial_, false)) {
    suspend(now, kind, "late in its trial: " + what);
  } else if (struck_out && !quarantined()) {
    suspend(now, kind, too_often(is_vote ? "late" : "late in ticks", limit, what));
  }
}

void MisbehaviourTracker::record_failed_call(Time now, const std::string& what) {
  const bool struck_out = strike(failed_, now, kStrikes);
  const bool on_trial = std::exchange(on_trial_, false);
  if (struck_out && (suspension_ || !quarantined())) {
    suspension_.reset();
    why_ = too_often("failed", kStrikes, what);
  } else if (on_trial) {
    suspend(now, suspension_->kind, "failed in its trial: " + what);
  }
}

void MisbehaviourTracker::record_overlong_call(Time now, const std::string& what) {
  if (!quarantined()) suspend(now, CallKind::kForVote, what);
}

void MisbehaviourTracker::record_good_call(Time now) {
  if (!std::exchange(on_trial_, false)) return;
  suspension_.reset();
  why_.clear();
  late_votes_.clear();
  late_ticks_.clear();
  ended_ = now;
}

void MisbehaviourTracker::quarantine(const std::string& why) {
  if (quarantined() && !suspension_) return;
  suspension_.reset();
  on_trial_ = false;
  why_ = why;
}

std::size_t MisbehaviourTracker::late_lately(Time now) const {
  return count_lately(late_votes_, now) + count_lately(late_ticks_, now);
}

std::size_t MisbehaviourTracker::failed_lately(Time now) const { return count_lately(failed_, now); }

std::optional<MisbehaviourTracker::Time> MisbehaviourTracker::trial_at() const {
  return suspension_ ? std::optional(suspension_->trial_at) : std::nullopt;
}

bool MisbehaviourTracker::may_be_tried(Time now, CallKind kind) const {
  return suspension_ && suspension_->kind == kind && now >= suspension_->trial_at;
}

void MisbehaviourTracker::suspend(Time now, CallKind kind, const std::string& why) {
  const bool behaved = ended_ && now - *std::exchange(ended_, std::nullopt) >= wait_;
  wait_ = wait_.count() == 0 || behaved ? kFirstWait : std::min(2 * wait_, kLongestWait);
  suspension_ = {kind, now + wait_};
  why_ = why;
}

}  // namespace topolet::plugin
