// The line that no exception of a plugin crosses.
#pragma once

#include <topolet/abi.h>

#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace topolet {

inline constexpr std::size_t kMaxPluginTextBytes = 1024;

/// A plugin's text, fit for a log line and the database: cut at kMaxPluginTextBytes, control characters as spaces.
std::string clean_text(topolet_str text);

/// Calls into a plugin. Returns what it threw, as words, or nothing if it returned.
template <class Call>
std::optional<std::string> thrown_by(Call&& call) {
  try {
    std::forward<Call>(call)();
    return std::nullopt;
  } catch (const std::exception& exception) {
    const std::string_view what = exception.what();
    return "threw: " + clean_text({what.data(), what.size()});
  } catch (...) {
    return "threw something that is not a std::exception";
  }
}

}  // namespace topolet
