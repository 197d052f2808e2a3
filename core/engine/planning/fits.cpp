#include "core/engine/planning/fits.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <variant>

#include "core/engine/planning/crash_hold.hpp"
#include "core/engine/planning/device_nodes.hpp"
#include "core/engine/planning/init_room.hpp"
#include "core/engine/planning/placer.hpp"
#include "core/engine/planning/resize.hpp"
#include "core/engine/state/events.hpp"
#include "core/engine/state/ledger.hpp"
#include "core/engine/state/transitions.hpp"
#include "core/placement/exclusive_claim.hpp"
#include "core/placement/settings.hpp"
#include "core/placement/validate.hpp"
#include "core/placement/zone.hpp"

namespace topolet::engine {
namespace {

/// No name of a container can be like it.
constexpr const char* kInitRoom = "(init)";

using IsGranted = std::function<bool(std::uint32_t cpus)>;

/// Finds the largest of the sizes 1 to `most` that is granted.
///
/// Not all sizes up to the largest need be granted. With numa.full-pcpus-only three CPUs may be denied where four are
/// granted; on cores of three and of four threads seven are, and five are not. It is certain, though, that a container
/// which gets n CPUs could do with a core less: one of the next `step` smaller sizes, a core's worth, is granted as
/// well. So where a core's worth of sizes is denied, nothing larger is granted, and the largest size is found by
/// bisection over such windows. The first window is the one that ends with `most`: most nodes give out all they have,
/// or all but a thread. A size found there is the largest, whatever the policies are like.
///
/// Where everything is denied, that takes the windows at both ends, and one size each time that is half as large in
/// between: the lowest window is not enough, since a policy may deny whoever asks for too few. Policies of yet another
/// kind make the result too small. It is never too large: it was granted.
class LargestGranted {
 public:
  LargestGranted(std::uint32_t most, std::uint32_t step, IsGranted is_granted)
      : most_(most), step_(step), is_granted_(std::move(is_granted)) {}

  /// 0 if none is granted.
  std::uint32_t find() {
    if (const std::uint32_t top = largest_of(below_window(most_), most_); top > 0) return top;
    std::uint32_t denied_above = below_window(most_);
    std::uint32_t best = find_any(denied_above);
    while (best > 0 && best < denied_above) {
      const std::uint32_t middle = best + (denied_above - best) / 2;
      const std::uint32_t high = std::min(denied_above, std::max(middle, best + step_));
      const std::uint32_t low = std::max(best, below_window(high));
      if (const std::uint32_t larger = largest_of(low, high); larger > 0) {
        best = larger;
      } else {
        denied_above = low;
      }
    }
    return best;
  }

 private:
  std::uint32_t below_window(std::uint32_t high) const { return high - std::min(high, step_); }

  bool is_granted(std::uint32_t cpus) {
    const auto [known, is_new] = answers_.try_emplace(cpus, false);
    if (is_new) known->second = is_granted_(cpus);
    return known->second;
  }

  /// Searches the sizes above `low` up to `high`.
  std::uint32_t largest_of(std::uint32_t low, std::uint32_t high) {
    for (std::uint32_t cpus = high; cpus > low; --cpus) {
      if (is_granted(cpus)) return cpus;
    }
    return 0;
  }

  std::uint32_t find_any(std::uint32_t high) {
    if (const std::uint32_t small = largest_of(0, std::min(high, step_)); small > 0) return small;
    for (std::uint32_t half = high / 2; half > step_; half /= 2) {
      const std::uint32_t whole_cores = half / step_ * step_;
      if (is_granted(whole_cores)) return whole_cores;
    }
    return 0;
  }

