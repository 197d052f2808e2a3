// Stops a plugin's exceptions, and makes its texts harmless.
//
// The room core/plugin/guard, namespace topolet::plugin: protects topoletd from what a plugin may do. Exceptions and
// texts end here, sizes and pointers are checked (plugin_tables.hpp), calls that do not return are left behind
// (abandonable_thread.hpp, control_thread.hpp), memory is lent so that a write to it is noticed (lent_block.hpp),
// crashes are recorded (crash_mark.hpp, crash_log.hpp), and misbehaviour is counted (misbehaviour_tracker.hpp). It may
// include core/base and the SDK's headers; it knows neither core/plugin/call nor core/plugin/host.
#pragma once

#include <topolet/abi.h>

#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/forked_child.hpp"

namespace topolet::plugin {

inline constexpr std::size_t kMaxPluginTextBytes = 1024;

/// A plugin's text as it can go into a log line, the database and a message: bytes that are not UTF-8 become '?',
/// control characters become spaces, and what exceeds kMaxPluginTextBytes is cut off.
std::string sanitize_text(topolet_str text);

/// Calls into a plugin. Returns what it threw as a text, or nothing if it returned. A child that was forked in the call
/// ends here.
template <class Call>
std::optional<std::string> thrown_by(Call&& call) {
  try {
    std::forward<Call>(call)();
    end_if_forked_child();
    return std::nullopt;
  } catch (const std::exception& exception) {
    end_if_forked_child();
    const char* const what = exception.what();
    return "threw: " + sanitize_text({what, what == nullptr ? 0 : std::strlen(what)});
  } catch (...) {
    end_if_forked_child();
    return "threw something that is not a std::exception";
  }
}

}  // namespace topolet::plugin
