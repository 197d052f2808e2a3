#pragma once

#include <chrono>
#include <functional>

namespace topolet {

/// Time, passed in so that tests and the simulator can set it.
struct Clock {
  /// Milliseconds since the Unix epoch; for people and the database.
  std::function<std::chrono::milliseconds()> wall = [] {
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch());
  };
  /// Never runs backwards; for time-outs.
  std::function<std::chrono::steady_clock::time_point()> steady = [] { return std::chrono::steady_clock::now(); };
};

}  // namespace topolet