  const std::uint32_t most_;
  const std::uint32_t step_;
  const IsGranted is_granted_;
  std::map<std::uint32_t, bool> answers_;
};

std::uint32_t threads_of_largest_core(const topology::Topology& topology, const CpuSet& cpus) {
  std::size_t most = 1;
  for (const CpuSet& core : topology.cores) {
    if (core.intersects(cpus)) most = std::max(most, core.size());
  }
  return static_cast<std::uint32_t>(most);
}

bool is_among(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Nobody has less, whatever somebody tells, or more than can be counted.
void grow_by(std::int64_t more, std::int64_t& amount) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  more = std::max<std::int64_t>(0, more);
  amount = amount > kMost - more ? kMost : amount + more;
}

/// Adds to a demand. Unknown requests and missing limits stay as they are.
void add_demand(const placement::Demand& more, placement::Demand& demand) {
  grow_by(more.cpu_request_milli, demand.cpu_request_milli);
  if (demand.cpu_limit_milli > 0) grow_by(more.cpu_limit_milli, demand.cpu_limit_milli);
  const bool is_request_unknown = demand.memory_request_bytes == 0 && demand.memory_limit_bytes > 0;
  if (!is_request_unknown) grow_by(more.memory_request_bytes, demand.memory_request_bytes);
  grow_by(more.memory_limit_bytes, demand.memory_limit_bytes);
  for (const auto& [size, bytes] : more.hugepage_limit_bytes) grow_by(bytes, demand.hugepage_limit_bytes[size]);
}

/// In no reserved namespace, and nobody's key.
placement::Workload new_container(std::uint32_t cpus) {
  placement::Workload workload;
  workload.key = {"topolet fits", "topolet fits", 0, ""};
  workload.pod_name = "fits";
  workload.pod_namespace = "topolet fits";
  workload.qos = placement::Qos::kGuaranteed;
  workload.demand.cpu_request_milli = workload.demand.cpu_limit_milli = std::int64_t{cpus} * 1000;
  return workload;
}

class Computation {
 public:
  Computation(const Placer& placer, const Ledger& ledger, MayGoOn may_go_on)
      : may_go_on_(std::move(may_go_on)),
        placer_(listening(placer)),
        ledger_(ledger),
        memory_(placer_.topology()->nodes.size()) {
    fits_.generation = ledger.generation();
    fits_.kubelet_hands_out_cpus = ledger.kubelet_hands_out_cpusets();
    fits_.has_own_exclusives =
        std::any_of(ledger.allocations().begin(), ledger.allocations().end(), [](const auto& entry) {
          return entry.second.placement.mode == placement::Mode::kExclusive &&
                 entry.second.workload.kubelet_cpus.empty();
        });
    const placement::PlacementRules& rules = placer_.rules();
    fits_.node_name = rules.node_name;
    fits_.reserved_namespaces = rules.reserved_namespaces;
    fits_.exclusive_namespaces = rules.exclusive_namespaces;
    fits_.isolated = rules.isolated;
    fits_.ignores_zones = rules.annotations && std::find(rules.annotations->begin(), rules.annotations->end(),
                                                         placement::kZoneAnnotation) == rules.annotations->end();
  }
  Computation(const Computation&) = delete;
  Computation& operator=(const Computation&) = delete;

  void place(PendingContainer pending) {
    placement::Workload& workload = pending.workload;
    const placement::ContainerKey key = workload.key;
    if (key.pod_uid != pod_uid_) finish_pod();
    pod_uid_ = key.pod_uid;
    const bool is_created_anew = is_among(pending.after, pending.grows);
    if (!pending.grows.empty() && !is_created_anew) return grow(pending);
    const placement::Placement former = exclusive_placement_of(pending.grows);
    for (const std::string& name : pending.after) end_init(name);
    if (is_booked(key)) return;
    if (workload.settings.empty()) {
      Result<placement::Settings> settings = placer_.read_settings(workload);
      if (!settings) return fits_.unplaced.push_back({key, settings.error().message});
      workload.settings = std::move(settings->values);
    }
    Result<placement::ZoneOfContainer> zone = read_zone(workload, placer_.rules());
    if (!zone) return fits_.unplaced.push_back({key, zone.error().message});
    // The ledger knows pods by their sandboxes, and this one may have none yet.
    if (workload.key.sandbox_id.empty()) workload.key.sandbox_id = "topolet fits " + key.pod_uid;
    workload.pod_nodes = ledger_.nodes_of_pod(key.pod_uid, workload.key.sandbox_id);
    Placer::Constraints constraints;
    constraints.zone = std::move(zone->nodes);
    constraints.zone_is_of_pool = zone->is_of_pool;
    constraints.keep = pending.grows.empty() ? ledger_.former_placement(workload.key) : former;
    Plan plan = plan_near(workload, std::move(constraints), nodes_with_cpus(*placer_.topology(), pending.device_nodes));
    if (plan.decision.denied) return fits_.unplaced.push_back({key, plan.decision.reason});
    event::CreateAdmitted admitted{.workload = std::move(workload), .plan = std::move(plan)};
    admitted.keeps_pod_together = keeps_pod_together(admitted.workload, admitted.plan.decision);
    ledger_.apply(compute_transition(ledger_, placer_.rules(), std::chrono::milliseconds(0), admitted));
    init_room_.add(admitted.workload.key, pending.after);
  }

