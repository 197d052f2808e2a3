#include "core/engine/state/draft.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/base/text.hpp"
#include "core/engine/state/cfs_quota.hpp"
#include "core/engine/state/overruled.hpp"
#include "core/engine/state/shared_load.hpp"
#include "core/engine/state/stuck.hpp"
#include "core/placement/reason_codes.hpp"
#include "core/placement/validate.hpp"

namespace topolet::engine {
namespace {

bool has_moved(const Allocation& before, const Allocation& after) {
  return before.placement.mode != after.placement.mode || before.placement.cpus != after.placement.cpus ||
         before.effective_withheld() != after.effective_withheld() || before.placement.mems != after.placement.mems;
}

bool changes_dedicated_cpus(const Change& change) {
  DedicatedCpus before;
  DedicatedCpus after;
  if (change.before) before.add(*change.before);
  if (change.after) after.add(*change.after);
  return before != after;
}

/// Returns the CPUs that it has alone, or has had alone and not left.
CpuSet cpus_without_others(const Allocation& allocation) {
  return allocation.dedicated_cpus() | allocation.vacating_alone;
}

ChangeKind kind_of(const Change& change) {
  const bool was_bound = change.before && change.before->is_bound();
  const bool is_bound = change.after && change.after->is_bound();
  if (!was_bound) return is_bound ? ChangeKind::kPlaced : ChangeKind::kInternal;
  if (!is_bound) return ChangeKind::kReleased;
  if (change.audit && change.audit->event == AuditEvent::kResized) return ChangeKind::kResized;
  if (has_moved(*change.before, *change.after)) return ChangeKind::kMoved;
  const bool has_started = change.after->phase == Phase::kRunning && change.before->phase != Phase::kRunning;
  return has_started ? ChangeKind::kStarted : ChangeKind::kInternal;
}

}  // namespace

const Allocation* Draft::find(const placement::ContainerKey& key) const {
  const auto changed = changes_.find(key);
  if (changed == changes_.end()) return ledger_.find(key);
  return changed->second.after ? &*changed->second.after : nullptr;
}

/// As yet it changes to nothing.
Change& Draft::begin_change(const placement::ContainerKey& key) {
  Change& change = changes_[key];
  change_order_.push_back(key);
  if (const Allocation* before = ledger_.find(key); before != nullptr) {
    change.before = *before;
    changed_.insert(before);
  }
  return change;
}

Change& Draft::change_of(const placement::ContainerKey& key) {
  if (const auto known = changes_.find(key); known != changes_.end()) return known->second;
  Change& change = begin_change(key);
  change.after = change.before;
  return change;
}

void Draft::put(Allocation after) {
  drop_secrets(after.workload);
  const auto known = changes_.find(after.workload.key);
  Change& change = known == changes_.end() ? begin_change(after.workload.key) : known->second;
  change.after = std::move(after);
}

void Draft::put(Allocation after, AuditEntry audit, std::optional<std::int64_t> supersedes) {
  const placement::ContainerKey key = after.workload.key;
  put(std::move(after));
  Change& change = change_of(key);
  change.audit = std::move(audit);
  change.supersedes = supersedes;
  if (!supersedes && change.before) change.supersedes = change.before->decision;
}

void Draft::set_outcome(const placement::ContainerKey& key, Outcome outcome) {
  change_of(key).outcome = std::move(outcome);
}

void Draft::end(const placement::ContainerKey& key, const std::string& cause) {
  const Allocation* ended = find(key);
  if (ended == nullptr) return;
  remember_former(*ended);
  if (ended->overruled) record_event(overruled_ended(*ended, "it has ended", transition_.wall_time), *ended);
  if (ended->stuck) record_event(stuck_ended(*ended, "it has ended", transition_.wall_time), *ended);
  Change& change = change_of(key);
  change.after.reset();
  change.cause = cause;
}

std::int64_t Draft::record_event(AuditEntry audit, std::optional<Allocation> subject) {
  transition_.recorded_events.push_back({std::move(audit), next_decision_, std::move(subject)});
  return next_decision_++;
}

void Draft::count_repeated_denial(std::int64_t decision, placement::Workload workload, std::string reason) {
  drop_secrets(workload);
  transition_.repeated.push_back({decision, std::move(workload), std::move(reason)});
}

/// Its next attempt is given the same CPUs if they are free then.
void Draft::remember_former(const Allocation& ended) {
  if (!ended.is_exclusive() || ledger_.pods().count(ended.workload.key.sandbox_id) == 0) return;
  Pod known = pod(ended.workload.key.sandbox_id);
  const FormerCpus former{ended.placement.cpus, ended.placement.withheld};
  FormerCpus& kept = known.former[ended.workload.key.name];
  if (kept == former) return;
  kept = former;
  put_pod(std::move(known));
}

Pod Draft::pod(const std::string& sandbox_id) const {
  for (auto change = transition_.pods.rbegin(); change != transition_.pods.rend(); ++change) {
    if (change->sandbox_id == sandbox_id && change->after) return *change->after;
  }
  if (const auto known = ledger_.pods().find(sandbox_id); known != ledger_.pods().end()) return known->second;
  Pod unknown;
  unknown.sandbox.id = sandbox_id;
  return unknown;
}

Pod Draft::pod_of(const placement::Workload& workload) const {
  Pod pod = this->pod(workload.key.sandbox_id);
  if (pod.sandbox.pod_uid.empty()) pod.sandbox.pod_uid = workload.key.pod_uid;
  if (pod.sandbox.pod_name.empty()) pod.sandbox.pod_name = workload.pod_name;
  if (pod.sandbox.pod_namespace.empty()) pod.sandbox.pod_namespace = workload.pod_namespace;
  return pod;
}

void Draft::add_warnings(const placement::Workload& workload, const std::vector<std::string>& warnings) {
  Pod pod = pod_of(workload);
  if (pod.add_warnings(warnings)) put_pod(std::move(pod));
}

void Draft::put_pod(Pod pod) {
  drop_secrets(pod);
  std::string id = pod.sandbox.id;
  transition_.pods.push_back({std::move(id), std::move(pod)});
}

void Draft::forget_pod(const std::string& sandbox_id) {
  transition_.pods.push_back({sandbox_id, std::nullopt, pod(sandbox_id).sandbox});
}

/// True if nobody holds other CPUs alone than before: then nothing follows from the change for anybody else.
bool Draft::keeps_pool() const {
  if (transition_.inventory || transition_.writes_pool || reconsiders_all_) return false;
  return std::all_of(changes_.begin(), changes_.end(), [](const auto& entry) {
    const Change& change = entry.second;
    const bool is_reserved = change.after && change.after->placement.mode == placement::Mode::kReserved;
    return !changes_dedicated_cpus(change) && !is_reserved;
  });
}

/// CPUs that a container has had alone and has not left, and that whoever got them gives up, are nobody's again.
void Draft::keep_unleft_cpus() {
  CpuSet given_up;
  for (const auto& [key, change] : changes_) {
    if (change.before)
      given_up |= cpus_without_others(*change.before) - (change.after ? cpus_without_others(*change.after) : CpuSet());
  }
  if (given_up.empty()) return;
  for_each([&](const placement::ContainerKey&, const Allocation& allocation) {
    given_up -= cpus_without_others(allocation);
  });
  given_up &= inventory().allowed;
  std::vector<Allocation> unleft;
  for_each([&](const placement::ContainerKey& key, const Allocation& allocation) {
    if (!allocation.is_exclusive() || !allocation.vacating.intersects(given_up)) return;
    const auto own = changes_.find(key);
    CpuSet by_others = given_up & allocation.vacating;
    if (own != changes_.end() && own->second.before) by_others -= cpus_without_others(*own->second.before);
    if (by_others.empty()) return;
    given_up -= by_others;
    unleft.push_back(allocation);
    unleft.back().vacating_alone |= by_others;
  });
  for (Allocation& allocation : unleft) put(std::move(allocation));
}

void Draft::compute_pool() {
  pool_stays_ = keeps_pool();
  if (pool_stays_) return;
  DedicatedCpus held;
  for_each([&](const placement::ContainerKey&, const Allocation& allocation) { held.add(allocation); });
  transition_.pool = Ledger::pool_of(inventory(), held.exclusive, held.withheld);
  transition_.free_reserved = held.free_reserved_of(inventory());
  transition_.free_isolated = held.free_isolated_of(inventory());
  const bool same =
      transition_.free_reserved == ledger_.free_reserved() && transition_.free_isolated == ledger_.free_isolated();
  if (!same) transition_.writes_pool = true;
}

bool Draft::has_strays() const {
  return ledger_.has_strays() || std::any_of(changes_.begin(), changes_.end(), [](const auto& entry) {
           return entry.second.after && !entry.second.after->seen_on.empty();
         });
}

/// Marks CPUs that a container should have alone and on which others were seen. Containers whose CPUs cannot be read
/// are unknown here.
void Draft::mark_overlapped() {
  if (!has_strays()) return;
  std::vector<const Allocation*> all;
  std::vector<const Allocation*> strays;
  for (const auto& [key, allocation] : ledger_.allocations()) {
    if (changed_.count(&allocation) == 0) all.push_back(&allocation);
  }
  for (const auto& [key, change] : changes_) {
    if (change.after) all.push_back(&*change.after);
  }
  std::copy_if(all.begin(), all.end(), std::back_inserter(strays),
               [](const Allocation* allocation) { return !allocation->seen_on.empty(); });
  std::vector<Allocation> marked;
  for (const Allocation* owner : all) {
    CpuSet others;
    for (const Allocation* other : strays) {
      if (other != owner) others |= other->seen_on;
    }
    CpuSet overlapped;
    if (owner->is_exclusive() && owner->is_managed()) overlapped = owner->dedicated_cpus() & others;
    if (overlapped == owner->overlapped) continue;
    marked.push_back(*owner);
    marked.back().overlapped = std::move(overlapped);
  }
  for (Allocation& allocation : marked) put(std::move(allocation));
}

void Draft::settle_all_quotas() {
  for (const auto& [key, allocation] : ledger_.allocations()) {
    const Allocation* now = find(key);
    if (now == nullptr) continue;
    Allocation after = *now;
    settle_quota(after, drops_quotas_);
    if (after.quota != now->quota) put(std::move(after));
  }
}

void Draft::settle_quotas() {
  for (auto& [key, change] : changes_) {
    if (change.after) settle_quota(*change.after, drops_quotas_);
  }
}

/// Says who runs on the whole pool, and which CPUs of it these containers may not have left yet: the same for all of
/// them, until the last one has left the last of these.
void Draft::share_pool_row() {
  const CpuSet left = (ledger_.pool_vacating() | ledger_.pool()) - transition_.pool;
  if (!pool_stays_) {
    // One that keeps its CPUs while the pool changes runs on the whole pool no more.
    for (const auto& [key, allocation] : ledger_.allocations()) {
      if (allocation.shares_pool_row && changed_.count(&allocation) == 0) change_of(key);
    }
  }
  std::size_t leaving = ledger_.leaving_pool_cpus();
  for (auto& [key, change] : changes_) {
    if (change.before && change.before->shares_pool_row && !change.before->vacating.empty()) --leaving;
    if (!change.after) continue;
    change.after->shares_pool_row = change.after->runs_on_whole_pool(transition_.pool, left);
    if (change.after->shares_pool_row && !change.after->vacating.empty()) ++leaving;
  }
  transition_.pool_vacating = leaving > 0 ? left : CpuSet();
}

void Draft::drop_unchanged() {
  std::erase_if(change_order_, [this](const placement::ContainerKey& key) {
    const Change& change = changes_.at(key);
    const bool same = change.before == change.after && !change.audit && !change.outcome;
    if (same) changes_.erase(key);
    return same;
  });
}

/// Updates the CPUs that a container may still be using: one that the runtime has may run where it was until it has
/// been seen elsewhere. The CPUs that a container which follows the pool keeps are known only once the pool is.
void Draft::update_vacating(bool pool_is_known) {
  for (auto& [key, change] : changes_) {
    if (!change.after) continue;
    Allocation& after = *change.after;
    if (!after.is_managed()) {
      after.vacating = after.vacating_alone = {};
      after.moved_from.reset();
      continue;
    }
    if (change.before && change.before->is_managed()) after.vacating |= change.before->placement.cpus;
    // Wherever the kernel has put it.
    if (change.before && change.before->squeeze == Squeeze::kLeftToKernel) after.vacating |= inventory().allowed;
    const bool stays = pool_is_known || !after.follows_pool() || after.conflict;
    if (stays) after.vacating -= after.placement.cpus;
    after.vacating_alone &= after.vacating;
  }
}

void Draft::record_kinds() {
  for (auto& [key, change] : changes_) change.kind = kind_of(change);
}

void Draft::assign_decision_numbers() {
  transition_.generation = ledger_.generation() + 1;
  for (const placement::ContainerKey& key : change_order_) {
    Change& change = changes_.at(key);
    if (change.after) change.after->generation = transition_.generation;
    if (change.after && change.audit) {
      change.after->decision = next_decision_++;
      if (change.after->is_bound() && !change.outcome) change.outcome = Outcome{"bound"};
    }
  }
  transition_.pool_cause = find_cause();
  transition_.changes.reserve(change_order_.size());
  for (const placement::ContainerKey& key : change_order_) {
    Change& change = changes_.at(key);
    const auto& cause = transition_.pool_cause.decision;
    if (change.audit && change.before && change.after->decision != cause) change.audit->caused_by = cause;
    transition_.changes.push_back(std::move(change));
  }
  transition_.next_decision = next_decision_;
}

/// Returns the container whose CPUs were taken or became free: other changes follow from that.
PoolCause Draft::find_cause() const {
  if (pool_stays_) return {};
  if (transition_.inventory) return {"machine", std::nullopt};
  const auto cause_of = [](const Change& change) {
    if (!change.after) return PoolCause{"ended", change.before->decision};
    const char* const audited = change.before ? "re-placed" : "placed";
    return PoolCause{change.audit ? audited : "left", change.after->decision};
  };
  if (cause_) {
    const auto change = changes_.find(*cause_);
    if (change != changes_.end()) return cause_of(change->second);
  }
  for (const placement::ContainerKey& key : change_order_) {
    if (changes_dedicated_cpus(changes_.at(key))) return cause_of(changes_.at(key));
  }
  return {transition_.writes_pool ? "started" : "", std::nullopt};
}

Transition Draft::finish() && {
  transition_.pool_before = transition_.pool = ledger_.pool();
  transition_.pool_vacating_before = transition_.pool_vacating = ledger_.pool_vacating();
  transition_.free_reserved = ledger_.free_reserved();
  transition_.free_isolated = ledger_.free_isolated();
  transition_.topology_inventory = inventory();
  transition_.machine = transition_.topology ? transition_.topology : ledger_.topology();
  if (changes_.empty() && !transition_.inventory && !transition_.writes_pool && !reconsiders_all_) {
    assign_decision_numbers();
    return std::move(transition_);
  }
  update_vacating(false);  // what was had alone and is being left is not in the pool
  keep_unleft_cpus();
  compute_pool();
  return_displaced();
  hold_stuck();
  follow_pool();
  end_squeezes();
  mark_overlapped();
  update_vacating(true);
  settle_quotas();
  share_pool_row();
  drop_unchanged();
  record_kinds();
  assign_decision_numbers();
  return std::move(transition_);
}

}  // namespace topolet::engine
