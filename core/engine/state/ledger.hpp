// Records which container holds which CPUs and memory nodes.
//
// The room core/engine/state, namespace topolet::engine: allocations, the ledger of all of them, what each event
// changes (transitions.hpp), and the one writer to the store (writer.hpp). Every change goes through
// Committer::commit(). It sees none of the other rooms of the engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/index_set.hpp"
#include "core/engine/state/allocation.hpp"
#include "core/engine/state/allocations.hpp"
#include "core/engine/state/recent_sizes.hpp"
#include "core/engine/state/transition.hpp"
#include "core/placement/policy.hpp"

namespace topolet::engine {

/// All allocations and pods, and the shared pool that remains. A plain value: plans are made on copies. The one that
/// counts changes by apply() only, through the Committer. One thread.
class Ledger {
 public:
  Ledger(CpuInventory inventory, std::uint64_t generation, std::int64_t next_decision = 1);

  std::uint64_t generation() const { return generation_; }
  std::int64_t next_decision() const { return next_decision_; }
  const CpuInventory& inventory() const { return inventory_; }
  const CpuSet& pool() const { return pool_; }
  /// CPUs that were in the pool, and that containers which run on the whole pool may not have left yet. Some of these
  /// containers may have: each one's own `vacating` says that until it is read back from the store.
  const CpuSet& pool_vacating() const { return pool_vacating_; }
  /// Returns how many of them have not left all of these.
  std::size_t leaving_pool_cpus() const { return leaving_pool_cpus_; }
  /// The reserved CPUs that nobody holds alone.
  const CpuSet& free_reserved() const { return free_reserved_; }
  /// The isolated CPUs that nobody holds alone.
  const CpuSet& free_isolated() const { return free_isolated_; }
  /// The machine and what decisions are made with, as they were recorded last; null before that.
  const std::shared_ptr<const topology::Topology>& topology() const { return topology_; }
  const std::shared_ptr<const Setup>& setup() const { return setup_; }
  const Allocations& allocations() const { return allocations_; }
  const std::map<std::string, Pod>& pods() const { return pods_of_ == nullptr ? pods_ : pods_of_->pods(); }
  /// Returns the reported capacities of NUMA nodes, by OS index.
  const std::map<std::uint32_t, ReportedCapacity>& reported_capacities() const { return reported_capacities_; }
  /// The CPUs of the pool that containers which yield to others are narrowed to; empty: they are not. Known as long as
  /// there is such a container.
  const CpuSet& besteffort() const { return besteffort_; }
  /// The sizes of the exclusive containers that were placed in the last day.
  const RecentSizes& recent_sizes() const { return recent_sizes_; }

  const Allocation* find(const placement::ContainerKey& key) const;
  /// By the runtime's id, or by a part from its beginning that fits no other: runtimes take those too.
  const Allocation* find_by_container(const std::string& container_id) const;
  /// Returns the pending allocation of the container that is to have this id; null if none was told that.
  const Allocation* find_announced(const std::string& sandbox_id, const std::string& container_id) const;
  /// The attempt of a container that is made by whoever does not count them: greater than all in the ledger.
  std::uint32_t next_attempt(const std::string& sandbox_id, const std::string& name) const;
  std::vector<placement::ContainerKey> in_sandbox(const std::string& sandbox_id) const;
  /// Returns how many CPUs containers wait for that come before this one: see Waiting.
  std::uint32_t cpus_awaited_before(const placement::ContainerKey& key) const;
  /// Returns true if nothing is held for any other container of its pod.
  bool is_alone_in_pod(const placement::ContainerKey& key) const;
  /// Returns the allocation kept of an earlier attempt of the same container, in the same pod; null if there is none.
  const Allocation* find_kept(const placement::ContainerKey& key) const;
  /// Returns true if a later attempt of the same container, in the same pod, is there already, or was.
  bool has_later_attempt(const placement::ContainerKey& key) const;
  /// Containers that have ended and whose CPUs are kept, the oldest first.
  std::vector<placement::ContainerKey> kept() const;
  /// The init container that the one of `key` comes after: it has ended well, was the newest of its sandbox, and this
  /// one is created there for the first time. Null if there is none.
  const Allocation* find_ended_init(const placement::ContainerKey& key) const;
  /// The containers of a sandbox in the order in which they were first created, as far as is known.
  std::vector<std::string> made_in(const std::string& sandbox_id) const;
  /// Returns the exclusive CPUs that an earlier attempt of the container last had, and those withheld for it, as far as
  /// is known.
  placement::Placement former_placement(const placement::ContainerKey& key) const;

  /// By id or its beginning. Null if the sandbox is not known.
  const Pod* find_pod(const std::string& sandbox_id) const;
  /// Any sandbox of the pod for which `has` holds, the named one first; null if there is none.
  template <class Has>
  const Pod* find_pod_if(const std::string& pod_uid, const std::string& sandbox_id, Has has) const {
    if (const auto own = pods().find(sandbox_id); own != pods().end() && has(own->second)) return &own->second;
    for (const auto& [id, pod] : pods()) {
      if (!pod_uid.empty() && pod.sandbox.pod_uid == pod_uid && has(pod)) return &pod;
    }
    return nullptr;
  }
  /// The nodes of the candidate that the pod's first container was given; empty if that is not decided.
  NodeSet nodes_of_pod(const std::string& pod_uid, const std::string& sandbox_id) const;

  /// For one decision; `without` leaves one container's own allocation out, as if it were released.
  placement::LedgerSnapshot snapshot(const placement::ContainerKey* without = nullptr) const;

