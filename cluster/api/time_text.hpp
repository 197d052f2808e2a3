// Times as the Kubernetes API writes them.
#pragma once

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <string>

namespace topolet::api {

/// "2026-01-31T12:00:00Z". `wall_time`: since the Unix epoch.
inline std::string time_text(std::chrono::milliseconds wall_time) {
  const std::time_t seconds = std::chrono::floor<std::chrono::seconds>(wall_time).count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(seconds));
}

}  // namespace topolet::api
