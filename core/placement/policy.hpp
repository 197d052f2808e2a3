// A policy as decide() sees it. The plugin room implements it for shared objects; tests implement it in line.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/index_set.hpp"
#include "core/base/result.hpp"
#include "core/load/load.hpp"
#include "core/placement/placement.hpp"
#include "core/placement/workload.hpp"
#include "core/topology/topology.hpp"

namespace topolet::placement {

/// A node set the workload could be placed on.
struct Candidate {
  topology::DomainKind kind =
      topology::DomainKind::kMachine;  ///< of the smallest hwloc domain with these nodes; kMachine otherwise
  bool is_domain = false;              ///< false: a combination of nodes that hwloc knows no object for
  NodeSet nodes;                       ///< none: the CPUs outside any node
  CpuSet cpus;                         ///< allowed CPUs of the nodes
  std::uint32_t distance = 0;  ///< sum of SLIT distances over all ordered pairs of its nodes, itself included; or 10

  friend bool operator==(const Candidate&, const Candidate&) = default;
};

/// One container as the ledger holds it.
struct LedgerEntry {
  ContainerKey key;
  Qos qos = Qos::kBestEffort;
  Placement placement;
  Demand demand;
  CpuSet within;                               ///< shared: the CPUs it may use when they are in the pool
  bool bound = false;                          ///< shared: the kubelet said where; it cannot be moved out of `within`
  SharedStringMap settings = {};               ///< as in Workload
  std::string name = {};                       ///< how people name it, see display_name()
  std::vector<std::string> used_devices = {};  ///< as in Workload, as are the next
  SharedStringMap tags = {};
  std::string pod_name = {};
  std::string pod_namespace = {};
  std::string runtime_handler = {};
  SharedStringMap pod_labels = {};
  SharedStringMap pod_annotations = {};
  SharedStringMap annotations = {};
  std::vector<std::string> devices = {};
  std::vector<std::string> cdi_devices = {};
  std::string container_id = {};  ///< the runtime's; empty until it has answered
  bool pending = false;           ///< the runtime has not answered its create yet, or nobody knows what
  bool started = false;           ///< it runs, or has run
  bool adopted = false;           ///< topolet did not see its creation

  friend bool operator==(const LedgerEntry&, const LedgerEntry&) = default;
};

/// Containers in the order of their keys. Each is shared, not copied, by all who look at the ledger while it is as it
/// is.
class LedgerEntries {
 public:
  using Shared = std::shared_ptr<const LedgerEntry>;

  class Iterator {
   public:
    using value_type = LedgerEntry;
    using difference_type = std::ptrdiff_t;
    using reference = const LedgerEntry&;
    using pointer = const LedgerEntry*;
    using iterator_category = std::forward_iterator_tag;

    Iterator() = default;
    explicit Iterator(std::vector<Shared>::const_iterator at) : at_(at) {}
    reference operator*() const { return **at_; }
    pointer operator->() const { return at_->get(); }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) { return Iterator(at_++); }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    std::vector<Shared>::const_iterator at_;
  };
  using value_type = LedgerEntry;
  using const_iterator = Iterator;

  Iterator begin() const { return Iterator(entries_.begin()); }
  Iterator end() const { return Iterator(entries_.end()); }
  std::size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  const LedgerEntry& operator[](std::size_t position) const { return *entries_[position]; }
  const LedgerEntry& at(std::size_t position) const { return *entries_.at(position); }
  const LedgerEntry& front() const { return *entries_.front(); }
  /// To tell which containers another ledger shares with this one.
  const std::vector<Shared>& shared() const { return entries_; }

  void reserve(std::size_t count) { entries_.reserve(count); }
  void push_back(Shared entry) { entries_.push_back(std::move(entry)); }
  void push_back(LedgerEntry entry) { push_back(std::make_shared<const LedgerEntry>(std::move(entry))); }

 private:
  std::vector<Shared> entries_;
};

/// A container that stays on its CPUs whatever it is told.
struct Unmovable {
  std::string name;  ///< as display_name() says it
  CpuSet cpus;       ///< where it stays
  const char* why = "cannot be moved";
};

