// How a plugin behaves, and when it is no longer asked.
#pragma once

#include <chrono>
#include <deque>
#include <string>

namespace topolet::plugin {

/// Strikes of one plugin: late calls, and calls that threw, gave an invalid reply or wrote to what they were shown, are
/// counted apart. Three of a kind in ten minutes (strikes.hpp), or one call ten times over its deadline, put it into
/// quarantine until reset. A plain value; times come from the caller.
class MisbehaviourTracker {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr int kOverlongDeadlines = 10;

  /// A call that was abandoned, or one that failed. `what` is for people.
  void record_late_call(Time now, const std::string& what) { strike(late_, "late", now, what); }
  void record_failed_call(Time now, const std::string& what) { strike(bad_, "failed", now, what); }
  /// A call that takes, or took, kOverlongDeadlines times its deadline.
  void record_overlong_call(const std::string& what) { quarantine(what); }
  /// For what was counted elsewhere, such as crashes.
  void quarantine(const std::string& why);

  bool quarantined() const { return !why_.empty(); }
  /// Empty unless quarantined.
  const std::string& why() const { return why_; }
  void reset() { *this = {}; }

 private:
  void strike(std::deque<Time>& times, const char* kind, Time now, const std::string& what);

  std::deque<Time> late_;
  std::deque<Time> bad_;
  std::string why_;
};

}  // namespace topolet::plugin
