#include "core/engine/converge/placed_handlers.hpp"

#include <algorithm>
#include <string_view>

namespace topolet::engine {
namespace {

/// As it stands in the name of a systemd slice, whose levels are joined by dashes.
std::string escaped_for_slice(std::string uid) {
  std::replace(uid.begin(), uid.end(), '-', '_');
  return uid;
}

bool names_pod(std::string_view level, const std::string& pod_uid) {
  if (pod_uid.empty()) return false;
  return level.find("pod" + pod_uid) != std::string_view::npos ||
         level.find("pod" + escaped_for_slice(pod_uid)) != std::string_view::npos;
}

}  // namespace

bool runs_in_cgroup_of_pod(const std::string& cgroup, const std::string& container_id,
                           const placement::ContainerKey& key) {
  if (cgroup.empty() || container_id.empty() || cgroup.find(container_id) != std::string::npos) return false;
  if (!key.sandbox_id.empty() && cgroup.find(key.sandbox_id) != std::string::npos) return true;
  const std::size_t slash = cgroup.rfind('/');
  return names_pod(std::string_view(cgroup).substr(slash == std::string::npos ? 0 : slash + 1), key.pod_uid);
}

std::string PlacedHandlers::obstacle(const std::string& handler) const {
  if (without_cgroups_.count(handler) != 0) return "its containers run in no cgroups of their own";
  return configured_.obstacle(handler);
}

}  // namespace topolet::engine
