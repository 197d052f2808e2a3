#include "cluster/extender/rights.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

namespace topolet::extender {
namespace {

/// One that is taken away is missed soon; there are two who ask.
constexpr std::chrono::minutes kAskForRightsAgain{1};

std::vector<api::Right> needed_rights(const std::optional<api::LeaderElection::Options>& lease) {
  constexpr const char* kLeases = "coordination.k8s.io";
  std::vector<api::Right> rights = {
      {.verb = "list", .group = "topology.node.k8s.io", .resource = "noderesourcetopologies"},
      {.verb = "watch", .group = "topology.node.k8s.io", .resource = "noderesourcetopologies"},
      {.verb = "list", .group = "", .resource = "pods"},
      {.verb = "get", .group = "", .resource = "pods"},
      {.verb = "create", .group = "", .resource = "pods", .subresource = "binding"}};
  if (!lease) return rights;
  rights.push_back({.verb = "create", .group = kLeases, .resource = "leases", .name_space = lease->name_space});
  for (const char* verb : {"get", "update"}) {
    rights.push_back(
        {.verb = verb, .group = kLeases, .resource = "leases", .name_space = lease->name_space, .name = lease->name});
  }
  return rights;
}

/// Without them pods are bound all the same, and something else is not done.
struct UsefulRight {
  api::Right right;
  const char* what_is_not_done;
};
const std::vector<UsefulRight>& useful_rights() {
  static const std::vector<UsefulRight> kRights = {
      {{.verb = "patch", .group = "", .resource = "nodes"},
       "pods that were rejected are not tried again when there is room, but up to five minutes later"},
      {{.verb = "list", .group = "policy", .resource = "poddisruptionbudgets"},
       "only pods are evicted that a scheduler offers, also where these free no zone"}};
  return kRights;
}

std::vector<api::Right> rights_of(const std::vector<UsefulRight>& useful) {
  std::vector<api::Right> rights;
  for (const UsefulRight& each : useful) rights.push_back(each.right);
  return rights;
}

}  // namespace

Rights::Rights(api::Api& api, const std::optional<api::LeaderElection::Options>& lease, Log& log)
    : log_(log),
      needed_(api, needed_rights(lease), kAskForRightsAgain, log),
      useful_(api, rights_of(useful_rights()), kAskForRightsAgain, log) {
  needed_.start([this] { take_needed(); });
  useful_.start([this] { take_useful(); });
}

Rights::Missing Rights::missing() const {
  MutexLock lock(mutex_);
  return missing_;
}

void Rights::take_needed() {
  const std::vector<std::string>& missing = *needed_.missing();
  const std::string words = fmt::format("{}", fmt::join(missing, ", "));
  if (!missing.empty()) log_.error("topolet-extender may not {}: deploy/kubernetes/extender.yaml grants it", words);
  MutexLock lock(mutex_);
  missing_.needed = words;
  missing_.needed_count = missing.size();
}

void Rights::take_useful() {
  const std::vector<std::string>& missing = *useful_.missing();
  for (const auto& [right, what_is_not_done] : useful_rights()) {
    const std::string words = to_string(right);
    if (std::find(missing.begin(), missing.end(), words) == missing.end()) continue;
    log_.warn("topolet-extender may not {}: {}; deploy/kubernetes/extender.yaml grants it", words, what_is_not_done);
  }
  MutexLock lock(mutex_);
  missing_.useful_count = missing.size();
}

}  // namespace topolet::extender
