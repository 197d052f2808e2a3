// Moments as people write them.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/result.hpp"

namespace topolet::audit {

/// Milliseconds since 1970 of a moment: "2026-01-31T12:00:00.250Z" as the database's views show it, with "+01:00" in
/// place of Z, or without either for local time; "2026-01-31 12:00", "2026-01-31"; "12:00", "yesterday 12:00",
/// "yesterday"; "now", and "90s", "15m", "2h", "7d" for so long ago; milliseconds as a number of 12 digits or more.
/// INVALID_ARGUMENT tells what may be written.
Result<std::int64_t> parse_time(std::string_view text, std::int64_t now_ms);

/// "90s", "15m", "2h", "7d" as milliseconds; INVALID_ARGUMENT for what is none of that.
Result<std::int64_t> parse_duration(std::string_view text);

}  // namespace topolet::audit
