#include "core/daemon/setup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace topolet {
namespace {

Error file_changed(const PluginLibrary& library) {
  return {Code::kFailedPrecondition,
          fmt::format("plugin {}: restart needed: {} has changed since it was loaded, and a loaded library stays until "
                      "topoletd ends",
                      library.id(), library.path().string())};
}

void load_one(LoadedLibraries& plugins, const std::filesystem::path& plugin_dir, const std::string& name,
              const std::vector<PluginLibrary>& loaded) {
  const auto known =
      std::find_if(loaded.begin(), loaded.end(), [&](const PluginLibrary& library) { return library.id() == name; });
  if (known == loaded.end()) {
    LoadedLibraries one = load_plugins(plugin_dir, {name});
    std::move(one.libraries.begin(), one.libraries.end(), std::back_inserter(plugins.libraries));
    std::move(one.errors.begin(), one.errors.end(), std::back_inserter(plugins.errors));
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
    for (const DeclaredOption& option : library.options()) section.options.push_back(to_plugin_option(option));
  }
  return sections;
}

Setup make_setup(RawConfig raw, const std::vector<PluginLibrary>& loaded) {
  const PluginChoice choice = plugin_choice(raw);
  Setup setup;
  for (const std::string& name : choice.enabled) load_one(setup.plugins, choice.plugin_dir, name, loaded);
  setup.config = check(raw, sections_of(setup.plugins));
  setup.raw = std::move(raw);
  return setup;
}

}  // namespace topolet
