// Who holds what.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/index_set.hpp"
#include "core/placement/placement.hpp"
#include "core/placement/policy.hpp"
#include "core/placement/workload.hpp"

namespace topolet {

enum class HoldingState : std::uint8_t {
  kInFlight,  ///< decided; its create is on the way or about to be
  kInDoubt,   ///< its create ended without a yes or a no
  kBound,     ///< the runtime has the container
  kCrashed,   ///< the container failed; its CPUs are kept for its next attempt
};

/// What a decision of its own gave a container that had to leave some of it since.
struct Home {
  Placement placement;  ///< mode, CPUs and what was withheld
  CpuSet within;        ///< as in Holding
  NodeSet nodes;
  bool whole = false;  ///< shared: no home before all of `within` is allowed again
};

/// What the ledger keeps for one container. `Workload::env` is dropped on the way in.
struct Holding {
  Workload workload;
  Placement placement;
  CpuSet within;          ///< shared, reserved: the CPUs it may use when they are in the pool
  CpuSet leaving;         ///< CPUs it had for itself, withheld only until it has left them
  bool conflict = false;  ///< the kubelet's set could not be kept apart from another's; it stands as the kubelet said
  HoldingState state = HoldingState::kInFlight;
  std::string container_id;  ///< empty until bound
  bool started = false;
  std::uint64_t generation = 0;               ///< of its newest change
  std::chrono::milliseconds doubt_since{};    ///< wall clock, of the first doubt; a refused retry does not renew it
  std::chrono::milliseconds crashed_since{};  ///< wall clock
  std::optional<Home> home;
  CpuSet came;            ///< exclusive: CPUs that came since it was placed
  CpuSet asked_on;        ///< shared: the CPUs it had when the policies were last asked about it
  bool narrowed = false;  ///< shared: it was given less than a candidate, and does not grow with one
  /// The number of its decision in the store, once that is written. Shared with the writes that still wait for it.
  std::shared_ptr<std::int64_t> decision = std::make_shared<std::int64_t>(0);
};

/// The CPUs topolet deals in. Sets as in LedgerView.
struct LedgerRules {
  CpuSet allowed;
  CpuSet reserved;
  CpuSet isolated;
  CpuSet outside = {};  ///< held by something that is no container; nobody else's while it is
};

/// Exclusive and withheld CPUs, the pool that remains, and who is where. Every change makes a new generation and says
/// which other containers' CPUs it changed. Plain data: one thread.
class Ledger {
 public:
  Ledger(LedgerRules rules, std::uint64_t generation);

  std::uint64_t generation() const { return generation_; }
  const LedgerRules& rules() const { return rules_; }
  const CpuSet& pool() const { return pool_; }
  const std::map<ContainerKey, Holding>& holdings() const { return holdings_; }

  const Holding* find(const ContainerKey& key) const;
  /// By the runtime's id, or by a part from its beginning that fits no other: runtimes take those too.
  const Holding* find_by_container(const std::string& container_id) const;
  std::vector<ContainerKey> in_sandbox(const std::string& sandbox_id) const;
  /// What an earlier attempt of the same container, in the same pod, left behind when it failed; null if nothing.
  const Holding* find_crashed(const ContainerKey& key) const;

  /// A copy for one decision; `without` leaves one container's own holding out, as if it were released.
  LedgerView view(const ContainerKey* without = nullptr) const;

  /// Takes a holding in, in the place of any of the same key. Its CPUs, if it is shared or reserved, are computed here.
  /// Returns the keys of the other containers whose CPUs changed.
  std::vector<ContainerKey> put(Holding holding);
  /// Drops a holding; nothing happens if there is none. Returns the keys of the containers whose CPUs changed.
  std::vector<ContainerKey> release(const ContainerKey& key);

  /// Deals in other CPUs from now on. Returns the keys of the containers whose CPUs changed. Exclusive and withheld
  /// CPUs stay with their holders, even where they are not allowed any more: these must be placed anew.
  std::vector<ContainerKey> set_rules(LedgerRules rules);

  /// Changes that move no CPUs. False if there is no such holding.
  bool bind(const ContainerKey& key, const std::string& container_id);
  bool set_doubt(const ContainerKey& key, std::chrono::milliseconds since);
  bool set_in_flight(const ContainerKey& key);
  bool set_started(const ContainerKey& key);
  bool set_crashed(const ContainerKey& key, std::chrono::milliseconds since);
  bool set_demand(const ContainerKey& key, const Demand& demand);
  bool set_narrowed(const ContainerKey& key);
  bool set_asked(const ContainerKey& key);

  /// True while some container's set came from the kubelet.
  bool kubelet_hands_out_cpusets() const;

  /// The CPUs of a shared or reserved container that may use `within`, for a pool. Where nothing of `within` is left,
  /// the whole pool. Empty only if the pool (and for reserved mode the reserved set) is.
  static CpuSet shared_cpus(Mode mode, const CpuSet& within, const CpuSet& pool, const CpuSet& reserved,
                            bool keep_within);

 private:
  std::vector<ContainerKey> recompute(const ContainerKey* changed);
  Holding* mutable_find(const ContainerKey& key);

  LedgerRules rules_;
  std::uint64_t generation_;
  CpuSet pool_;
  std::map<ContainerKey, Holding> holdings_;
  std::map<std::string, ContainerKey> by_container_;
};

}  // namespace topolet
