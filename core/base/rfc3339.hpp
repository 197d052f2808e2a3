// Times as texts, "2026-01-31T12:00:00Z": the one reader and the one writer of them.
// Source: RFC 3339, section 5.6.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace topolet {

// All times are since 1970 UTC. RFC 3339 has years of four digits: a time beyond them is written as the first or the
// last moment of those.

/// Writes "2026-01-31T12:00:00Z"; parts of a second are dropped.
std::string rfc3339(std::chrono::milliseconds time);
/// Writes "2026-01-31T12:00:00.250Z".
std::string rfc3339_ms(std::chrono::milliseconds time);
/// Writes "2026-01-31T12:00:00.250000Z".
std::string rfc3339_us(std::chrono::microseconds time);

/// Reads "2026-01-31T12:00:00Z", with a fraction of a second, and with "+01:00" in place of Z; nothing for any other
/// text. What a fraction has below a millisecond is dropped.
std::optional<std::chrono::milliseconds> parse_rfc3339(std::string_view text);

/// A time as a person has written it.
struct WrittenTime {
  std::chrono::milliseconds clock{};             ///< as if it were UTC
  std::optional<std::chrono::minutes> offset{};  ///< east of Greenwich; none where the text names no zone
};

/// Reads the same and shorter forms: a space in place of T, numbers of fewer digits, and no zone, seconds or time of
/// day. Nothing for any other text.
std::optional<WrittenTime> parse_written_time(std::string_view text);

}  // namespace topolet
