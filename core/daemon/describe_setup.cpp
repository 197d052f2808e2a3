#include "core/daemon/describe_setup.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

namespace topolet::daemon {
namespace {

std::vector<config::PluginSection> sections_of(const std::vector<plugin::PluginDescription>& plugins) {
  std::vector<config::PluginSection> sections;
  for (const plugin::PluginDescription& plugin : plugins) {
    if (plugin.library) sections.push_back(plugin.library->section());
  }
  return sections;
}

}  // namespace

engine::Setup describe_setup(std::int64_t number, const config::RawConfig& raw,
                             const std::vector<plugin::PluginDescription>& plugins) {
  engine::Setup setup;
  setup.number = number;
  setup.version = TOPOLET_VERSION;
  for (const config::ConfigEntry& entry : without_secrets(raw.entries, sections_of(plugins))) {
    setup.config_text += fmt::format("{}.{} = {}\n", entry.section, entry.key, entry.value);
  }
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const plugin::PluginDescription& plugin : plugins) {
    nlohmann::ordered_json json{{"name", plugin.options.name}};
    if (plugin.library) json["version"] = plugin.library->version();
    json["weight"] = plugin.options.weight;
    if (plugin.options.required) json["required"] = true;
    if (plugin.options.fail_closed) json["on-failure"] = "closed";
    list.push_back(std::move(json));
  }
  setup.plugins = list.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return setup;
}

}  // namespace topolet::daemon
