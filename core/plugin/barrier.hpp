// The line that no exception of a plugin crosses.
#pragma once

#include <topolet/abi.h>

#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace topolet {

inline constexpr std::size_t kMaxPluginTextBytes = 1024;

/// A plugin's text, fit for a log line, the database and the wire: UTF-8 (what is none becomes '?'), cut at
/// kMaxPluginTextBytes, control characters as spaces.
std::string clean_text(topolet_str text);

/// Whether all of it is UTF-8.
bool is_utf8(std::string_view text);

/// Calls into a plugin. Returns what it threw, as words, or nothing if it returned.
template <class Call>
std::optional<std::string> thrown_by(Call&& call) {
  try {
    std::forward<Call>(call)();
    return std::nullopt;
  } catch (const std::exception& exception) {
    const char* const what = exception.what();
    return "threw: " + clean_text({what, what == nullptr ? 0 : std::strlen(what)});
  } catch (...) {
    return "threw something that is not a std::exception";
  }
}

}  // namespace topolet
