// Rows of a plugin's option table, for TOPOLET_PLUGIN. See <topolet/policy.hpp>.
#pragma once

#include <topolet/policy/views.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace topolet::sdk {

/// Each row borrows its texts, which must be string literals or live as long. The default is text, as in the
/// configuration file; the host checks values against the row before the plugin sees them.
constexpr topolet_option string_option(std::string_view name, std::string_view default_value, std::string_view help) {
  return {borrow(name), TOPOLET_OPTION_STRING, 0, borrow(default_value), {nullptr, 0}, 0, 0, borrow(help)};
}

/// `minimum` and `maximum` are allowed values.
constexpr topolet_option integer_option(std::string_view name, std::string_view default_value, std::int64_t minimum,
                                        std::int64_t maximum, std::string_view help) {
  return {borrow(name), TOPOLET_OPTION_INTEGER, 0, borrow(default_value), {nullptr, 0}, minimum, maximum, borrow(help)};
}

/// Off by default.
constexpr topolet_option bool_option(std::string_view name, std::string_view help) {
  return {borrow(name), TOPOLET_OPTION_BOOL, 0, borrow("false"), {nullptr, 0}, 0, 0, borrow(help)};
}

/// One of the `allowed` values, an array with static storage.
template <std::size_t Count>
constexpr topolet_option choice_option(std::string_view name, std::string_view default_value,
                                       const std::array<topolet_str, Count>& allowed, std::string_view help) {
  return {borrow(name), TOPOLET_OPTION_CHOICE, 0, borrow(default_value), {allowed.data(), allowed.size()}, 0, 0,
          borrow(help)};
}

}  // namespace topolet::sdk
