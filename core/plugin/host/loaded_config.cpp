#include "core/plugin/host/loaded_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "core/plugin/host/common_options.hpp"
#include "core/plugin/host/inspect_plugins.hpp"

namespace topolet::plugin {
namespace {

Error file_changed(const PluginLibrary& library) {
  return {Code::kFailedPrecondition,
          fmt::format("plugin {}: restart needed: {} has changed since it was loaded, and a loaded library stays until "
                      "topoletd ends",
                      library.id(), library.path().string())};
}

/// A library's constructors run plugin code, which may crash or never end.
Result<PluginLibrary> load_watched(const std::filesystem::path& plugin_dir, const std::string& name,
                                   ControlThread& thread) {
  if (const auto stuck = thread.plugin_stuck_in("load")) {
    return Error{
        Code::kFailedPrecondition,
        fmt::format("plugin {}: restart needed: loading plugin {} has not returned, so nothing else can be loaded",
                    name, *stuck)};
  }
  const auto loaded = std::make_shared<std::optional<Result<PluginLibrary>>>();
  const Status back =
      thread.run(name, "load", [loaded, plugin_dir, name] { loaded->emplace(PluginLibrary::load(plugin_dir, name)); });
  if (!back) return back.error();
  if (!loaded->has_value())
    return Error{Code::kInternal, fmt::format("plugin {}: cannot be loaded; see the log", name)};
  return std::move(**loaded);
}

void load_one(LoadedConfig& setup, const std::filesystem::path& plugin_dir, const std::string& name,
              const std::vector<PluginLibrary>& loaded, const LoadDeps& deps) {
  LoadedLibraries& plugins = setup.plugins;
  const auto known =
      std::find_if(loaded.begin(), loaded.end(), [&](const PluginLibrary& library) { return library.id() == name; });
  if (known == loaded.end()) {
    const CrashLog* crashes = deps.crashes;
    if (crashes != nullptr && !crashes->why_quarantined(name).empty() && crashes->crashed_at_start(name)) {
      setup.not_loaded.push_back(name);
      return;
    }
    auto one =
        deps.thread == nullptr ? PluginLibrary::load(plugin_dir, name) : load_watched(plugin_dir, name, *deps.thread);
    if (one) {
      plugins.libraries.push_back(*std::move(one));
    } else {
      plugins.errors.push_back(one.error());
    }
  } else if (known->file_has_changed()) {
    plugins.errors.push_back(file_changed(*known));
  } else {
    plugins.libraries.push_back(*known);
  }
}

/// Every refusal names its plugin.
std::string with_place(const config::RawConfig& raw, const std::string& refusal) {
  for (const std::string& name : enabled_plugins(raw).enabled) {
    if (refusal.starts_with(fmt::format("plugin {}: ", name))) return plugin_mistake(raw, name, refusal).to_string();
  }
  return refusal;
}

}  // namespace

std::vector<std::string> LoadedConfig::mistakes() const {
  std::vector<std::string> lines;
  for (const config::ConfigMistake& mistake : config.mistakes) lines.push_back(mistake.to_string());
  for (const Error& error : plugins.errors) lines.push_back(with_place(raw, error.message));
  return lines;
}

std::vector<config::PluginSection> sections_of(const LoadedLibraries& plugins) {
  std::vector<config::PluginSection> sections;
  for (const PluginLibrary& library : plugins.libraries) {
    sections.push_back(library.section());
  }
  return sections;
}

std::vector<config::ConfigEntry> shown_entries(const LoadedConfig& setup, std::vector<config::ConfigEntry> entries) {
  return without_secrets(std::move(entries), sections_of(setup.plugins));
}

LoadedConfig load_config(config::RawConfig raw, const std::vector<PluginLibrary>& loaded, const LoadDeps& deps) {
  const config::EnabledPlugins choice = enabled_plugins(raw);
  LoadedConfig setup;
  for (const std::string& name : choice.enabled) load_one(setup, choice.plugin_dir, name, loaded, deps);
  setup.config = validate_config(raw, sections_of(setup.plugins));
  setup.raw = std::move(raw);
  return setup;
}

Result<std::vector<PluginVote>> make_votes(const LoadedConfig& setup, const std::shared_ptr<Log>& log,
                                           const std::shared_ptr<store::PluginStateStore>& state,
                                           const std::shared_ptr<const topology::Topology>& machine) {
  const config::Options& options = setup.config.options;
  const std::vector<PluginLibrary>& libraries = setup.plugins.libraries;
  std::vector<PluginVote> votes;
  for (const config::PluginOptions& plugin : options.plugins) {
    const auto library = std::find_if(libraries.begin(), libraries.end(), [&](const PluginLibrary& loaded_library) {
      return loaded_library.id() == plugin.name;
    });
    if (library == libraries.end()) continue;
    auto policy = library->create({plugin.values.begin(), plugin.values.end()}, log,
                                  {.state = state,
                                   .configuration = options.configuration,
                                   .machine = machine,
                                   .purpose = TOPOLET_PURPOSE_SIMULATE});
    if (!policy) return policy.error();
    votes.push_back({plugin.name, *policy, plugin.weight, plugin.fail_closed, plugin.required,
                     common_options_of(plugin), besteffort_share_of(plugin)});
  }
  return in_order_of_votes(std::move(votes));
}

}  // namespace topolet::plugin
