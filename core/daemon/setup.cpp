#include "core/daemon/setup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

namespace topolet {
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
  if (const auto stuck = thread.who_is_stuck("load")) {
    return Error{Code::kFailedPrecondition,
                 fmt::format("plugin {}: restart needed: plugin {} was being loaded and has not come back from that, "
                             "so nothing else can be loaded",
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

void load_one(Setup& setup, const std::filesystem::path& plugin_dir, const std::string& name,
              const std::vector<PluginLibrary>& loaded, const Loading& loading) {
  LoadedLibraries& plugins = setup.plugins;
  const auto known =
      std::find_if(loaded.begin(), loaded.end(), [&](const PluginLibrary& library) { return library.id() == name; });
  if (known == loaded.end()) {
    const CrashLog* crashes = loading.crashes;
    if (crashes != nullptr && !crashes->quarantine(name).empty() && crashes->crashed_at_start(name)) {
      setup.not_loaded.push_back(name);
      return;
    }
    auto one = loading.thread == nullptr ? PluginLibrary::load(plugin_dir, name)
                                         : load_watched(plugin_dir, name, *loading.thread);
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

}  // namespace

std::vector<std::string> Setup::mistakes() const {
  std::vector<std::string> lines;
  for (const ConfigMistake& mistake : config.mistakes) lines.push_back(mistake.to_string());
  for (const Error& error : plugins.errors) lines.push_back(error.message);
  return lines;
}

std::vector<PluginSection> sections_of(const LoadedLibraries& plugins) {
  std::vector<PluginSection> sections;
  for (const PluginLibrary& library : plugins.libraries) {
    PluginSection& section = sections.emplace_back();
    section.plugin = library.id();
    section.default_weight = library.default_weight();
    for (const DeclaredOption& option : library.options()) section.options.push_back(to_plugin_option(option));
  }
  return sections;
}

Setup make_setup(RawConfig raw, const std::vector<PluginLibrary>& loaded, const Loading& loading) {
  const PluginChoice choice = plugin_choice(raw);
  Setup setup;
  for (const std::string& name : choice.enabled) load_one(setup, choice.plugin_dir, name, loaded, loading);
  setup.config = check(raw, sections_of(setup.plugins));
  setup.raw = std::move(raw);
  return setup;
}

}  // namespace topolet
