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

/// `minimum` and `maximum` are allowed values; both 0: any.
constexpr topolet_option integer_option(std::string_view name, std::string_view default_value, std::int64_t minimum,
                                        std::int64_t maximum, std::string_view help) {
  return {borrow(name), TOPOLET_OPTION_INTEGER, 0, borrow(default_value), {nullptr, 0}, minimum, maximum, borrow(help)};
}

/// A decimal number, such as "0.5", from `minimum` to `maximum`; both 0: any.
constexpr topolet_option float_option(std::string_view name, std::string_view default_value, std::int64_t minimum,
                                      std::int64_t maximum, std::string_view help) {
  return {borrow(name), TOPOLET_OPTION_FLOAT, 0, borrow(default_value), {nullptr, 0}, minimum, maximum, borrow(help)};
}

/// "250ms", "5s", "10m"; bounds in milliseconds, both 0: any. Read it with Options::milliseconds().
constexpr topolet_option duration_option(std::string_view name, std::string_view default_value, std::int64_t minimum_ms,
                                         std::int64_t maximum_ms, std::string_view help) {
  return {borrow(name), TOPOLET_OPTION_DURATION, 0, borrow(default_value), {nullptr, 0}, minimum_ms, maximum_ms,
          borrow(help)};
}

/// "4096", "64Mi", "2Gi"; bounds in bytes, both 0: any. Read it with Options::bytes().
constexpr topolet_option size_option(std::string_view name, std::string_view default_value, std::int64_t minimum_bytes,
                                     std::int64_t maximum_bytes, std::string_view help) {
  return {borrow(name),  TOPOLET_OPTION_SIZE, 0,           borrow(default_value), {nullptr, 0},
          minimum_bytes, maximum_bytes,       borrow(help)};
}

/// Items separated by commas. Read it with Options::list().
constexpr topolet_option list_option(std::string_view name, std::string_view default_value, std::string_view help) {
  return {borrow(name), TOPOLET_OPTION_LIST, 0, borrow(default_value), {nullptr, 0}, 0, 0, borrow(help)};
}

/// The same, where each item is one of the `allowed` values, an array with static storage.
template <std::size_t Count>
constexpr topolet_option list_option(std::string_view name, std::string_view default_value,
                                     const std::array<topolet_str, Count>& allowed, std::string_view help) {
  return {borrow(name), TOPOLET_OPTION_LIST, 0, borrow(default_value), {allowed.data(), allowed.size()}, 0, 0,
          borrow(help)};
}

/// "0-3,8". Read it with Options::cpus().
constexpr topolet_option cpulist_option(std::string_view name, std::string_view default_value, std::string_view help) {
  return {borrow(name), TOPOLET_OPTION_CPULIST, 0, borrow(default_value), {nullptr, 0}, 0, 0, borrow(help)};
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

/// The same option, which may be given on several lines. Read it with Options::all().
constexpr topolet_option repeated(topolet_option option) {
  option.flags |= TOPOLET_OPTION_REPEATED;
  return option;
}

/// The same option, without which a configuration is refused. Its default must be empty.
constexpr topolet_option required(topolet_option option) {
  option.flags |= TOPOLET_OPTION_REQUIRED;
  return option;
}

/// The same option, whose value is shown to nobody but the policy.
constexpr topolet_option secret(topolet_option option) {
  option.flags |= TOPOLET_OPTION_SECRET;
  return option;
}

}  // namespace topolet::sdk