/// The ledger as one decision sees it; never changed.
struct LedgerSnapshot {
  std::uint64_t generation = 0;
  CpuSet allowed;    ///< CPUs topolet may use at all, reserved ones included
  CpuSet reserved;   ///< the system's; never in the pool, never exclusive
  CpuSet pool;       ///< shared CPUs: allowed − reserved − exclusive − withheld − isolated
  CpuSet exclusive;  ///< union over all containers
  CpuSet withheld;   ///< union over all containers
  CpuSet isolated;   ///< the kernel's isolcpus that are allowed and free; never in the pool
  LedgerEntries entries;
  CpuSet barred = {};                     ///< CPUs that nobody is given alone: of these containers
  std::vector<Unmovable> unmovable = {};  ///< in the order of their keys

  /// The reserved CPUs that nobody holds: a container keeps CPUs that became reserved after it had got them.
  CpuSet free_reserved() const { return reserved - exclusive - withheld; }
};

/// The source of the CPUs of an exclusive container.
enum class CpuSource : std::uint8_t {
  kPool,
  kPreferIsolated,  ///< isolated CPUs if they fit, else the pool
  kIsolated,        ///< isolated CPUs or none
};

/// The reason why a container gets no CPUs of its own.
enum class NotExclusive : std::uint8_t {
  kAnnotatedNone,        ///< topolet.io/cpus = none
  kAnnotatedShared,      ///< topolet.io/cpus = shared
  kBurstable,            ///< neither Guaranteed nor annotated
  kBestEffort,           ///< neither Guaranteed nor annotated
  kUnknownDemand,        ///< it was found, and nobody tells exactly what it requests
  kFractionalRequest,    ///< Guaranteed, but not for whole CPUs
  kNoRequest,            ///< annotated, but it asks for no CPU
  kUnknownRequest,       ///< for 256 CPUs or more, and without a limit
  kNothingRequested,     ///< Burstable by its memory
  kNoOwnRequest,         ///< its pod has one
  kOnlyWholeCpus,        ///< annotated, but it may not have more than it requests, and that is not a whole number
  kReservedNamespace,    ///< and not annotated
  kRuleNever,            ///< placement.exclusive = never
  kRuleAnnotated,        ///< placement.exclusive = annotated, and it is not
  kKubeletHandsOutCpus,  ///< and so topolet gives CPUs to nobody alone
  kOnlyAtCreation,       ///< it is being placed anew
  kNodeFull,             ///< placement.when-full = share; the reason is told before
};

/// The reason why a decision is made.
enum class Occasion : std::uint8_t {
  kCreate,   ///< a container is created for the first time
  kRestart,  ///< it is created again after it ended
  kResize,   ///< what it requests has changed
  kMove,     ///< it could be better off elsewhere
  kRepair,   ///< it cannot stay as it is: the machine or its neighbours have changed
  kAdopt,    ///< it was found running
};

/// What a container has, or had before it ended.
struct Had {
  CpuSet cpus;
  CpuSet withheld;
  NodeSet mems;

  friend bool operator==(const Had&, const Had&) = default;
};

/// Options of one policy that the others must go by, too. The core passes them on and makes nothing of them.
struct CommonOptions {
  bool whole_cores = false;   ///< exclusive CPUs are handed out as whole cores
  bool pod_scope = false;     ///< the containers of a pod share the nodes of its first one
  bool spread_cores = false;  ///< exclusive CPUs are spread over cores

  friend bool operator==(const CommonOptions&, const CommonOptions&) = default;
};