  bool is_stopped() const { return !go_on_; }

  Result<Fits> finish() && {
    finish_pod();
    release_kept(ledger_);
    fits_.gives_exclusive_cpus =
        placement::exclusive_cpus_for(new_container(1), placer_.rules()) > 0 && !fits_.kubelet_hands_out_cpus;
    for (const topology::Node& node : placer_.topology()->nodes) {
      fits_.nodes.push_back({.node = node.os_index});
      if (node.memory_only) continue;
      if (fits_.gives_exclusive_cpus) add_exclusive_cpus(node, fits_.nodes.back());
      const CpuSet shared = (ledger_.pool() & node.cpus) - ledger_.free_reserved();
      fits_.nodes.back().shared_cpus = static_cast<std::uint32_t>(shared.size());
    }
    book_memory();
    if (!go_on_) return go_on_.error();
    for (std::size_t i = 0; i < fits_.nodes.size(); ++i) {
      fits_.nodes[i].booked_memory_bytes = memory_[i].bytes;
      fits_.nodes[i].booked_huge_page_bytes = std::move(memory_[i].huge_page_bytes);
    }
    return std::move(fits_);
  }

 private:
  /// A plan does not show all the decisions that it took. Once this is to end, each is denied at once.
  Placer listening(const Placer& placer) {
    Placer::Deps deps = placer.deps();
    deps.decide = [this, decide = placer.deps().decide](const auto& request, const placement::PlacementRules& rules) {
      if (go_on_) go_on_ = may_go_on_();
      placement::Decision decision;
      decision.denied = !go_on_;
      if (go_on_) decision = decide(request, rules);
      fits_.lost_votes = fits_.lost_votes || !decision.lost_votes.empty();
      return decision;
    };
    return Placer(std::move(deps));
  }

  /// The zone yields to the devices only where it can be nearer to them, whatever numa.zone says of a scheduler's zone;
  /// else it holds. See plan_by_zone_and_devices().
  Plan plan_near(const placement::Workload& workload, Placer::Constraints constraints, const NodeSet& near) {
    if (near.empty()) return reclaim_and_plan(placer_, ledger_, workload, constraints);
    const std::optional<NodeSet> zone = constraints.zone;
    const NodeSet in_zone = zone ? *zone & near : NodeSet();
    if (!in_zone.empty() && in_zone != near) {
      constraints.zone = in_zone;
      Plan plan = reclaim_and_plan(placer_, ledger_, workload, constraints);
      if (!plan.decision.denied && plan.decision.nodes.is_subset_of(in_zone)) return plan;
    }
    constraints.zone = near;
    Plan plan = reclaim_and_plan(placer_, ledger_, workload, constraints);
    if (!plan.decision.denied && plan.decision.nodes.intersects(near)) return plan;
    constraints.zone = zone;
    return reclaim_and_plan(placer_, ledger_, workload, constraints);
  }

  /// Any attempt of a container of the pod, in any of its sandboxes; null if there is none.
  const Allocation* find_any(const std::string& pod_uid, const std::string& name) const {
    const auto& allocations = ledger_.allocations();
    const auto first = allocations.lower_bound({pod_uid, name, 0, ""});
    const bool is_its = first != allocations.end() && first->first.pod_uid == pod_uid && first->first.name == name;
    return is_its ? &first->second : nullptr;
  }
  bool is_booked(const placement::ContainerKey& key) const { return find_any(key.pod_uid, key.name) != nullptr; }

  void end_init(const std::string& name) {
    while (const Allocation* init = find_any(pod_uid_, name)) {
      init_room_.end_init(*init);
      ledger_.assume_released(placement::ContainerKey(init->workload.key));
    }
  }

