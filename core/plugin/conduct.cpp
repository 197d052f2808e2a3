#include "core/plugin/conduct.hpp"

#include <fmt/format.h>

namespace topolet {

void Conduct::strike(std::deque<Time>& times, const char* kind, Time now, const std::string& what) {
  times.push_back(now);
  while (now - times.front() > kWindow) times.pop_front();
  if (times.size() < kStrikes || quarantined()) return;
  why_ = fmt::format("{} {} times in {} minutes, last: {}", kind, times.size(), kWindow.count(), what);
}

void Conduct::quarantine(const std::string& why) {
  if (!quarantined()) why_ = why;
}

}  // namespace topolet
