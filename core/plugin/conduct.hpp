// How a plugin behaves, and when it is no longer asked.
#pragma once

#include <chrono>
#include <deque>
#include <string>

namespace topolet {

/// Strikes of one plugin: late calls, and calls that threw or gave nonsense, are counted apart. Three of a kind in ten
/// minutes, or one call ten times over its deadline, put it into quarantine until reset. A plain value; times come
/// from the caller.
class Conduct {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::size_t kStrikes = 3;
  static constexpr std::chrono::minutes kWindow{10};
  static constexpr int kHopelessDeadlines = 10;

  /// A call that was given up on, or an answer that cannot be used. `what` is for people.
  void strike_late(Time now, const std::string& what) { strike(late_, "late", now, what); }
  void strike_bad(Time now, const std::string& what) { strike(bad_, "failed", now, what); }
  /// A call that takes, or took, kHopelessDeadlines times its deadline.
  void strike_hopeless(const std::string& what) { quarantine(what); }
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

}  // namespace topolet
