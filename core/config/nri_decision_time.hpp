#pragma once

#include <chrono>

namespace topolet::config {

/// The longest that a decision may take with daemon.front = nri, whatever placement.decision-ms says: half of what a
/// runtime waits for an answer, unless it is configured otherwise.
inline constexpr std::chrono::milliseconds kNriDecisionTime{1000};

}  // namespace topolet::config
