#include "core/engine/converge/pod_confiner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/log.hpp"
#include "core/placement/exclusive_claim.hpp"

namespace topolet::engine {
namespace {

bool is_foreign_container(const Allocation& allocation) {
  return allocation.is_bound() && allocation.placement.mode == placement::Mode::kForeign;
}

}  // namespace

/// It counts also before it has a container, as while an image is pulled, and after the last one has ended.
bool PodConfiner::is_foreign(const Pod& pod) const {
  return pod.sandbox.ready && !pod.sandbox.pod_uid.empty() &&
         !deps_.placed_handlers.obstacle(pod.sandbox.runtime_handler).empty();
}

bool PodConfiner::concerns_foreign(const Transition& transition) const {
  const bool has_container =
      std::any_of(transition.changes.begin(), transition.changes.end(), [](const Change& change) {
        return (change.before && is_foreign_container(*change.before)) ||
               (change.after && is_foreign_container(*change.after));
      });
  return has_container || std::any_of(transition.pods.begin(), transition.pods.end(), [this](const PodChange& change) {
           return change.after && is_foreign(*change.after);
         });
}

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

void PodConfiner::end() {
  deps_.enabled = false;
  failures_.clear();
  release_all();
}

std::map<std::string, PodConfiner::ForeignPod> PodConfiner::foreign_pods() const {
  std::map<std::string, ForeignPod> pods;
  const Ledger& ledger = deps_.committer.ledger();
  for (const auto& [key, allocation] : ledger.allocations()) {
    if (!is_foreign_container(allocation)) continue;
    const placement::Workload& workload = allocation.workload;
    ForeignPod& pod = pods[workload.key.pod_uid];
    pod.name = fmt::format("{}/{}", workload.pod_namespace, workload.pod_name);
    pod.cpus |= pool_for(shared_mode(workload, deps_.committer.rules()), ledger.pool(), ledger.free_reserved());
    // CPUs that the kubelet has given to it are its own.
    pod.cpus |= allocation.placement.cpus;
  }
  for (const auto& [id, known] : ledger.pods()) {
    if (!is_foreign(known)) continue;
    placement::Workload any;
    any.pod_namespace = known.sandbox.pod_namespace;
    ForeignPod& pod = pods[known.sandbox.pod_uid];
    pod.name = fmt::format("{}/{}", known.sandbox.pod_namespace, known.sandbox.pod_name);
    pod.cpus |= pool_for(shared_mode(any, deps_.committer.rules()), ledger.pool(), ledger.free_reserved());
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
    // It may have been written, though nobody knows with what effect.
    if (confined || cgroups_.count(uid) != 0) note(uid, true);
  }
}

Status PodConfiner::confine(const std::string& uid, const ForeignPod& pod) {
  if (cgroups_.count(uid) == 0) {
    Result<std::filesystem::path> found = deps_.cgroups.find(uid);
    if (!found) return found.error();
    cgroups_[uid] = *std::move(found);
  }
  set_.erase(uid);
  std::error_code unreadable;
  // It may have been made anew.
  if (!std::filesystem::exists(cgroups_.at(uid), unreadable)) {
    cgroups_.erase(uid);
    return confine(uid, pod);
  }
  const Status set = deps_.cgroups.confine(cgroups_.at(uid), pod.cpus);
  if (set) set_[uid] = pod.cpus;
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
  const auto& pods = deps_.committer.ledger().pods();
  const bool is_news = std::any_of(pods.begin(), pods.end(), [&](const auto& known) {
    return known.second.sandbox.pod_uid == uid && known.second.confined != confined;
  });
  if (!is_news) return;
  deps_.loop.post([this, uid, confined] { deps_.committer.commit(event::PodConfined{uid, confined}); });
}

void PodConfiner::release_all() {
  std::set<std::string> uids;
  for (const auto& [id, pod] : deps_.committer.ledger().pods()) {
    if (pod.confined) uids.insert(pod.sandbox.pod_uid);
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
