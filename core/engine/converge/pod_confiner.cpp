#include "core/engine/converge/pod_confiner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/log.hpp"

namespace topolet::engine {
namespace {

bool is_foreign(const Allocation& allocation) {
  return allocation.is_bound() && allocation.placement.mode == placement::Mode::kForeign;
}

bool concerns_foreign(const Transition& transition) {
  return std::any_of(transition.changes.begin(), transition.changes.end(), [](const Change& change) {
    return (change.before && is_foreign(*change.before)) || (change.after && is_foreign(*change.after));
  });
}

}  // namespace

void PodConfiner::on_durable(const Transition& transition) {
  if (!deps_.enabled) return;
  const bool concerns = concerns_foreign(transition);
  has_foreign_ = has_foreign_ || concerns;
  if (has_foreign_ && (concerns || transition.pool != transition.pool_before)) confine_all();
}

void PodConfiner::on_reconciled() {
  if (!deps_.enabled) return release_all();
  has_foreign_ = true;
  confine_all();
}

std::map<std::string, PodConfiner::ForeignPod> PodConfiner::foreign_pods() const {
  std::map<std::string, ForeignPod> pods;
  const Ledger& ledger = deps_.committer.ledger();
  for (const auto& [key, allocation] : ledger.allocations()) {
    if (!is_foreign(allocation)) continue;
    const placement::Workload& workload = allocation.workload;
    ForeignPod& pod = pods[workload.key.pod_uid];
    pod.name = fmt::format("{}/{}", workload.pod_namespace, workload.pod_name);
    pod.cpus |= pool_for(shared_mode(workload, deps_.committer.rules()), ledger.pool(), ledger.free_reserved());
    // What the kubelet has given to it is its own.
    pod.cpus |= allocation.placement.cpus;
  }
  return pods;
}

void PodConfiner::confine_all() {
  const std::map<std::string, ForeignPod> pods = foreign_pods();
  has_foreign_ = !pods.empty();
  std::erase_if(cgroups_, [&pods](const auto& known) { return pods.count(known.first) == 0; });
  std::erase_if(set_, [&pods](const auto& known) { return pods.count(known.first) == 0; });
  std::erase_if(failures_, [&pods](const auto& failure) {
    return std::none_of(pods.begin(), pods.end(), [&](const auto& pod) { return pod.second.name == failure.first; });
  });
  for (const auto& [uid, pod] : pods) {
    const auto set = set_.find(uid);
    const bool is_set = set != set_.end() && set->second == pod.cpus;
    const Status confined = is_set ? Status() : confine(uid, pod);
    note_failure(pod, confined);
    // A container may have joined the pod.
    if (confined) note(uid, true);
  }
}

Status PodConfiner::confine(const std::string& uid, const ForeignPod& pod) {
  if (cgroups_.count(uid) == 0) {
    Result<std::filesystem::path> found = deps_.cgroups.find(uid);
    if (!found) return found.error();
    cgroups_[uid] = *std::move(found);
  }
  set_.erase(uid);
  const Status set = deps_.cgroups.confine(cgroups_.at(uid), pod.cpus);
  if (set) {
    set_[uid] = pod.cpus;
  } else {
    cgroups_.erase(uid);  // it may have been made anew
  }
  return set;
}

/// Each reason once.
void PodConfiner::note_failure(const ForeignPod& pod, const Status& status) {
  if (status) {
    failures_.erase(pod.name);
    return;
  }
  std::string& known = failures_[pod.name];
  if (std::exchange(known, status.error().message) == known) return;
  deps_.log.warn(
      "pod {}, which topolet does not place, cannot be kept off exclusive CPUs (placement.confine-foreign): {}",
      pod.name, known);
}

void PodConfiner::note(const std::string& uid, bool confined) {
  const CpuSet within = confined ? deps_.committer.ledger().inventory().allowed : CpuSet();
  std::vector<placement::ContainerKey> keys;
  for (const auto& [key, allocation] : deps_.committer.ledger().allocations()) {
    const bool is_other = allocation.within.empty() == confined;
    if (is_foreign(allocation) && key.pod_uid == uid && is_other) keys.push_back(key);
  }
  for (const placement::ContainerKey& key : keys) {
    deps_.loop.post([this, key, within] { deps_.committer.commit(event::ForeignConfined{key, within}); });
  }
}

void PodConfiner::release_all() {
  std::set<std::string> uids;
  for (const auto& [key, allocation] : deps_.committer.ledger().allocations()) {
    if (is_foreign(allocation) && !allocation.within.empty()) uids.insert(key.pod_uid);
  }
  for (const std::string& uid : uids) {
    const Result<std::filesystem::path> found = deps_.cgroups.find(uid);
    if (found) {
      const Status released = deps_.cgroups.release(*found);
      if (!released) {
        deps_.log.warn("the CPUs of pod {} cannot be given back to it: {}", uid, released.error().message);
        continue;
      }
    }
    note(uid, false);
  }
}

}  // namespace topolet::engine
