#include "core/plugin/host/option_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/plugin/call/barrier.hpp"

namespace topolet::plugin {
namespace {

using config::OptionSpec;
using config::OptionType;

Error malformed(std::string what) { return {Code::kInternal, std::move(what)}; }

Result<OptionSpec> read_option(const topolet_option& raw, const std::string& plugin) {
  OptionSpec option;
  option.section = plugin;
  option.key = sanitize_text(raw.name);
  if (!config::is_plain_name(option.key)) {
    return malformed(
        fmt::format("the option name '{}' is not lower-case letters, digits and dashes, beginning with a "
                    "letter",
                    option.key));
  }
  option.defaults = {sanitize_text(raw.default_value)};
  option.help = sanitize_text(raw.help);
  switch (raw.type) {
    case TOPOLET_OPTION_STRING:
      break;
    case TOPOLET_OPTION_BOOL:
      option.type = OptionType::kBool;
      break;
    case TOPOLET_OPTION_INTEGER:
      option.type = OptionType::kInt;
      option.minimum = raw.minimum;
      option.maximum = raw.maximum;
      break;
    case TOPOLET_OPTION_CHOICE:
      for (std::size_t i = 0; i < raw.allowed.count; ++i) option.allowed.push_back(sanitize_text(raw.allowed.items[i]));
      if (option.allowed.empty()) return malformed(fmt::format("option {} has no choices", option.key));
      break;
    default:
      return malformed(fmt::format("option {} has the unknown type {}", option.key, raw.type));
  }
  if (const Status fits = check_value(option, option.defaults.front()); !fits) {
    return malformed(fmt::format("the default of option {}: {}", option.key, fits.error().message));
  }
  return option;
}

}  // namespace

Result<std::vector<OptionSpec>> read_option_table(const topolet_plugin_entry& entry, const std::string& plugin) {
  std::vector<OptionSpec> options;
  if (entry.option_count == 0) return options;
  if (entry.options == nullptr || !TOPOLET_STRIDE_HAS(entry.option_stride, topolet_option, help)) {
    return malformed(fmt::format("the elements of its option table have only {} bytes", entry.option_stride));
  }
  for (std::uint32_t i = 0; i < entry.option_count; ++i) {
    auto option = read_option(*TOPOLET_AT(topolet_option, entry.options, entry.option_stride, i), plugin);
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
