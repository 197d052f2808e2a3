// The part of the ledger that shows policies what it holds, and what is booked for whom.
#include "core/engine/state/ledger.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/placement/shared_estimates.hpp"

namespace topolet::engine {
namespace {

/// Returns the CPUs that its own container has alone: they are not barred to it.
CpuSet had_alone_by(const Allocation* own) {
  return own != nullptr && own->is_managed() ? own->dedicated_cpus() : CpuSet();
}

}  // namespace

placement::LedgerSnapshot Ledger::snapshot(const placement::ContainerKey* without) const {
  placement::LedgerSnapshot view;
  view.generation = generation_;
  view.allowed = inventory_.allowed;
  view.reserved = inventory_.reserved;
  view.exclusive = inventory_.occupied;
  view.entries.reserve(shown_.size());
  const Allocation* const left_out = without == nullptr ? nullptr : find(*without);
  const auto skipped = left_out == nullptr ? shown_.end() : shown_at(*without);
  for (auto at = shown_.begin(); at != shown_.end(); ++at) {
    if (at == skipped) continue;
    const placement::LedgerEntries::Shared& entry = *at;
    if (holds_exclusively(entry->placement.mode)) view.exclusive |= entry->placement.cpus;
    view.withheld |= entry->placement.withheld;
    view.entries.push_back(entry);
  }
  view.pool = pool_of(inventory_, view.exclusive, view.withheld);
  if (unmovable_ > 0) show_unmovable(without, view);
  view.isolated = (inventory_.isolated & inventory_.allowed) - inventory_.reserved - view.exclusive - view.withheld;
  return view;
}

void Ledger::show_unmovable(const placement::ContainerKey* without, placement::LedgerSnapshot& view) const {
  const CpuSet own = without == nullptr ? CpuSet() : had_alone_by(find(*without));
  for (const auto& [key, allocation] : allocations_) {
    if (without != nullptr && key == *without) continue;
    CpuSet barred = allocation.barred_cpus() - own;
    if (barred.empty()) continue;
    view.barred |= barred;
    view.unmovable.push_back({display_name(allocation.workload), std::move(barred),
                              allocation.stuck ? "cannot be moved" : "is put there by something else than topolet"});
  }
}

CpuSet Ledger::barred_for(const placement::ContainerKey* key) const {
  placement::LedgerSnapshot view;
  if (unmovable_ > 0) show_unmovable(key, view);
  return view.barred;
}

Ledger::Shown::const_iterator Ledger::shown_at(const placement::ContainerKey& key) const {
  return std::lower_bound(shown_.begin(), shown_.end(), key,
                          [](const auto& entry, const placement::ContainerKey& sought) { return entry->key < sought; });
}

/// Whoever shows a container to policies copies it anew where the entry is another one.
void Ledger::show(placement::LedgerEntries::Shared entry) {
  const auto place = shown_.begin() + (shown_at(entry->key) - shown_.begin());
  if (**place != *entry) *place = std::move(entry);
}

placement::LedgerEntries::Shared Ledger::entry_of(const Allocation& allocation) {
  placement::Placement placement = allocation.placement;
  placement.withheld = allocation.effective_withheld();
  // Policies book what it requests there: its memory where it will be, while it is on its way.
  placement.cpus = allocation.home_cpus();
  placement.mems = allocation.intended_mems();
  const placement::Workload& workload = allocation.workload;
  return std::make_shared<const placement::LedgerEntry>(
      placement::LedgerEntry{.key = workload.key,
                             .qos = workload.qos,
                             .placement = std::move(placement),
                             .demand = workload.demand,
                             .within = allocation.within,
                             .bound = allocation.conflict || allocation.stays_within(),
                             .settings = workload.settings,
                             .name = display_name(workload),
                             .used_devices = workload.used_devices,
                             .tags = workload.tags,
                             .pod_name = workload.pod_name,
                             .pod_namespace = workload.pod_namespace,
                             .runtime_handler = workload.runtime_handler,
                             .pod_labels = workload.pod_labels,
                             .pod_annotations = workload.pod_annotations,
                             .annotations = workload.annotations,
                             .devices = workload.devices,
                             .cdi_devices = workload.cdi_devices,
                             .container_id = allocation.id_in_runtime(),
                             .pending = allocation.is_pending(),
                             .started = allocation.has_run(),
                             .adopted = allocation.adopted});
}

/// `asked` stands for the container of its key, and for an earlier attempt.
std::vector<const placement::Workload*> Ledger::workloads_of_pod(const placement::ContainerKey& key,
                                                                 const placement::Workload* asked) const {
  std::vector<const placement::Workload*> workloads;
  for (auto it = allocations_.lower_bound({key.pod_uid, {}, 0, {}}); it != allocations_.end(); ++it) {
    if (it->first.pod_uid != key.pod_uid) break;
    // Pods made by hand may have no uid.
    if (key.pod_uid.empty() && it->first.sandbox_id != key.sandbox_id) continue;
    const bool is_asked =
        asked != nullptr && (it->first == key || (it->first.name == key.name && it->second.is_kept()));
    if (!is_asked) workloads.push_back(&it->second.workload);
  }
  if (asked != nullptr) workloads.push_back(asked);
  return workloads;
}

/// Sorts by creation. A container that is to be created, and has not been before, is the latest.
void Ledger::sort_as_made(const std::string& sandbox_id, std::vector<const placement::Workload*>& workloads) const {
  if (workloads.size() < 2) return;
  const std::vector<std::string> made = made_in(sandbox_id);
  const auto order = [&](const placement::Workload* workload) {
    return std::find(made.begin(), made.end(), workload->key.name) - made.begin();
  };
  std::stable_sort(workloads.begin(), workloads.end(),
                   [&](const auto* a, const auto* b) { return order(a) < order(b); });
}

/// Nearly all containers have what they request booked, whoever else is in their pod.
void Ledger::book_pod(const placement::ContainerKey& key) {
  std::vector<const placement::Workload*> workloads = workloads_of_pod(key);
  const bool any_estimated = std::any_of(workloads.begin(), workloads.end(), [](const placement::Workload* workload) {
    return workload->demand.memory_request_estimated;
  });
  if (!any_estimated) return;
  sort_as_made(key.sandbox_id, workloads);
  std::vector<placement::Demand> booked = placement::booked_demands(workloads);
  for (std::size_t i = 0; i < workloads.size(); ++i) {
    const placement::LedgerEntry& entry = **shown_at(workloads[i]->key);
    if (entry.demand == booked[i]) continue;
    auto changed = std::make_shared<placement::LedgerEntry>(entry);
    changed->demand = std::move(booked[i]);
    show(std::move(changed));
  }
}

void Ledger::book_together(placement::Workload& asked, placement::LedgerSnapshot& view) const {
  if (!asked.demand.memory_request_estimated) return;
  std::vector<const placement::Workload*> workloads = workloads_of_pod(asked.key, &asked);
  if (workloads.size() < 2) return;
  sort_as_made(asked.key.sandbox_id, workloads);
  std::vector<placement::Demand> booked = placement::booked_demands(workloads);
  std::map<placement::ContainerKey, placement::Demand*> by_key;
  placement::Demand own = asked.demand;
  for (std::size_t i = 0; i < workloads.size(); ++i) {
    if (workloads[i] != &asked) {
      by_key[workloads[i]->key] = &booked[i];
    } else if (booked[i].memory_request_bytes == 0) {
      // The limit of the pod does not tell how much one of its containers needs.
      own = booked[i];
    }
  }
  placement::LedgerEntries entries;
  entries.reserve(view.entries.size());
  for (const placement::LedgerEntries::Shared& entry : view.entries.shared()) {
    const auto mate = by_key.find(entry->key);
    if (mate == by_key.end() || *mate->second == entry->demand) {
      entries.push_back(entry);
      continue;
    }
    placement::LedgerEntry changed = *entry;
    changed.demand = std::move(*mate->second);
    entries.push_back(std::move(changed));
  }
  view.entries = std::move(entries);
  asked.demand = std::move(own);
}

}  // namespace topolet::engine
