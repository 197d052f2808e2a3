// A simulated daemon whose store and runtime take their time.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <random>

#include "core/simulate/simulated_daemon.hpp"

namespace topolet::simulate {

/// Transactions and updates that are still under way when the next operations come. The same seed takes the same times.
/// No transaction takes longer than those wait who want to know that it is durable.
inline SimulationOptions with_late_writes(std::uint64_t seed) {
  const auto random = std::make_shared<std::mt19937_64>(seed);
  const auto mostly = [random](std::uint64_t longest_ms, std::uint64_t seldom_longest_ms) {
    const std::uint64_t longest = (*random)() % 10 == 0 ? seldom_longest_ms : longest_ms;
    return std::chrono::milliseconds((*random)() % (longest + 1));
  };
  return {.transaction_time = [mostly] { return mostly(5, 45); }, .update_time = [mostly] { return mostly(8, 60); }};
}

}  // namespace topolet::simulate
