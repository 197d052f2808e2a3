#include "core/cli/simulate_activity.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>
#include <vector>

#include "core/base/escape.hpp"
#include "core/base/text.hpp"

namespace topolet::cli {
namespace {

using nlohmann::ordered_json;
using Fields = std::vector<std::pair<std::string, std::string>>;

/// All that plugins add to a container, by the name under which it is shown.
std::array<std::pair<const char*, Fields>, 6> groups_of(const placement::AddedFields& fields) {
  const Fields rdt = fields.rdt_class.empty() ? Fields() : Fields{{"class", fields.rdt_class}};
  Fields settings;
  if (fields.memory_policy) settings.emplace_back("memory-policy", describe(*fields.memory_policy));
  if (fields.scheduler) settings.emplace_back("scheduler", describe(*fields.scheduler));
  if (fields.io_priority) settings.emplace_back("io-priority", describe(*fields.io_priority));
  return {{{"env", fields.env},
           {"annotations", fields.annotations},
           {"unified", fields.unified},
           {"rdt", rdt},
           {"settings", settings},
           {"tags", fields.tags}}};
}

ordered_json added_json(const simulate::AddedByPlugins& added) {
  ordered_json json{{"pod", added.key.pod_uid}, {"container", added.key.name}};
  for (const auto& [group, fields] : groups_of(added.fields)) {
    if (fields.empty()) continue;
    ordered_json& pairs = json[group] = ordered_json::object();
    for (const auto& [key, value] : fields) pairs[key] = value;
  }
  return json;
}

ordered_json state_json(const simulate::StateWrite& write) {
  ordered_json json{{"plugin", write.plugin}, {"key", write.key}};
  if (!write.bytes) {
    json["removed"] = true;
    return json;
  }
  json["bytes"] = *write.bytes;
  if (write.text) json["value"] = *write.text;
  return json;
}

std::string state_text(const simulate::StateWrite& write) {
  if (!write.bytes) return fmt::format("      state of {}: {} removed\n", write.plugin, escaped(write.key));
  return fmt::format("      state of {}: {}{} ({})\n", write.plugin, escaped(write.key),
                     write.text ? " = " + escaped(*write.text) : "", counted(*write.bytes, "byte"));
}

}  // namespace

ordered_json activity_json(const simulate::PluginActivity& activity) {
  ordered_json json{{"added", ordered_json::array()},
                    {"events", ordered_json::array()},
                    {"state", ordered_json::array()},
                    {"log", ordered_json::array()}};
  for (const simulate::AddedByPlugins& added : activity.added) json["added"].push_back(added_json(added));
  for (const simulate::ToldEvent& told : activity.events) {
    json["events"].push_back(
        {{"event", told.event}, {"pod", told.pod}, {"container", told.container}, {"plugins", told.plugins}});
  }
  for (const simulate::StateWrite& write : activity.state) json["state"].push_back(state_json(write));
  for (const simulate::LoggedLine& logged : activity.log)
    json["log"].push_back({{"level", logged.level}, {"line", logged.line}});
  return json;
}

std::string activity_text(const simulate::PluginActivity& activity) {
  std::string text;
  for (const simulate::AddedByPlugins& added : activity.added) {
    for (const auto& [group, fields] : groups_of(added.fields)) {
      for (const auto& [key, value] : fields) {
        text += fmt::format("      {} of {}/{}: {}={}\n", group, escaped(added.key.pod_uid), escaped(added.key.name),
                            escaped(key), escaped(value));
      }
    }
  }
  for (const simulate::ToldEvent& told : activity.events) {
    text += fmt::format("      event {} of {}/{}: {}\n", told.event, escaped(told.pod), escaped(told.container),
                        fmt::join(told.plugins, ", "));
  }
  for (const simulate::StateWrite& write : activity.state) text += state_text(write);
  for (const simulate::LoggedLine& logged : activity.log)
    text += fmt::format("      log {}: {}\n", logged.level, escaped(logged.line));
  return text;
}

}  // namespace topolet::cli
