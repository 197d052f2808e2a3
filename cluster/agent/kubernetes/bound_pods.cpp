#include "cluster/agent/kubernetes/bound_pods.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

namespace topolet::agent {

void BoundPods::begin(const std::vector<nlohmann::json>& objects) {
  pods_.clear();
  for (const nlohmann::json& object : objects) apply("ADDED", object);
}

void BoundPods::apply(std::string_view type, const nlohmann::json& object) {
  api::Pod pod = api::read_pod(object);
  if (pod.uid.empty()) return;
  if (type == "DELETED") {
    pods_.erase(pod.uid);
  } else {
    pods_[pod.uid] = std::move(pod);
  }
}

std::vector<const api::Pod*> BoundPods::in_order() const {
  std::vector<const api::Pod*> order;
  order.reserve(pods_.size());
  for (const auto& [uid, pod] : pods_) order.push_back(&pod);
  std::sort(order.begin(), order.end(), [](const api::Pod* a, const api::Pod* b) {
    return std::tie(a->created_at, a->uid) < std::tie(b->created_at, b->uid);
  });
  return order;
}

const api::Pod* BoundPods::find(const std::string& runtime_uid) const {
  if (const auto found = pods_.find(runtime_uid); found != pods_.end()) return &found->second;
  for (const auto& [uid, pod] : pods_) {
    if (pod.runtime_uid == runtime_uid) return &pod;
  }
  return nullptr;
}

bool BoundPods::want_devices() const {
  return std::any_of(pods_.begin(), pods_.end(), [](const auto& entry) {
    const auto& containers = entry.second.containers;
    return std::any_of(containers.begin(), containers.end(),
                       [](const api::PodContainer& container) { return !container.requests.devices.empty(); });
  });
}

std::string BoundPods::fingerprint() const {
  std::vector<std::pair<std::string, std::string>> names;
  for (const auto& [uid, pod] : pods_) {
    if (pod.phase != "Pending") names.emplace_back(pod.name_space, pod.name);
  }
  return pods_fingerprint(names);
}

std::string BoundPods::acknowledged() const {
  constexpr std::size_t kDigits = 8;
  std::string list;
  for (const auto& [uid, pod] : pods_) {
    if (pod.is_terminal()) continue;
    if (!list.empty()) list += ',';
    list += uid.substr(0, kDigits);
  }
  return list;
}

std::string pods_fingerprint(const std::vector<std::pair<std::string, std::string>>& pods) {
  std::vector<XXH64_hash_t> hashes;
  hashes.reserve(pods.size());
  for (const auto& [name_space, name] : pods) {
    const XXH64_hash_t seed = XXH64(name_space.data(), name_space.size(), 0);
    hashes.push_back(XXH64(name.data(), name.size(), seed));
  }
  std::sort(hashes.begin(), hashes.end());
  std::string bytes;
  for (const XXH64_hash_t hash : hashes) {
    for (unsigned shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(hash >> shift & 0xffU);
  }
  return fmt::format("pfp0v001{:016x}", XXH64(bytes.data(), bytes.size(), 0));
}

}  // namespace topolet::agent
