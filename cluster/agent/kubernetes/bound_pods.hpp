// The pods that are bound to this node, as the API server tells of them.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/api/pod.hpp"

namespace topolet::agent {

/// A plain value.
class BoundPods {
 public:
  void begin(const std::vector<nlohmann::json>& objects);
  /// `type`: ADDED, MODIFIED or DELETED.
  void apply(std::string_view type, const nlohmann::json& object);

  /// In the order in which they were made.
  std::vector<const api::Pod*> in_order() const;
  /// Finds a pod by the uid that the container runtime has for it; null if there is none.
  const api::Pod* find(const std::string& runtime_uid) const;
  /// Returns true if some container requests devices.
  bool want_devices() const;
  std::size_t size() const { return pods_.size(); }

  /// Returns the fingerprint of all pods that are not Pending, including ended ones, which a scheduler with
  /// NodeResourceTopologyMatch compares with that of its own pods.
  std::string fingerprint() const;
  /// The first eight digits of the uids of all pods that have not ended, sorted, with commas between them.
  std::string acknowledged() const;

 private:
  std::map<std::string, api::Pod> pods_;  ///< by uid
};

/// Computes the fingerprint of pods, given by namespace and name in any order. Source: podfingerprint v0.2.2. For each
/// pod h = XXH64(name, seed = XXH64(namespace, seed = 0)); XXH64 with seed 0 of the sorted hashes, each as 8 bytes with
/// the least significant first.
std::string pods_fingerprint(const std::vector<std::pair<std::string, std::string>>& pods);

}  // namespace topolet::agent
