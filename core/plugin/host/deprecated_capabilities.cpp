#include "core/plugin/host/deprecated_capabilities.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace topolet::plugin {

const DeprecatedCapabilities& deprecated_capabilities() {
  static const DeprecatedCapabilities kNone;
  return kNone;
}

std::string deprecation_warning(const PluginPolicy& policy, const DeprecatedCapabilities& deprecated) {
  if (deprecated.empty()) return {};
  std::vector<std::string> used = policy.capabilities();
  const std::vector<std::string> of_host = policy.host_capabilities();
  used.insert(used.end(), of_host.begin(), of_host.end());
  std::string list;
  for (const DeprecatedCapability& capability : deprecated) {
    if (std::find(used.begin(), used.end(), capability.id) == used.end()) continue;
    list += fmt::format("{}{} (use {})", list.empty() ? "" : ", ", capability.id, capability.instead);
  }
  if (list.empty()) return {};
  return fmt::format("plugin {} uses deprecated capabilities, which go on working: {}", policy.name(), list);
}

}  // namespace topolet::plugin