/// Everything a policy sees of one decision. Immutable and shared: an abandoned call may outlive its decision.
struct PolicyRequest {
  std::shared_ptr<const topology::Topology> topology;
  LedgerSnapshot ledger;
  Workload workload;
  std::shared_ptr<const load::Load> load = {};  ///< what is measured; null: nothing
  std::string container_id = {};                ///< the runtime's; empty until the runtime has created it
  Occasion occasion = Occasion::kCreate;
  Had had = {};                       ///< nothing when it is created for the first time; all of `keep` is in it
  CommonOptions common_options = {};  ///< decide() sets them, by its votes
  std::uint32_t min_shared_cpus = 0;  ///< the rule
  /// The CPUs of the largest exclusive container that was placed in the last day, with those kept idle for it; 0: none
  /// was, as far as is known.
  std::uint32_t largest_exclusive_cpus = 0;
  std::vector<std::string> rdt_classes = {};      ///< that policies may put the container into
  bool any_rdt_class = false;                     ///< they may name any
  Settable settable = {};                         ///< what policies may set that not every front end can pass on
  bool exclusive = false;                         ///< CPUs of its own are asked for
  std::uint32_t exclusive_cpus = 0;               ///< how many; 0 unless `exclusive`
  std::uint32_t awaited_cpus = 0;                 ///< so many of the pool are for containers that come before it
  std::optional<NotExclusive> why_not_exclusive;  ///< set unless `exclusive`
  Mode shared_mode = Mode::kShared;        ///< without CPUs of its own; kReserved: the reserved CPUs are open to it
  bool kubelet_hands_out_cpusets = false;  ///< and so nobody else gives CPUs to one container alone
  std::vector<Candidate> candidates;
  bool candidates_are_cut = false;               ///< there are others, which are left out for this decision
  std::vector<NodeSet> excluded_node_sets = {};  ///< no candidates, whoever proposes them
  bool whole_pool = false;                       ///< the container wishes for no preference: no policy is asked
  CpuSource from = CpuSource::kPool;
  /// With kPreferIsolated, where a scheduler has counted on CPUs of the pool: those come first, in its zone.
  bool zone_is_of_pool = false;
  /// Exclusive CPUs that the container has or had. It gets all of them, or as many as it requests if they are more. For
  /// a container without CPUs of its own: the shared ones that it has and keeps, no more and no fewer.
  CpuSet keep;
  CpuSet retained_withheld;  ///< what was withheld for it then
  NodeSet keep_nodes = {};   ///< only candidates with all of these are used
  bool must_retain = false;  ///< false: it gets `keep` only where that is as good as what it would get without
  /// Set for a container that runs and must be somewhere: it gets the place that is nearest to these nodes, also where
  /// policies reject it.
  std::optional<NodeSet> stay_near = {};
  /// The beginning of the plan that this is decided for, by the real clock: a caller may ask the policies for a while
  /// only. Nothing: when the decision begins.
  std::optional<std::chrono::steady_clock::time_point> plan_began = {};

  /// The mode that the container will have.
  Mode mode() const { return exclusive ? Mode::kExclusive : shared_mode; }
  /// No CPUs of its own, whatever it asks for.
  void share(NotExclusive why);
  /// It has former CPUs to return to, if these are as good as others.
  bool may_go_elsewhere() const { return exclusive && !keep.empty() && !must_retain; }
  /// Returns the CPUs that the container may run on if it has none of its own.
  CpuSet shared_cpus() const { return pool_for(shared_mode, ledger.pool, ledger.free_reserved()); }
  /// The CPUs that are free for the container.
  CpuSet free() const {
    if (!exclusive) return shared_cpus();
    return (from == CpuSource::kPool ? ledger.pool : ledger.isolated) - ledger.barred;
  }
  /// Returns the free CPUs that it may be given: a container that does not grow is offered only CPUs that it had.
  CpuSet offered() const {
    const bool shrinks = exclusive && keep.size() >= exclusive_cpus;
    return shrinks ? free() & (keep | retained_withheld) : free();
  }
  /// All that the container may run on, of whatever candidate.
  CpuSet usable() const {
    if (exclusive) return offered();
    return keep.empty() ? shared_cpus() : keep;
  }
};

/// A difference between scores that is a mild preference only, see Verdict::score.
inline constexpr std::int32_t kMildPreference = 10;

/// One policy's answer on one candidate.
struct Verdict {
  enum class Kind : std::uint8_t { kAbstain, kReject, kScore };
  Kind kind = Kind::kAbstain;
  std::int32_t score = 0;  ///< −100…100; 100 is almost a requirement, 10 a mild preference
  std::string reason;
  std::string code = {};  ///< "ID/CODE", the reason in a word; empty: the policy has none

  friend bool operator==(const Verdict&, const Verdict&) = default;
};

/// At least `count` of these CPUs.
struct CpuMinimum {
  CpuSet cpus;
  std::size_t count = 0;
};

