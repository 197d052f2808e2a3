#include "tests/fuzz/config_properties.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <sstream>
#include <vector>

#include "core/config/options.hpp"

namespace topolet {
namespace {

using config::ConfigEntry;
using config::ConfigMistake;
using config::Options;
using config::OptionType;
using config::RawConfig;

constexpr const char* kFile = "fuzzed.conf";

const std::vector<config::PluginSection> kPlugins = {
    {"numa",
     {{"numa", "policy", OptionType::kString, {"best-effort"}, {"none", "best-effort"}, "How strictly."},
      {"numa", "strict", OptionType::kBool, {"false"}, {}, "Whether."},
      {"numa", "width", OptionType::kInt, {"2"}, {}, "How wide."}}}};

RawConfig read(const std::string& text) {
  RawConfig raw;
  raw.file = kFile;
  config::read_config_text(raw, kFile, text);
  return raw;
}

/// Sections and entries in the order of their lines. Without a space before it, a '#' begins no comment. A line before
/// them keeps a byte order mark within a key from being
/// the first bytes of the text.
std::string print(const RawConfig& raw) {
  std::map<std::size_t, std::string> lines;
  for (const config::SectionHeader& header : raw.sections) lines[header.line] = "[" + header.name + "]\n";
  for (const ConfigEntry& entry : raw.entries) lines[entry.line] = entry.key + " =" + entry.value + "\n";
  std::string text = "# normalised\n";
  for (const auto& [line, content] : lines) text += content;
  return text;
}

bool same_entries(const RawConfig& a, const RawConfig& b) {
  const auto same = [](const ConfigEntry& x, const ConfigEntry& y) {
    return x.section == y.section && x.key == y.key && x.value == y.value;
  };
  return std::equal(a.entries.begin(), a.entries.end(), b.entries.begin(), b.entries.end(), same);
}

std::string mistake_violation(const std::vector<ConfigMistake>& mistakes, const std::string& text) {
  const auto lines = static_cast<std::size_t>(1 + std::count(text.begin(), text.end(), '\n'));
  for (const ConfigMistake& mistake : mistakes) {
    if (mistake.file != kFile || mistake.message.empty()) return "a mistake without file or message";
    if (mistake.line < 1 || mistake.line > lines)
      return "a mistake in a line that is not there: " + mistake.to_string();
  }
  return {};
}

std::string duration_text(std::chrono::milliseconds duration) {
  const std::int64_t ms = duration.count();
  return std::to_string(ms / 3'600'000) + "h" + std::to_string(ms / 60'000 % 60) + "m" +
         std::to_string(ms / 1000 % 60) + "s" + std::to_string(ms % 1000) + "ms";
}

std::string duration_violation(const RawConfig& raw) {
  for (const ConfigEntry& entry : raw.entries) {
    const auto duration = config::parse_duration(entry.value);
    if (!duration) continue;
    const auto again = config::parse_duration(duration_text(*duration));
    if (!again || *again != *duration) return "a duration that is read as another: " + entry.value;
  }
  return {};
}

/// All options in one line.
std::string summary(const Options& options) {
  const config::DaemonOptions& daemon = options.daemon;
  const config::PlacementOptions& placement = options.placement;
  std::ostringstream text;
  text << daemon.listen << ' ' << daemon.control << ' ' << daemon.runtime << ' ' << daemon.image << ' '
       << daemon.state_dir << ' ' << daemon.plugin_dir << ' ' << daemon.log_level << ' '
       << static_cast<int>(daemon.durability) << ' ' << daemon.store_patience.count() << ' '
       << daemon.retention.keep.count() << ' ' << daemon.retention.keep_bytes << ' ' << daemon.max_connections << ' '
       << daemon.max_memory_bytes << ' ' << daemon.max_message_bytes << ' ' << daemon.max_metadata_bytes << ' '
       << placement.reserved_cpus.to_string() << ' ' << placement.allowed_cpus.value_or(CpuSet()).to_string() << ' '
       << placement.rules.min_shared_cpus << ' ' << static_cast<int>(placement.rules.exclusive) << ' '
       << static_cast<int>(placement.rules.when_full) << ' ' << placement.rules.crash_hold.count() << ' '
       << placement.rules.memory_migrate << ' ' << placement.pending_timeout.count() << ' '
       << placement.start_grace.count() << ' ' << placement.deadline.count() << ' ' << placement.plugin_timeout.count();
  for (const std::string& name : placement.rules.reserved_namespaces) text << " namespace " << name;
  for (const std::string& name : placement.rules.annotations.value_or(std::vector<std::string>{"all"}))
    text << " annotation " << name;
  for (const std::string& name : placement.handlers.only.value_or(std::vector<std::string>{"all"}))
    text << " handler " << name;
  text << " confine " << placement.confine_foreign;
  for (const std::string& pattern : placement.handlers.foreign) text << " foreign " << pattern;
  for (const config::PluginOptions& plugin : options.plugins) {
    text << " plugin " << plugin.name << ' ' << plugin.weight << plugin.fail_closed << plugin.required;
    for (const auto& [name, value] : plugin.values) text << ' ' << name << '=' << value;
  }
  return text.str();
}

bool within_bounds(const Options& options) {
  const config::DaemonOptions& daemon = options.daemon;
  const auto is_path = [](const std::string& path) { return !path.empty() && path.front() == '/'; };
  return is_path(daemon.listen) && is_path(daemon.control) && is_path(daemon.runtime) && is_path(daemon.image) &&
         daemon.state_dir.is_absolute() && daemon.plugin_dir.is_absolute() && daemon.max_connections >= 8 &&
         daemon.max_memory_bytes >= (std::size_t{128} << 20) && daemon.max_message_bytes >= 16 << 20 &&
         daemon.max_metadata_bytes >= 1 << 20 && options.placement.deadline.count() >= 1 &&
         options.placement.plugin_timeout.count() >= 100 && options.placement.start_grace.count() >= 100;
}

}  // namespace

TextJudgement judge_config(const std::string& text) {
  const RawConfig raw = read(text);
  const config::ValidatedConfig validated = config::validate_config(raw, kPlugins);
  TextJudgement result{.accepted = validated.mistakes.empty(),
                       .violation = mistake_violation(validated.mistakes, text)};
  if (result.violation.empty()) result.violation = duration_violation(raw);
  if (!result.violation.empty() || !raw.mistakes.empty()) return result;

  const RawConfig again = read(print(raw));
  const config::ValidatedConfig validated_again = config::validate_config(again, kPlugins);
  if (!again.mistakes.empty() || !same_entries(raw, again)) {
    result.violation = "written out, the entries are read as others: " + print(raw);
  } else if (validated_again.mistakes.size() != validated.mistakes.size()) {
    result.violation = "written out, the entries have other mistakes";
  } else if (result.accepted && summary(validated_again.options) != summary(validated.options)) {
    result.violation = "written out, the entries give other options";
  } else if (result.accepted && !within_bounds(validated.options)) {
    result.violation = "accepted out of bounds: " + summary(validated.options);
  }
  return result;
}

}  // namespace topolet
