// topolet config show: what the configuration says, and which file and line says it.
#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/escape.hpp"
#include "core/cli/command.hpp"
#include "core/cli/options.hpp"
#include "core/cli/output.hpp"
#include "core/cli/table.hpp"
#include "core/plugin/host/inspect_plugins.hpp"

namespace topolet::cli {
namespace {

using config::ConfigEntry;
using config::RawConfig;
using OrderedJson = nlohmann::ordered_json;

/// One value of an option; without a file it is the default.
struct ShownValue {
  ConfigEntry entry;
  std::vector<ConfigEntry> replaced = {};  ///< what earlier files say of the option; with its first value only
};

bool is_same_option(const ConfigEntry& a, const ConfigEntry& b) { return a.section == b.section && a.key == b.key; }

std::string place_of(const ConfigEntry& entry) { return fmt::format("{}:{}", entry.file, entry.line); }

std::vector<ShownValue> set_values(const RawConfig& raw) {
  std::vector<ShownValue> values;
  for (const ConfigEntry& entry : raw.entries) {
    ShownValue value{entry};
    const bool is_first = std::none_of(values.begin(), values.end(),
                                       [&](const auto& before) { return is_same_option(before.entry, entry); });
    if (is_first) {
      std::copy_if(raw.replaced.begin(), raw.replaced.end(), std::back_inserter(value.replaced),
                   [&](const ConfigEntry& other) { return is_same_option(other, entry); });
    }
    values.push_back(std::move(value));
  }
  return values;
}

void add_defaults(std::vector<ShownValue>& values, const std::vector<config::OptionSpec>& options) {
  for (const config::OptionSpec& option : options) {
    const ConfigEntry unset{option.section, option.key, {}};
    if (std::any_of(values.begin(), values.end(), [&](const auto& set) { return is_same_option(set.entry, unset); }))
      continue;
    if (option.required) continue;
    for (const std::string& value : option.defaults)
      values.push_back({{option.section, option.key, value.empty() ? value : shown_value(option, value)}});
  }
}

/// The core's first, then as they come.
std::vector<std::string> sections_shown(const std::vector<ShownValue>& values) {
  std::vector<std::string> sections = {"", "daemon", "placement", "nri", "plugins"};
  for (const ShownValue& value : values) {
    if (std::find(sections.begin(), sections.end(), value.entry.section) == sections.end())
      sections.push_back(value.entry.section);
  }
  return sections;
}

std::string origin_of(const ShownValue& value) {
  if (value.entry.file.empty()) return "the default";
  std::string origin = place_of(value.entry);
  for (const ConfigEntry& other : value.replaced)
    origin +=
        fmt::format("; takes the place of {} in {}", other.value.empty() ? "nothing" : other.value, place_of(other));
  return origin;
}

void print_head(const std::string& section) {
  print_line("");
  print_line("[" + section + "]");
}

/// It can be read as a configuration again.
void print_as_text(const RawConfig& raw, const std::vector<ShownValue>& values) {
  for (const std::string& file : raw.files) print_line("# " + file);
  for (const std::string& file : raw.ignored) print_line("# not read, as its name is none of a part: " + file);
  for (const std::string& section : sections_shown(values)) {
    bool has_head = section.empty();
    for (const ShownValue& value : values) {
      if (value.entry.section != section) continue;
      if (!std::exchange(has_head, true)) print_head(section);
      print_line(fmt::format("{} = {}   # {}", value.entry.key, value.entry.value, origin_of(value)));
    }
  }
}

OrderedJson json_of_entry(const ConfigEntry& entry) {
  OrderedJson json{{"option", entry.section + '.' + entry.key}, {"value", entry.value}};
  if (entry.file.empty()) return json;
  json["file"] = entry.file;
  json["line"] = entry.line;
  return json;
}

void print_as_json(const RawConfig& raw, const std::vector<ShownValue>& values,
                   const std::vector<std::string>& mistakes) {
  OrderedJson list = OrderedJson::array();
  for (const ShownValue& value : values) {
    OrderedJson json = json_of_entry(value.entry);
    for (const ConfigEntry& other : value.replaced) json["replaced"].push_back(json_of_entry(other));
    list.push_back(std::move(json));
  }
  fmt::print("{}",
             to_text({{"files", raw.files}, {"not_read", raw.ignored}, {"values", list}, {"mistakes", mistakes}}));
}

}  // namespace

void declare_config_show(Options& options) {
  options.add_options()("config", boost::program_options::value<std::string>()->value_name("FILE"),
                        fmt::format("topoletd's configuration; {} unless given.", config::kDefaultConfigFile).c_str())(
      "all", "Also show the options that no file sets, with their defaults.");
  declare_json(options);
}

Status show_config(const Invocation& invocation) {
  std::vector<std::string> arguments;
  if (invocation.has("config")) arguments = {"--config", invocation.text("config")};
  RawConfig raw = config::read_raw(arguments);
  const std::vector<config::PluginSection> plugins = plugin::inspect_options(raw);
  std::vector<std::string> mistakes;
  for (const config::ConfigMistake& mistake : config::validate_config(raw, {}).mistakes)
    mistakes.push_back(mistake.to_string());
  raw.entries = without_secrets(std::move(raw.entries), plugins);
  raw.replaced = without_secrets(std::move(raw.replaced), plugins);
  std::vector<ShownValue> values = set_values(raw);
  if (invocation.has("all")) add_defaults(values, all_options(enabled_plugins(raw).enabled, plugins));
  if (invocation.has("json")) {
    print_as_json(raw, values, mistakes);
    return mistakes.empty() ? Status() : Status(Error{Code::kFailedPrecondition, ""});
  }
  print_as_text(raw, values);
  if (mistakes.empty()) return {};
  return listed_error(Code::kFailedPrecondition, raw.file.string() + " has mistakes:", mistakes);
}

}  // namespace topolet::cli