/// A policy's wish that another container, which shares CPUs, be placed anew together with the one that it decides on.
struct Replacement {
  ContainerKey key;
  bool move_nodes = false;  ///< false: only inside the nodes it is on
  std::string reason;

  friend bool operator==(const Replacement&, const Replacement&) = default;
};

/// The CPUs of the winning candidate that a policy wants to be used.
struct Pick {
  std::optional<CpuSet> narrow;      ///< use only these
  CpuSet withhold;                   ///< keep these idle as well
  std::vector<CpuMinimum> at_least;  ///< take as many of these, the first first; for exclusive containers
  std::vector<std::uint32_t> order;  ///< which to take first, by OS index; the others follow in the core's order
  std::string reason;
  std::string unmet;                 ///< a goal of the policy that cannot be met here; empty: none
  std::string rejected;              ///< why the chosen CPUs must not be used; empty: they may
  std::string code;                  ///< "ID/CODE", why it answers so in a word; empty: the policy has none
  std::vector<Replacement> replace;  ///< when the CPUs are chosen: each container once
  bool soft_home = false;            ///< shared: it may run beside these CPUs, too, while others have some to spare
};

/// A placement as it was chosen, shown to policies for the last time before it is carried out.
struct ChosenPlacement {
  std::size_t candidate = 0;  ///< position in PolicyRequest::candidates
  Placement placement;        ///< without memory nodes and added fields
  NodeSet memory;             ///< the nodes that may be named: those with memory, within the kubelet's bound
};

/// The other settings that a policy wants.
struct Adjustment {
  std::optional<NodeSet> mems;  ///< bind the memory to these nodes
  AddedFields added;
  std::vector<std::string> used_devices;  ///< that the container uses, as in Workload
  std::string reason;
};

/// One policy. Called on the policy thread only; must answer the same for the same request and the same saved state.
/// An error is a lost vote: the decision goes on without it.
class Policy {
 public:
  virtual ~Policy() = default;
  virtual const std::string& name() const = 0;
  /// One verdict per candidate, in their order.
  virtual Result<std::vector<Verdict>> score(const PolicyRequest& request) = 0;
  /// Node sets that would suit the workload. Asked before score() where not every combination of nodes is a candidate;
  /// those with nodes that no candidate has are left out. An error leaves out all.
  virtual Result<std::vector<NodeSet>> propose(const PolicyRequest& request);
  /// Which CPUs of `usable` to use: `narrow` and `at_least` count. `usable`: the CPUs of the candidate that are free
  /// for this workload (exclusive) or its part of the pool (shared). `count`: how many of them are to be taken; 0 if
  /// not exclusive.
  virtual Result<Pick> pick(const PolicyRequest& request, std::size_t candidate, const CpuSet& usable,
                            std::size_t count) = 0;
  /// Asked for the order in which to take `count` of `usable`, what narrowing has left, where CPUs are taken one by
  /// one; only `order` counts. By default the answer is that of pick() about these.
  virtual Result<Pick> order_pick(const PolicyRequest& request, std::size_t candidate, const CpuSet& usable,
                                  std::size_t count);
  /// Asked once more when `chosen` of `usable` have been chosen: whether to withhold others beside them, what goal is
  /// unmet, or why they must not be used. By default the answer is the same as before they were chosen.
  virtual Result<Pick> review_pick(const PolicyRequest& request, std::size_t candidate, const CpuSet& usable,
                                   const CpuSet& chosen);
  /// After the pick of all policies. Setting nothing, as here, leaves all as it is.
  virtual Result<Adjustment> adjust(const PolicyRequest& request, const ChosenPlacement& chosen);
  /// Returns the time that the answers so far have taken; zero if that is not measured.
  virtual std::chrono::microseconds time_spent() const { return {}; }
};

/// A policy, and how its vote counts.
struct Vote {
  std::shared_ptr<Policy> policy;
  std::int32_t weight = 1;   ///< 0…1000
  bool fail_closed = false;  ///< a lost vote is a denial
  bool required = false;     ///< the same, and a candidate on which its pick cannot be carried out is not used
  CommonOptions common_options = {};
};

}  // namespace topolet::placement
