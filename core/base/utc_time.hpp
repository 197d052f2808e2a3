// A moment as people read it.
#pragma once

#include <chrono>
#include <string>

namespace topolet {

/// "2026-01-31T12:00:00Z", of a time since 1970.
std::string utc_time(std::chrono::milliseconds since_epoch);

}  // namespace topolet
