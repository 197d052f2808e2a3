// A transition in the making.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "core/engine/state/ledger.hpp"
#include "core/engine/state/transition.hpp"

namespace topolet::engine {

/// Collects what changes on top of a ledger that stays as it is, and works out what follows from it: the pool, who
/// follows the pool, who returns to its preferred placement, and what each container is vacating.
class Draft {
 public:
  /// `ledger` must outlive the draft. `drops_quotas`: containers with CPUs of their own have no CFS quota.
  Draft(const Ledger& ledger, std::chrono::milliseconds now, bool drops_quotas = false)
      : ledger_(ledger), next_decision_(ledger.next_decision()), drops_quotas_(drops_quotas) {
    transition_.wall_time = now;
  }

  /// As it is in the draft; null if there is none.
  const Allocation* find(const placement::ContainerKey& key) const;

  /// A new allocation, or another value of one.
  void put(Allocation after);
  /// The same as a decision of its own, in the place of the one before, or of `supersedes`.
  void put(Allocation after, AuditEntry audit, std::optional<std::int64_t> supersedes = std::nullopt);
  void set_outcome(const placement::ContainerKey& key, Outcome outcome);
  /// It has ended by itself, with this code.
  void set_exit_code(const placement::ContainerKey& key, std::int32_t code) { change_of(key).exit_code = code; }
  /// It was found in the runtime.
  void mark_found(const placement::ContainerKey& key) { change_of(key).is_found = true; }
  /// Ends an allocation, if there is one. An empty `cause`: its decision is superseded by another's.
  void end(const placement::ContainerKey& key, const std::string& cause);

  /// Sets the container whose decision the change is for: it is the cause of all other changes.
  void set_cause(placement::ContainerKey key) { cause_ = std::move(key); }

  /// Returns the number that the audit knows it by.
  std::int64_t record_event(AuditEntry audit, std::optional<Allocation> subject = std::nullopt);
  /// Counts one more of the denial that is `decision`; its secrets are dropped.
  void count_repeated_denial(std::int64_t decision, placement::Workload workload, std::string reason);
  void set_inventory(CpuInventory inventory) { transition_.inventory = std::move(inventory); }
  void record_pool() { transition_.writes_pool = true; }
  void record_topology(std::shared_ptr<const topology::Topology> topology) {
    transition_.topology = std::move(topology);
  }
  void record_setup(Setup setup) { transition_.setup = std::move(setup); }
  /// Decides anew who sets the quotas of allocations that do not change otherwise: the configuration may have changed.
  void settle_all_quotas();
  /// Decides anew who goes back to where it was, also of those that do not change otherwise.
  void reconsider_all() { reconsiders_all_ = true; }
  /// The CPUs that the pool gains were in it before, so nobody is moved to them.
  void mark_rollback() { transition_.is_rollback = true; }

  /// A pod as it is in the draft; an empty one with this id if it is not known.
  Pod pod(const std::string& sandbox_id) const;
  /// The pod of the workload, which may be known by nothing else.
  Pod pod_of(const placement::Workload& workload) const;
  void put_pod(Pod pod);
  /// Records the warnings that were logged about the workload's pod.
  void add_warnings(const placement::Workload& workload, const std::vector<std::string>& warnings);
  void forget_pod(const std::string& sandbox_id);

  void put_capacity(ReportedCapacity reported) {
    const std::uint32_t node = reported.node;
    transition_.capacities.push_back({node, std::move(reported)});
  }
  void put_recent_sizes(RecentSizes sizes) { transition_.recent_sizes = std::move(sizes); }
  /// The containers that yield to others follow when they change in the draft.
  void narrow_besteffort(CpuSet cpus) { transition_.besteffort = std::move(cpus); }
  void forget_capacity(std::uint32_t node) { transition_.capacities.push_back({node, std::nullopt}); }

  /// To be called once.
  Transition finish() &&;

 private:
  Change& begin_change(const placement::ContainerKey& key);
  Change& change_of(const placement::ContainerKey& key);
  /// Every allocation as it is in the draft; if the pool stays as it is, only those that change.
  template <class Visit>
  void for_each(Visit visit) const {
    for_each_other(visit);
    for_each_changed(visit);
  }
  /// Those that do not change; none if the pool stays as it is.
  template <class Visit>
  void for_each_other(Visit visit) const {
    if (pool_stays_) return;
    for (const auto& [key, allocation] : ledger_.allocations()) {
      if (changed_.count(&allocation) == 0) visit(key, allocation);
    }
  }
  template <class Visit>
  void for_each_changed(Visit visit) const {
    for (const auto& [key, change] : changes_) {
      if (change.after) visit(key, *change.after);
    }
  }
  const CpuInventory& inventory() const { return transition_.inventory ? *transition_.inventory : ledger_.inventory(); }
  void remember_former(const Allocation& ended);
  void keep_unleft_cpus();
  bool keeps_pool() const;
  void compute_pool();
  void return_displaced();
  bool is_open(placement::Mode mode, const CpuSet& cpus) const;
  CpuSet shared_cpus_of(const Allocation& allocation) const;
  CpuSet narrowed_to(const Allocation& allocation) const;
  bool has_to_return(const Allocation& allocation) const;
  bool waits_to_return(const Allocation& allocation) const;
  CpuSet home_cpus_of(const Allocation& allocation) const;
  CpuSet home_cpus_of(const Allocation& allocation, placement::Mode mode, const CpuSet& within) const;
  bool may_stay_displaced(const Allocation& allocation) const;
  void keep_from_crowding(std::vector<const Allocation*>& back) const;
  void hold_stuck();
  bool is_left_alone(const Allocation& allocation, const CpuSet& coming_or_going) const;
  void follow_pool();
  void note_narrowed();
  void end_squeezes();
  bool has_strays() const;
  void mark_overlapped();
  void settle_quotas();
  void share_pool_row();
  void drop_unchanged();
  void record_kinds();
  void update_vacating(bool pool_is_known);
  void assign_decision_numbers();
  PoolCause find_cause() const;

  const Ledger& ledger_;
  std::vector<placement::ContainerKey> change_order_;
  std::map<placement::ContainerKey, Change> changes_;
  std::unordered_set<const Allocation*> changed_;  ///< those of the ledger that are among the changes
  std::int64_t next_decision_;
  const bool drops_quotas_;
  bool pool_stays_ = false;
  bool reconsiders_all_ = false;
  std::optional<placement::ContainerKey> cause_;
  Transition transition_;
};

}  // namespace topolet::engine
