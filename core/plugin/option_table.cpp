#include "core/plugin/option_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/plugin/barrier.hpp"

namespace topolet {

static_assert(static_cast<int>(DeclaredOption::Type::kString) == TOPOLET_OPTION_STRING);
static_assert(static_cast<int>(DeclaredOption::Type::kBool) == TOPOLET_OPTION_BOOL);
static_assert(static_cast<int>(DeclaredOption::Type::kInteger) == TOPOLET_OPTION_INTEGER);
static_assert(static_cast<int>(DeclaredOption::Type::kChoice) == TOPOLET_OPTION_CHOICE);

namespace {

Status check_integer(const DeclaredOption& option, std::string_view value) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  const bool readable = error == std::errc() && end == value.data() + value.size();
  if (readable && number >= option.minimum && number <= option.maximum) return {};
  return Error{Code::kInvalidArgument,
               fmt::format("'{}' is not a number from {} to {}", value, option.minimum, option.maximum)};
}

Result<DeclaredOption> read_option(const topolet_option& raw) {
  DeclaredOption option;
  option.name = clean_text(raw.name);
  if (!is_plain_name(option.name)) {
    return Error{Code::kInternal, fmt::format("the option name '{}' is not lower case, digits and '-'", option.name)};
  }
  if (raw.type < TOPOLET_OPTION_STRING || raw.type > TOPOLET_OPTION_CHOICE) {
    return Error{Code::kInternal, fmt::format("option {} is of the unknown type {}", option.name, raw.type)};
  }
  option.type = static_cast<DeclaredOption::Type>(raw.type);
  option.default_value = clean_text(raw.default_value);
  for (std::size_t i = 0; i < raw.allowed.count; ++i) option.allowed.push_back(clean_text(raw.allowed.items[i]));
  option.minimum = raw.minimum;
  option.maximum = raw.maximum;
  option.help = clean_text(raw.help);
  if (auto checked = check_option_value(option, option.default_value); !checked) {
    return Error{Code::kInternal, fmt::format("the default of option {}: {}", option.name, checked.error().message)};
  }
  return option;
}

}  // namespace

bool is_plain_name(std::string_view name) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
  return !name.empty() && name.size() <= 64 && name.front() != '-' && std::all_of(name.begin(), name.end(), plain);
}

Status check_option_value(const DeclaredOption& option, std::string_view value) {
  const auto expect = [value](bool right, const std::string& what) -> Status {
    if (right) return {};
    return Error{Code::kInvalidArgument, fmt::format("'{}' is not {}", value, what)};
  };
  switch (option.type) {
    case DeclaredOption::Type::kString:
      return {};
    case DeclaredOption::Type::kBool:
      return expect(value == "true" || value == "false", "true or false");
    case DeclaredOption::Type::kInteger:
      return check_integer(option, value);
    case DeclaredOption::Type::kChoice:
      return expect(std::find(option.allowed.begin(), option.allowed.end(), value) != option.allowed.end(),
                    fmt::format("one of {}", fmt::join(option.allowed, ", ")));
  }
  return {};
}

PluginOption to_plugin_option(const DeclaredOption& option) {
  PluginOption known;
  known.name = option.name;
  known.default_value = option.default_value;
  known.allowed = option.allowed;
  known.help = option.help;
  if (option.type == DeclaredOption::Type::kBool) known.type = OptionType::kBool;
  if (option.type == DeclaredOption::Type::kInteger) {
    known.type = OptionType::kInt;
    known.least = option.minimum;
    known.most = option.maximum;
  }
  return known;
}

Result<std::vector<DeclaredOption>> read_option_table(const topolet_plugin_entry& entry) {
  std::vector<DeclaredOption> options;
  if (entry.option_count == 0) return options;
  if (entry.options == nullptr || !TOPOLET_STRIDE_HAS(entry.option_stride, topolet_option, help)) {
    return Error{Code::kInternal,
                 fmt::format("its option table has elements of {} bytes, too few", entry.option_stride)};
  }
  for (std::uint32_t i = 0; i < entry.option_count; ++i) {
    auto option = read_option(*TOPOLET_AT(topolet_option, entry.options, entry.option_stride, i));
    if (!option) return option.error();
    const auto same_name = [&option](const DeclaredOption& other) { return other.name == option->name; };
    if (std::any_of(options.begin(), options.end(), same_name)) {
      return Error{Code::kInternal, fmt::format("option {} is in its table twice", option->name)};
    }
    options.push_back(*std::move(option));
  }
  return options;
}

}  // namespace topolet