  /// Returns the newest of its attempts that has not ended, else the newest.
  const Allocation* find_newest(const std::string& name) const {
    const Allocation* newest = nullptr;
    const auto& allocations = ledger_.allocations();
    for (auto next = allocations.lower_bound({pod_uid_, name, 0, ""}); next != allocations.end(); ++next) {
      if (next->first.pod_uid != pod_uid_ || next->first.name != name) break;
      const bool is_better = newest == nullptr || newest->is_kept();
      if (is_better || !next->second.is_kept()) newest = &next->second;
    }
    return newest;
  }
  placement::Placement exclusive_placement_of(const std::string& name) const {
    const Allocation* found = name.empty() ? nullptr : find_newest(name);
    return found != nullptr && found->is_exclusive() ? found->placement : placement::Placement();
  }

  /// The kubelet asks for memory before it asks for CPUs, and either may be denied alone.
  void grow(const PendingContainer& pending) {
    const placement::Demand& more = pending.workload.demand;
    placement::Demand memory = more;
    memory.cpu_request_milli = memory.cpu_limit_milli = 0;
    placement::Demand cpus;
    cpus.cpu_request_milli = more.cpu_request_milli;
    cpus.cpu_limit_milli = more.cpu_limit_milli;
    std::optional<std::string> denied;
    for (const placement::Demand* part : {&memory, &cpus}) {
      const Allocation* before = find_newest(pending.grows);
      if (before == nullptr || *part == placement::Demand()) continue;
      placement::Workload requested = before->workload;
      add_demand(*part, requested.demand);
      requested.pod_nodes = ledger_.nodes_of_pod(requested.key.pod_uid, requested.key.sandbox_id);
      if (std::optional<std::string> why = resize(Allocation(*before), requested); why && !denied) denied = why;
    }
    if (denied) fits_.unplaced.push_back({pending.workload.key, *denied});
  }

  /// The reason if it is denied. Until it is done, it has the CPUs that it would give up.
  std::optional<std::string> resize(const Allocation& before, const placement::Workload& requested) {
    if (before.placement.mode == placement::Mode::kForeign) return std::nullopt;
    std::variant<Event, placement::Decision> planned = plan_resize(placer_, ledger_, before, requested);
    if (const auto* denial = std::get_if<placement::Decision>(&planned)) return denial->reason;
    Event event = std::get<Event>(std::move(planned));
    const auto* moved = std::get_if<event::Moved>(&event);
    if (moved != nullptr && moved->plan.decision.placement.mode != placement::Mode::kExclusive)
      event = event::DemandChanged{requested.key, requested.demand, moved->plan.decision.reason};
    ledger_.apply(compute_transition(ledger_, placer_.rules(), std::chrono::milliseconds(0), event));
    return std::nullopt;
  }

  /// Keeps booked the part of the pod's init containers that exceeds the later needs of the others.
  void finish_pod() {
    if (init_room_.empty()) return;
    add_memory(init_room_.memory_beyond(*placer_.topology(), ledger_));
    Allocation beyond;
    beyond.workload = init_room_.first().workload;
    beyond.workload.key.name = kInitRoom;
    beyond.workload.demand = {};
    beyond.placement = {placement::Mode::kExclusive, init_room_.cpus_beyond(*placer_.topology(), ledger_), {}, {}};
    beyond.phase = Phase::kRunning;
    init_room_ = {};
    if (!beyond.placement.cpus.empty()) ledger_.assume(std::move(beyond));
  }

  /// Books the memory of all containers. Those that can have it on several nodes come last: it is where the others
  /// leave room.
  void book_memory() {
    const topology::Topology& topology = *placer_.topology();
    std::vector<const Allocation*> on_several;
    for (const auto& [key, allocation] : ledger_.allocations()) {
      if (allocation.intended_mems().size() > 1) {
        on_several.push_back(&allocation);
      } else {
        add_memory(memory_by_node(topology, allocation, ledger_.booked_demand(key)));
      }
    }
    for (const Allocation* allocation : on_several) {
      std::vector<NodeMemory> parts =
          memory_by_node(topology, *allocation, ledger_.booked_demand(allocation->workload.key));
      move_to_room(parts);
      add_memory(parts);
    }
  }

