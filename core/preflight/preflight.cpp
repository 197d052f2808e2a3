#include "core/preflight/preflight.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <system_error>
#include <utility>

#include "core/base/clock.hpp"
#include "core/config/nri_decision_time.hpp"
#include "core/plugin/guard/crash_log.hpp"
#include "core/plugin/host/check_annotations.hpp"
#include "core/plugin/host/inspect_plugins.hpp"
#include "core/preflight/findings.hpp"

namespace topolet::preflight {
namespace {

using Mistakes = std::vector<config::ConfigMistake>;

void append(Mistakes& mistakes, Mistakes more) { std::move(more.begin(), more.end(), std::back_inserter(mistakes)); }

/// Returns true if a file could not be read: its contents are unknown then.
bool is_unread(const config::RawConfig& raw) {
  return std::any_of(raw.mistakes.begin(), raw.mistakes.end(),
                     [](const config::ConfigMistake& mistake) { return !mistake.file.empty() && mistake.line == 0; });
}

void check_plugin_dir(Report& report) {
  const config::Options& options = report.options();
  std::error_code ignored;
  // With plugins, each of them says so.
  if (!options.plugins.empty() || !report.is_set("daemon.plugin-dir") || report.is_mistaken("daemon.plugin-dir") ||
      std::filesystem::is_directory(options.daemon.plugin_dir, ignored))
    return;
  report.warning("daemon.plugin-dir", fmt::format("there is no directory {}", options.daemon.plugin_dir.string()));
}

void check_times(Report& report) {
  const config::PlacementOptions& placement = report.options().placement;
  if (report.options().daemon.front == config::Front::kNri && placement.decision_time > config::kNriDecisionTime) {
    report.warning(
        "placement.decision-ms",
        fmt::format("{} is taken as {}: with daemon.front = nri the runtime waits for two seconds in all, and "
                    "not at all for a plugin that was late",
                    placement.decision_time.count(), config::kNriDecisionTime.count()));
  }
  if (placement.decision_time >= placement.deadline) return;
  report.warning(
      "placement.decision-ms",
      fmt::format("{} is less than placement.deadline-ms = {}: after a call that takes as long as it may, no "
                  "plugin is asked any more; raise this, or lower placement.deadline-ms",
                  placement.decision_time.count(), placement.deadline.count()));
}

void check_plugins(Report& report) {
  const std::vector<config::PluginOptions>& plugins = report.options().plugins;
  if (plugins.empty()) {
    report.warning(
        "plugins.enable",
        "no plugin is enabled: nobody looks at NUMA nodes, caches and devices when containers are placed; write "
        "enable = numa, and the others that you need, into [plugins]");
  }
  for (const config::PluginOptions& plugin : plugins) {
    const std::string option = "plugins.weight." + plugin.name;
    if (plugin.weight != 0 || report.is_mistaken(option)) continue;
    report.warning(option,
                   fmt::format("with 0 no score of the plugin {0} counts, only what it rejects and picks; write 1 "
                               "or more, or remove enable = {0} if it is to have no say",
                               plugin.name));
  }
}

void check_retention(Report& report) {
  constexpr std::chrono::hours kLeastKeep{1};
  constexpr std::int64_t kLeastKeepMib = 32;
  const store::RetentionLimits& limits = report.options().daemon.retention;
  if (limits.keep.count() > 0 && limits.keep < kLeastKeep && !report.is_mistaken("daemon.keep")) {
    report.warning(
        "daemon.keep",
        "less than an hour: what topolet decided is deleted before anybody can ask why; write 30d, or 0 to keep "
        "it for ever");
  }
  if (limits.keep_bytes > 0 && limits.keep_bytes < kLeastKeepMib << 20 && !report.is_mistaken("daemon.keep-mib")) {
    report.warning(
        "daemon.keep-mib",
        fmt::format("less than {} MiB has room for little more than what is held at present, so that decisions "
                    "are deleted soon after their end; write 1024, or 0 for any size",
                    kLeastKeepMib));
  }
}

void check_handlers(Report& report) {
  const placement::RuntimeHandlers& handlers = report.options().placement.handlers;
  if (handlers.only) {
    report.warning(
        "placement.handlers",
        "it goes with version 1.0; instead name in placement.foreign-handlers whose containers are not to be "
        "placed: those of all other runtime handlers are");
  }
  const std::string obstacle = handlers.obstacle("");
  if (obstacle.empty()) return;
  report.warning(handlers.only ? "placement.handlers" : "placement.foreign-handlers",
                 fmt::format("containers of the runtime's default handler are not placed ({})", obstacle));
}

void check_limits(Report& report) {
  const config::DaemonOptions& daemon = report.options().daemon;
  if (static_cast<std::size_t>(daemon.max_message_bytes) <= daemon.max_memory_bytes) return;
  report.warning("daemon.max-message-mib",
                 fmt::format("{} is more than daemon.max-memory-mib = {}: whoever sends a message of that size is "
                             "disconnected before it is complete; raise daemon.max-memory-mib, or lower this",
                             daemon.max_message_bytes >> 20, daemon.max_memory_bytes >> 20));
}

}  // namespace

const config::ConfigEntry* Report::entry_of(const std::string& option) const {
  const config::ConfigEntry* found = nullptr;
  for (const config::ConfigEntry& entry : raw_.entries) {
    // The command line's, which come last, take the place of the file's.
    if (entry.section + '.' + entry.key == option) found = &entry;
  }
  return found;
}

config::ConfigMistake Report::at(const std::string& option, const std::string& what) const {
  std::string message = what.starts_with(option) ? what : option + ": " + what;
  const config::ConfigEntry* entry = entry_of(option);
  if (entry == nullptr) return {raw_.file.string(), 0, std::move(message) + " (the default)"};
  return {entry->file, entry->line, std::move(message)};
}

void Report::warn_of_other_topoletd() {
  const auto is_used = [](const auto& used) { return used.second; };
  if (std::all_of(used_by_topoletd_.begin(), used_by_topoletd_.end(), is_used)) return;
  for (const auto& [option, used] : used_by_topoletd_) {
    if (!used) continue;
    warning(option, "a topoletd that runs with another configuration has it; stop that one before you start another");
  }
}

bool Report::is_mistaken(const std::string& option) const {
  return std::any_of(config_.mistakes.begin(), config_.mistakes.end(), [&](const config::ConfigMistake& mistake) {
    return mistake.message.starts_with(option + ": ") || mistake.message.starts_with(option + " is ");
  });
}

Findings check_environment(const config::RawConfig& raw, const config::ValidatedConfig& config) {
  Report report(raw, config);
  if (is_unread(raw)) return report.take();
  check_sockets(report);
  check_state(report);
  report.warn_of_other_topoletd();
  check_plugin_dir(report);
  check_limits(report);
  check_times(report);
  check_handlers(report);
  check_plugins(report);
  check_retention(report);
  check_machine(report);
  return report.take();
}

Findings check(const config::RawConfig& raw) {
  const config::ValidatedConfig core = validate_config(raw, {});
  const auto crashes = plugin::CrashLog::read(core.options.daemon.state_dir / "plugin-crashes", Clock().wall().count());
  plugin::PluginInspection plugins = plugin::inspect_plugins(raw, crashes ? crashes->get() : nullptr);
  Findings found = check_environment(raw, plugins.config);
  append(found.mistakes, std::move(plugins.config.mistakes));
  append(found.mistakes, std::move(plugins.refused));
  append(found.warnings, std::move(plugins.warnings));
  plugin::AnnotationFindings annotations =
      plugin::check_permitted_annotations(raw, plugins.config.options, plugins.annotations);
  append(found.mistakes, std::move(annotations.mistakes));
  append(found.warnings, std::move(annotations.warnings));
  for (const std::string& name : plugins.not_started) {
    const std::string why = fmt::format("plugin {}: it {}; topoletd starts without it, and it was not checked", name,
                                        (*crashes)->why_quarantined(name));
    found.warnings.push_back(plugin::plugin_mistake(raw, name, why));
  }
  config::sort_by_place(raw, found.mistakes);
  config::sort_by_place(raw, found.warnings);
  return found;
}

}  // namespace topolet::preflight
