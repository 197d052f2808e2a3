// Times that others have written into objects of the Kubernetes API.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace topolet::api {

/// "2026-01-31T12:00:00Z", with a fraction of a second, and with "+01:00" in place of Z: since 1970. Nothing for what
/// is not a time.
/// Source: RFC 3339, section 5.6.
std::optional<std::chrono::milliseconds> parse_rfc3339(std::string_view text);

}  // namespace topolet::api