  /// Moves the excess of a node to those of the others that have room. An excess that fits nowhere stays.
  void move_to_room(std::vector<NodeMemory>& parts) const {
    const topology::Topology& topology = *placer_.topology();
    const auto room_on = [&](std::size_t i) {
      return topology.nodes[i].memory_bytes - memory_[i].bytes - parts[i].bytes;
    };
    for (std::size_t from = 0; from < parts.size(); ++from) {
      for (std::size_t to = 0; to < parts.size(); ++to) {
        const std::int64_t too_much = std::min(parts[from].bytes, -room_on(from));
        // It has a part of its own only where the container's memory may be.
        if (to == from || parts[to].bytes == 0 || too_much <= 0 || topology.nodes[from].memory_bytes <= 0) continue;
        const std::int64_t moved =
            topology.nodes[to].memory_bytes <= 0 ? too_much : std::clamp<std::int64_t>(room_on(to), 0, too_much);
        parts[from].bytes -= moved;
        parts[to].bytes += moved;
      }
    }
  }

  void add_memory(const std::vector<NodeMemory>& memory) {
    for (std::size_t i = 0; i < memory_.size(); ++i) memory_[i].add(memory[i]);
  }

  /// By what is told of the node's capacity.
  std::uint32_t lowered(const topology::Node& node, std::uint32_t cpus) const {
    const auto told = ledger_.reported_capacities().find(node.os_index);
    if (told == ledger_.reported_capacities().end()) return cpus;
    return cpus - std::min(cpus, missing_cpus(told->second, nominal_milli(placer_.topology().get(), node.os_index)));
  }

  void add_exclusive_cpus(const topology::Node& node, NodeFit& fit) {
    fit.pool_cpus = lowered(node, most_on(node, placement::CpuSource::kPool));
    fit.isolated_cpus = lowered(node, most_on(node, placement::CpuSource::kIsolated));
    const placement::CpuSource from = placement::cpu_source(new_container(1), placer_.rules());
    if (from != placement::CpuSource::kIsolated) fit.exclusive_cpus = fit.pool_cpus;
    if (from != placement::CpuSource::kPool) fit.exclusive_cpus = std::max(fit.exclusive_cpus, fit.isolated_cpus);
  }

  std::uint32_t most_on(const topology::Node& node, placement::CpuSource from) {
    const placement::PlacementRules& rules = placer_.rules();
    // On a machine of one node and CPUs outside it, the machine has the same nodes and comes after the node.
    const auto& candidates = placer_.candidates();
    const auto here = std::find_if(candidates.begin(), candidates.end(),
                                   [&node](const auto& other) { return other.nodes == NodeSet{node.os_index}; });
    if (here == candidates.end()) return 0;
    const bool is_of_pool = from == placement::CpuSource::kPool;
    const CpuSet& source = is_of_pool ? ledger_.pool() : ledger_.free_isolated();
    std::size_t most = ((source & node.cpus) - ledger_.barred_for(nullptr)).size();
    if (is_of_pool) most = std::min(most, placement::spare_cpus(source, rules));
    return LargestGranted(static_cast<std::uint32_t>(most), threads_of_largest_core(*placer_.topology(), node.cpus),
                          [&](std::uint32_t cpus) { return gets(node, *here, cpus, from); })
        .find();
  }

  bool gets(const topology::Node& node, const placement::Candidate& here, std::uint32_t cpus,
            placement::CpuSource from) const {
    Placer::Constraints constraints;
    constraints.exact_candidate = here;
    constraints.only_from = from;
    const placement::Decision decision = placer_.plan(ledger_, new_container(cpus), constraints).decision;
    const placement::Placement& placement = decision.placement;
    return !decision.denied && placement.mode == placement::Mode::kExclusive && placement.cpus.size() == cpus &&
           placement.cpus.is_subset_of(node.cpus);
  }

  Fits fits_;
  const MayGoOn may_go_on_;
  Status go_on_;  ///< OK as long as it goes on
  const Placer placer_;
  Ledger ledger_;                   ///< with the pending containers
  std::string pod_uid_;             ///< of the container that was placed last
  InitRoom init_room_;              ///< of its pod
  std::vector<NodeMemory> memory_;  ///< booked, by position
};

}  // namespace

Fits compute_fits(const Placer& placer, const Ledger& ledger, const std::vector<PendingContainer>& pending) {
  return *compute_fits(placer, ledger, pending, [] { return Status(); });
}

Result<Fits> compute_fits(const Placer& placer, const Ledger& ledger, const std::vector<PendingContainer>& pending,
                          MayGoOn may_go_on) {
  Computation computation(placer, ledger, std::move(may_go_on));
  for (auto container = pending.begin(); container != pending.end() && !computation.is_stopped(); ++container) {
    computation.place(*container);
  }
  return std::move(computation).finish();
}

}  // namespace topolet::engine
