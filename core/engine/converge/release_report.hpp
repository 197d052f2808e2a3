// What was taken back of what topolet has done to containers. Plain values.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.hpp"

namespace topolet::engine {

/// How much is taken back. It stays so until topoletd starts again.
enum class Released : std::uint8_t {
  kNothing,
  kLimits,   ///< memory.high and what BestEffort containers are narrowed to
  kCpusets,  ///< these, and everybody's CPUs and memory nodes
};

std::string_view to_string(Released released);  // "", "limits", "cpusets"

struct ReleaseReport {
  std::uint32_t released = 0;  ///< containers that have more than before
  /// A container that does not have it yet.
  struct Untold {
    std::string container;  ///< as display_name() says it
    std::string why;
  };
  std::vector<Untold> untold = {};
};
using OnReleased = std::function<void(const Result<ReleaseReport>&)>;

}  // namespace topolet::engine
