#include "core/placement/container_notes.hpp"

namespace topolet::placement {

std::string tag_prefix(const std::string& policy) { return policy + "/"; }

SharedStringMap with_tags(const SharedStringMap& tags, const std::string& policy,
                          const std::vector<std::pair<std::string, std::string>>& set) {
  const std::string prefix = tag_prefix(policy);
  SharedStringMap::Map all = tags;
  std::erase_if(all, [&prefix](const auto& tag) { return tag.first.starts_with(prefix); });
  for (const auto& [key, value] : set) all[key] = value;
  return all;
}

void take_over_notes(const Decision& decision, Workload& workload) {
  if (!decision.used_devices.empty()) workload.used_devices = decision.used_devices;
  if (decision.tags) workload.tags = *decision.tags;
}

}  // namespace topolet::placement
