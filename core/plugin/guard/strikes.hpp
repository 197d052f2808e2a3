// Three strikes: how much misbehaviour puts a plugin into quarantine.
#pragma once

#include <chrono>
#include <cstddef>

namespace topolet::plugin {

inline constexpr std::size_t kStrikes = 3;
inline constexpr std::chrono::minutes kStrikeWindow{10};

/// Returns true if kStrikes of `strikes`, which are in the order of time, lie within kStrikeWindow. `time_of` gives the
/// time of one.
template <class List, class TimeOf>
bool has_struck_out(const List& strikes, TimeOf time_of) {
  for (std::size_t last = kStrikes - 1; last < strikes.size(); ++last) {
    if (time_of(strikes[last]) - time_of(strikes[last - (kStrikes - 1)]) <= kStrikeWindow) return true;
  }
  return false;
}

}  // namespace topolet::plugin
