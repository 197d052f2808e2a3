// Tracks how a plugin behaves, and when it is no longer asked.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

namespace topolet::plugin {

/// The purpose of a call: a vote, which a container waits for, or an event, which comes with one; or a tick, between
/// decisions.
enum class CallKind : std::uint8_t { kForVote, kForTick };

/// Strikes of one plugin. Late votes, late ticks, and calls that threw, gave an invalid reply or wrote to what they
/// were shown, are counted apart. Within ten minutes (strikes.hpp), three failed calls put it into quarantine until
/// reset; three late votes, one of ten times what it may take, or ten late ticks, put it into quarantine until a trial.
///
/// The trial is the first call of the kind that was late, ten minutes later or more. If it goes well, the quarantine is
/// over; if not, the next trial is after twice that time, up to a day. So is the next quarantine's, unless the plugin
/// was out of quarantine for at least as long as it had been in it before. A plain value; times come from the caller.
class MisbehaviourTracker {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr int kOverlong = 10;
  static constexpr std::size_t kLateTicks = 10;
  static constexpr std::chrono::minutes kFirstWait{10};
  static constexpr std::chrono::minutes kLongestWait{24 * 60};

  /// A call that was abandoned, or one that failed. `what` is for people.
  void record_late_call(Time now, CallKind kind, const std::string& what);
  void record_failed_call(Time now, const std::string& what);
  /// A vote that takes, or took, kOverlong times as long as it may.
  void record_overlong_call(Time now, const std::string& what);
  /// A call that was neither late nor failed.
  void record_good_call(Time now);
  /// For what was counted elsewhere, such as crashes; until reset.
  void quarantine(const std::string& why);

  bool quarantined() const { return !why_.empty(); }
  /// Empty unless quarantined.
  const std::string& why() const { return why_; }
  /// From when on a call is its trial; nothing: it is not quarantined, or until reset.
  std::optional<Time> trial_at() const;
  /// Returns true if such a call may be its trial.
  bool may_be_tried(Time now, CallKind kind) const;
  /// Such a call begins; what is recorded next is how it went.
  void begin_trial() { on_trial_ = suspension_.has_value(); }
  /// Votes and ticks that were late, and calls that failed, within ten minutes; not more than put it into quarantine.
  std::size_t late_lately(Time now) const;
  std::size_t failed_lately(Time now) const;
  /// From the beginning of the last quarantine, or its last trial, to the next trial.
  std::chrono::minutes wait() const { return wait_; }
  void reset() { *this = {}; }

 private:
  struct Suspension {
    CallKind kind;
    Time trial_at;
  };

  void suspend(Time now, CallKind kind, const std::string& why);

  std::deque<Time> late_votes_;
  std::deque<Time> late_ticks_;
  std::deque<Time> failed_;
  std::string why_;
  std::optional<Suspension> suspension_;  ///< a quarantine that a trial ends
  bool on_trial_ = false;
  std::chrono::minutes wait_{};
  std::optional<Time> ended_;  ///< the last suspension, by a trial
};

}  // namespace topolet::plugin