  /// Books the memory request of containers of the pod that have one estimate together: only one has it, `asked` or
  /// another, whose entry in `view` then has none. See placement::booked_demands().
  void book_together(placement::Workload& asked, placement::LedgerSnapshot& view) const;
  /// Returns the demand that is booked for a container of the ledger.
  const placement::Demand& booked_demand(const placement::ContainerKey& key) const { return (*shown_at(key))->demand; }

  /// Returns the CPUs that others have alone, also those that they have not left yet.
  CpuSet dedicated_to_others(const placement::ContainerKey& key) const;

  /// True while some container's set came from the kubelet.
  bool kubelet_hands_out_cpusets() const { return with_kubelet_cpus_ > 0; }

  /// Containers that may still run on CPUs which the one of `key` is to have alone. Nothing of it may run before they
  /// have left.
  std::vector<placement::ContainerKey> neighbours_blocking(const placement::ContainerKey& key) const;

  /// Returns the containers that a running container waits for before it moves to its own CPUs. Leaves out those that
  /// wait for it in turn, directly or indirectly: in such a cycle one has to move first.
  std::vector<placement::ContainerKey> neighbours_blocking_outside_cycles(const placement::ContainerKey& key) const;

  /// CPUs on which others stay whatever they are told, so that the container cannot have them alone. Those that it has
  /// alone already are not among them.
  CpuSet barred_for(const placement::ContainerKey* key) const;

  /// Some containers were seen where they should not be, or are marked because of others that were.
  bool has_strays() const { return strays_ > 0; }

  /// Carries a transition out that was computed on just this ledger.
  void apply(const Transition& transition);

  /// Returns a copy for planning on the same thread that does not outlive this one: it knows no container by its id,
  /// its pods are those of this, and so are the allocations that neither changes.
  Ledger for_plan() const;
  /// For a plan's copy: adds or removes an allocation, and adapts the containers that follow the pool.
  void assume(Allocation allocation);
  void assume_released(const placement::ContainerKey& key);
  /// Takes over what the store knows, as it is.
  void load(std::vector<Allocation> allocations, std::vector<Pod> pods, std::vector<ReportedCapacity> capacities = {},
            RecentSizes recent_sizes = {});

  /// The pool that remains of `inventory` when those CPUs are held.
  static CpuSet pool_of(const CpuInventory& inventory, const CpuSet& exclusive, const CpuSet& withheld);

 private:
  using Shown = std::vector<placement::LedgerEntries::Shared>;

  static placement::LedgerEntries::Shared entry_of(const Allocation& allocation);
  /// Returns where the entry of this key is, or would be.
  Shown::const_iterator shown_at(const placement::ContainerKey& key) const;
  void show(placement::LedgerEntries::Shared entry);
  std::vector<const placement::Workload*> workloads_of_pod(const placement::ContainerKey& key,
                                                           const placement::Workload* asked = nullptr) const;
  void sort_as_made(const std::string& sandbox_id, std::vector<const placement::Workload*>& workloads) const;
  void book_pod(const placement::ContainerKey& key);
  /// Another attempt of the container, in the same pod, for which `is(key, allocation)`; null if there is none.
  template <class Is>
  const Allocation* find_attempt(const placement::ContainerKey& key, Is is) const;
  void show_unmovable(const placement::ContainerKey* without, placement::LedgerSnapshot& view) const;
  bool blocks_indirectly(const placement::ContainerKey& who, const placement::ContainerKey& of) const;
  void count(const Allocation& allocation, bool is_there);
  void forget_container(const Allocation& allocation);
  void put(Allocation allocation);
  void erase(const placement::ContainerKey& key);

  CpuInventory inventory_;
  std::uint64_t generation_;
  std::int64_t next_decision_;
  CpuSet pool_;
  CpuSet pool_vacating_;
  CpuSet free_reserved_;
  CpuSet free_isolated_;
  std::shared_ptr<const topology::Topology> topology_;
  std::shared_ptr<const Setup> setup_;
  Allocations allocations_;
  Shown shown_;  ///< the allocations as snapshots have them, in the same order
  std::map<std::string, placement::ContainerKey> by_container_;
  std::size_t strays_ = 0;             ///< among the allocations
  std::size_t unmovable_ = 0;          ///< the same: those that bar CPUs
  std::size_t with_kubelet_cpus_ = 0;  ///< the same: those whose set came from the kubelet
  std::size_t leaving_pool_cpus_ = 0;  ///< the same: those on the whole pool that have not left CPUs which were in it
  std::map<std::string, Pod> pods_;
  const Ledger* pods_of_ = nullptr;  ///< of a plan's copy: who has its pods
  std::map<std::uint32_t, ReportedCapacity> reported_capacities_;
  RecentSizes recent_sizes_;
  CpuSet besteffort_;
};

/// The exclusive and withheld CPUs of the allocations that were added.
struct DedicatedCpus {
  CpuSet exclusive;
  CpuSet withheld;

  void add(const Allocation& allocation);
  /// The reserved CPUs that nobody holds: a container keeps CPUs that became reserved after it had got them.
  CpuSet free_reserved_of(const CpuInventory& inventory) const;
  CpuSet free_isolated_of(const CpuInventory& inventory) const;

  friend bool operator==(const DedicatedCpus&, const DedicatedCpus&) = default;
};

/// For a plan: the ledger without the `released` allocations. `trial` stores the copy if one is needed.
const Ledger& ledger_without(const Ledger& ledger, const std::vector<placement::ContainerKey>& released,
                             std::optional<Ledger>& trial);

}  // namespace topolet::engine
