// Times as the Kubernetes API writes them.
#pragma once

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <string>

namespace topolet::api {

/// Now: "2026-01-31T12:00:00Z".
inline std::string time_text() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

}  // namespace topolet::api
