// A request to change the capacity that topoletd reckons with for a NUMA node, and its answer. Plain values.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/base/result.hpp"

namespace topolet::engine {

/// The effective capacity of a NUMA node's CPUs as somebody outside knows it; without `milli`, the nominal one counts
/// again.
struct CapacityRequest {
  std::uint32_t node = 0;  ///< OS index
  std::optional<std::int64_t> milli = {};
  std::chrono::milliseconds until{};  ///< wall clock; with `milli`
  std::string source = {};
};

/// The capacity that counts from now on.
struct CapacityAnswer {
  std::int64_t milli = 0;  ///< as requested, but never above nominal
  std::int64_t nominal_milli = 0;
  bool was_told = false;  ///< a capacity of the node was set before
};

using OnCapacity = std::function<void(const Result<CapacityAnswer>&)>;

}  // namespace topolet::engine
