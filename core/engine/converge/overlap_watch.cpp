#include "core/engine/converge/overlap_watch.hpp"

#include <fmt/format.h>

#include "core/base/text.hpp"

namespace topolet::engine {
namespace {

/// Returns true if overlaps of the container are reported as such: conflicts with the kubelet and containers without
/// any CPU left have reports of their own.
bool is_watched(const Allocation& allocation) {
  return allocation.is_managed() && allocation.may_run() && !allocation.conflict &&
         allocation.squeeze != Squeeze::kLeftToKernel;
}

}  // namespace

OverlapWatch::OverlapWatch(Deps deps) : deps_(std::move(deps)) {
  const auto& allocations = deps_.committer.ledger().allocations();
  for (const auto& [key, seen] : allocations) {
    if (!seen.overruled || seen.seen_on.empty() || !is_watched(seen)) continue;
    for (const auto& [other, owner] : allocations) {
      const CpuSet shared = owner.overlapped & seen.seen_on;
      if (other == key || shared.empty()) continue;
      seen_[{seen.container_id, owner.container_id}] = {seen, display_name(owner.workload), shared,
                                                        deps_.clock.steady()};
    }
  }
}

/// Returns the CPUs of overlaps by the id of the container that has them alone. One that has not moved there yet does
/// not have them.
std::map<std::string, CpuSet> OverlapWatch::overlaps_of(const std::string& container_id, const CpuSet& cpus) const {
  std::map<std::string, CpuSet> found;
  const Ledger& ledger = deps_.committer.ledger();
  const Allocation* seen = ledger.find_by_container(container_id);
  if (seen == nullptr || !is_watched(*seen) || cpus.is_subset_of(seen->placement.cpus)) return found;
  for (const auto& [key, owner] : ledger.allocations()) {
    if (!owner.is_exclusive() || &owner == seen || !is_watched(owner)) continue;
    const CpuSet has = (owner.placement.cpus & deps_.footprints.of(owner.container_id)) | owner.placement.withheld;
    if (has.intersects(cpus)) found[owner.container_id] = has & cpus;
  }
  return found;
}

bool OverlapWatch::check(const std::string& container_id, const CpuSet& cpus) {
  const Ledger& ledger = deps_.committer.ledger();
  const Allocation* checked = ledger.find_by_container(container_id);
  const bool is_overruled = checked != nullptr && checked->overruled;
  const std::map<std::string, CpuSet> found = overlaps_of(container_id, cpus);
  for (auto seen = seen_.lower_bound({container_id, ""}); seen != seen_.end() && seen->first.first == container_id;) {
    const auto next = std::next(seen);
    const bool has_left = found.count(seen->first.second) == 0;
    if (has_left && is_overruled) seen->second.is_there = false;
    if (has_left && !is_overruled) end(seen, "it has left");
    seen = next;
  }
  for (const auto& [owner_id, shared] : found) {
    const auto known = seen_.find({container_id, owner_id});
    if (known != seen_.end()) {
      known->second.cpus |= shared;
      known->second.is_there = true;
    } else {
      begin(*ledger.find_by_container(container_id), *ledger.find_by_container(owner_id), shared);
    }
  }
  return !found.empty();
}

void OverlapWatch::forget(const std::string& container_id) {
  for (auto seen = seen_.begin(); seen != seen_.end();) {
    const auto next = std::next(seen);
    if (seen->first.first == container_id) {
      end(seen, "it has ended on");
    } else if (seen->first.second == container_id) {
      end(seen, "the other has ended on");
    }
    seen = next;
  }
}

void OverlapWatch::begin(const Allocation& seen, const Allocation& owner, const CpuSet& cpus) {
  const std::string name = display_name(owner.workload);
  seen_[{seen.container_id, owner.container_id}] = {seen, name, cpus, deps_.clock.steady()};
  deps_.committer.commit(
      event::Overlapped{seen, owner.decision,
                        fmt::format("runs on {}, which {} has exclusively; its CPUs are set to {} again",
                                    named("CPU", cpus), name, seen.placement.cpus.to_string())});
}

void OverlapWatch::end(std::map<Pair, Seen>::iterator over, const std::string& how) {
  const Seen seen = std::move(over->second);
  seen_.erase(over);
  deps_.committer.commit(event::Overlapped{seen.subject, std::nullopt,
                                           fmt::format("over: {} {}, which {} had exclusively; seen for {} ms", how,
                                                       named("CPU", seen.cpus), seen.owner, age(seen).count())});
}

std::chrono::milliseconds OverlapWatch::age(const Seen& seen) const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(deps_.clock.steady() - seen.since);
}

std::vector<Overlap> OverlapWatch::overlaps() const {
  std::vector<Overlap> overlaps;
  for (const auto& [pair, seen] : seen_) {
    if (seen.is_there) overlaps.push_back({display_name(seen.subject.workload), seen.owner, seen.cpus, age(seen)});
  }
  return overlaps;
}

}  // namespace topolet::engine
