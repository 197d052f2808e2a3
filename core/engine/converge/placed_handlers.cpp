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

bool runs_in_cgroup_of_pod(const std::vector<std::string>& cgroups, const std::string& container_id,
                           const placement::ContainerKey& key) {
  if (container_id.empty()) return false;
  const auto any = [&cgroups](const auto& is_so) { return std::any_of(cgroups.begin(), cgroups.end(), is_so); };
  const auto names = [](const std::string& cgroup, const std::string& id) {
    return !id.empty() && cgroup.find(id) != std::string::npos;
  };
  if (any([&](const std::string& cgroup) { return names(cgroup, container_id); })) return false;
  return any([&](const std::string& cgroup) {
    return names(cgroup, key.sandbox_id) ||
           names_pod(std::string_view(cgroup).substr(cgroup.rfind('/') + 1), key.pod_uid);
  });
}

bool PlacedHandlers::has_no_cgroups(const std::string& handler) const {
  const auto seen = without_cgroups_.find(handler);
  return seen != without_cgroups_.end() && seen->second.size() >= (handler.empty() ? 2U : 1U);
}

std::string PlacedHandlers::obstacle(const std::string& handler) const {
  if (!why_none_.empty()) return why_none_;
  if (has_no_cgroups(handler)) return "its containers run in no cgroups of their own";
  return configured_.obstacle(handler);
}

}  // namespace topolet::engine
