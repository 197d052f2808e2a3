#include "core/plugin/call/misbehaviour_tracker.hpp"

#include <fmt/format.h>

#include "core/plugin/host/strikes.hpp"

namespace topolet::plugin {

void MisbehaviourTracker::strike(std::deque<Time>& times, const char* kind, Time now, const std::string& what) {
  times.push_back(now);
  if (times.size() > kStrikes) times.pop_front();
  if (quarantined() || !has_struck_out(times, [](Time time) { return time; })) return;
  why_ = fmt::format("{} {} times in {} minutes, last: {}", kind, kStrikes, kStrikeWindow.count(), what);
}

void MisbehaviourTracker::quarantine(const std::string& why) {
  if (!quarantined()) why_ = why;
}

}  // namespace topolet::plugin
