#include "core/plugin/host/option_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/plugin/guard/barrier.hpp"
#include "core/plugin/guard/plugin_tables.hpp"

namespace topolet::plugin {
namespace {

using config::OptionSpec;
using config::OptionType;

Error malformed(std::string what) { return {Code::kInternal, std::move(what)}; }

/// Nothing of the option can be read before.
Status check_texts(const topolet_option& raw, std::uint32_t position) {
  const std::string fault_of_name = fault_of_text(raw.name);
  const std::string name =
      fault_of_name.empty() && raw.name.len > 0 ? sanitize_text(raw.name) : fmt::format("number {}", position + 1);
  const auto check = [&name](const std::string& what, const std::string& fault) -> Status {
    if (fault.empty()) return {};
    return malformed(fmt::format("{} of option {} {}", what, name, fault));
  };
  if (const Status named = check("the name", fault_of_name); !named) return named;
  if (raw.name.len == 0) return malformed(fmt::format("option {} has no name", name));
  if (const Status value = check("the default", fault_of_text(raw.default_value)); !value) return value;
  if (const Status help = check("the help", fault_of_text(raw.help)); !help) return help;
  if (const Status list = check("the list of allowed values", fault_of_list(raw.allowed.items, raw.allowed.count));
      !list) {
    return list;
  }
  for (std::size_t i = 0; i < raw.allowed.count; ++i) {
    const topolet_str& allowed = raw.allowed.items[i];
    std::string fault = fault_of_text(allowed);
    if (fault.empty() && allowed.len == 0) fault = "is empty";
    if (const Status choice = check(fmt::format("allowed value {}", i + 1), fault); !choice) return choice;
  }
  return {};
}

/// One that is not known counts as a text.
OptionType type_of(std::int32_t type) {
  switch (type) {
    case TOPOLET_OPTION_BOOL:
      return OptionType::kBool;
    case TOPOLET_OPTION_INTEGER:
      return OptionType::kInt;
    case TOPOLET_OPTION_FLOAT:
      return OptionType::kFloat;
    case TOPOLET_OPTION_DURATION:
      return OptionType::kDuration;
    case TOPOLET_OPTION_SIZE:
      return OptionType::kSize;
    case TOPOLET_OPTION_LIST:
      return OptionType::kList;
    case TOPOLET_OPTION_CPULIST:
      return OptionType::kCpus;
    default:
      return OptionType::kString;
  }
}

/// Only numbers and amounts have bounds.
Status read_bounds(const topolet_option& raw, OptionSpec& option) {
  const bool has_bounds = option.type == OptionType::kInt || option.type == OptionType::kFloat ||
                          option.type == OptionType::kDuration || option.type == OptionType::kSize;
  if (!has_bounds || (raw.minimum == 0 && raw.maximum == 0)) return {};
  if (raw.minimum > raw.maximum) {
    return malformed(
        fmt::format("option {} has the minimum {}, above its maximum {}", option.key, raw.minimum, raw.maximum));
  }
  option.minimum = raw.minimum;
  option.maximum = raw.maximum;
  return {};
}

/// A required option has none, and a repeated one need not have any.
Status read_default(const topolet_option& raw, OptionSpec& option) {
  const std::string value = sanitize_text(raw.default_value);
  const bool may_be_empty = option.required || option.repeatable;
  if (!value.empty() || !option.repeatable) option.defaults = {value};
  if (value.empty() && may_be_empty) return {};
  const Status fits = check_value(option, value);
  return fits ? Status() : malformed(fmt::format("the default of option {}: {}", option.key, fits.error().message));
}

Result<OptionSpec> read_option(const topolet_option& raw, std::uint32_t position, const std::string& plugin) {
  if (const Status readable = check_texts(raw, position); !readable) return readable.error();
  OptionSpec option;
  option.section = plugin;
  option.key = sanitize_text(raw.name);
  if (!config::is_plain_name(option.key)) {
    return malformed(
        fmt::format("the option name '{}' is not lower-case letters, digits and dashes, beginning with a "
                    "letter",
                    option.key));
  }
  option.help = sanitize_text(raw.help);
  option.type = type_of(raw.type);
  option.repeatable = (raw.flags & TOPOLET_OPTION_REPEATED) != 0;
  option.required = (raw.flags & TOPOLET_OPTION_REQUIRED) != 0;
  option.secret = (raw.flags & TOPOLET_OPTION_SECRET) != 0;
  if (const Status bounded = read_bounds(raw, option); !bounded) return bounded.error();
  if (raw.type == TOPOLET_OPTION_CHOICE || raw.type == TOPOLET_OPTION_LIST) {
    for (std::size_t i = 0; i < raw.allowed.count; ++i) option.allowed.push_back(sanitize_text(raw.allowed.items[i]));
  }
  if (raw.type == TOPOLET_OPTION_CHOICE && option.allowed.empty())
    return malformed(fmt::format("option {} has no choices", option.key));
  if (const Status has_default = read_default(raw, option); !has_default) return has_default.error();
  return option;
}

}  // namespace

Result<std::vector<OptionSpec>> read_option_table(const topolet_plugin_entry& entry, const std::string& plugin) {
  std::vector<OptionSpec> options;
  if (entry.option_count == 0) return options;
  constexpr std::size_t kLeast = offsetof(topolet_option, help) + sizeof(topolet_option::help);
  const std::string fault = fault_of_array(entry.options, entry.option_count, entry.option_stride, kLeast);
  if (!fault.empty()) return malformed("its option table " + fault);
  for (std::uint32_t i = 0; i < entry.option_count; ++i) {
    auto option = read_option(*TOPOLET_AT(topolet_option, entry.options, entry.option_stride, i), i, plugin);
    if (!option) return option.error();
    const auto same_name = [&option](const OptionSpec& other) { return other.key == option->key; };
    if (std::any_of(options.begin(), options.end(), same_name)) {
      return malformed(fmt::format("option {} is declared twice", option->key));
    }
    options.push_back(*std::move(option));
  }
  return options;
}

}  // namespace topolet::plugin
