// A simulated daemon whose store and runtime take their time.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "core/simulate/simulated_daemon.hpp"
#include "tests/support/dice.hpp"

namespace topolet::simulate {

/// Transactions and updates that are still under way when the next operations come. The same seed takes the same times.
/// No transaction takes longer than those wait who want to know that it is durable.
inline SimulationOptions with_late_writes(std::uint64_t seed) {
  const auto dice = std::make_shared<testing::Dice>(seed);
  return {.transaction_time = [dice] { return dice->up_to(std::chrono::milliseconds(dice->permille(100) ? 45 : 5)); },
          .update_time = [dice] { return dice->up_to(std::chrono::milliseconds(dice->permille(100) ? 60 : 8)); }};
}

}  // namespace topolet::simulate
