#include "core/engine/planning/placer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>

#include "core/base/text.hpp"
#include "core/engine/planning/known_load.hpp"
#include "core/placement/candidates.hpp"
#include "core/placement/container_notes.hpp"
#include "core/placement/make_request.hpp"
#include "core/placement/memory_nodes.hpp"
#include "core/placement/reason_codes.hpp"
#include "core/placement/runtime_handlers.hpp"
#include "core/placement/validate.hpp"
#include "core/placement/zone.hpp"

namespace topolet::engine {
namespace {

/// The shared containers that the placement would leave without CPUs. Those that the kubelet placed are left out.
std::vector<placement::ContainerKey> stranded_by(const Ledger& ledger, const placement::ContainerKey& key,
                                                 const placement::Placement& placement) {
  std::vector<placement::ContainerKey> stranded;
  CpuSet gone = placement.withheld;
  if (placement.mode == placement::Mode::kExclusive) gone |= placement.cpus;
  if (!gone.intersects(ledger.pool())) return stranded;
  const CpuSet pool_after = ledger.pool() - gone;
  const CpuSet free_reserved = ledger.free_reserved();
  for (const auto& [other, allocation] : ledger.allocations()) {
    if (other == key || !allocation.is_movable_in_pool()) continue;
    if (!allocation.within.intersects(gone) || allocation.within.intersects(pool_after)) continue;
    const CpuSet open = pool_for(allocation.placement.mode, pool_after, free_reserved);
    if (!allocation.within.intersects(open)) stranded.push_back(other);
  }
  return stranded;
}

/// Adds the nodes of each other container of the pod, and each of these nodes by itself: a similar node set may belong
/// to another pod.
void add_nodes_of_pod(const Ledger& ledger, const placement::Workload& workload, std::set<NodeSet::Words>& among) {
  const auto& allocations = ledger.allocations();
  const std::string& pod_uid = workload.key.pod_uid;
  for (auto it = allocations.lower_bound({pod_uid, "", 0, ""}); it != allocations.end(); ++it) {
    if (it->first.pod_uid != pod_uid) break;
    if (it->first == workload.key) continue;
    const NodeSet& nodes = it->second.nodes;
    if (!nodes.empty()) among.insert(nodes.words());
    for (const std::uint32_t node : nodes) among.insert(NodeSet{node}.words());
  }
}

bool is_of_create(const placement::PolicyRequest& request) {
  return request.occasion == placement::Occasion::kCreate || request.occasion == placement::Occasion::kRestart;
}

/// Returns what a container has, or had before: of one that is created again, in its last attempt; of one that moves,
/// together with what it goes back to.
placement::Had had_before(const Ledger& ledger, const placement::PolicyRequest& request,
                          const Placer::Constraints& constraints) {
  using placement::Occasion;
  placement::Had had = constraints.had;
  const Allocation* now = is_of_create(request) ? nullptr : ledger.find(request.workload.key);
  if (now != nullptr && had == placement::Had()) had = had_of(*now);
  if (request.occasion == Occasion::kRestart)
    had = {constraints.keep.cpus, constraints.keep.withheld, constraints.keep.mems};
  had.cpus |= request.keep;
  return had;
}

/// Returns the sets of single nodes and those that hwloc knows an object for: a package, the machine.
std::set<NodeSet::Words> nodes_of_domains(const std::vector<placement::Candidate>& candidates) {
  std::set<NodeSet::Words> found;
  for (const placement::Candidate& candidate : candidates) {
    if (candidate.is_domain || candidate.nodes.size() <= 1) found.insert(candidate.nodes.words());
  }
  return found;
}

/// Returns true if nothing ties the container to certain nodes: it uses no devices, and no scheduler has chosen a zone.
bool needs_no_certain_nodes(const placement::Workload& workload) {
  return workload.devices.empty() && workload.cdi_devices.empty() && workload.used_devices.empty() &&
         !placement::zone_of(workload);
}

/// Returns true if no set of several nodes can be better than the place that was found: a single node to which each
/// policy that has scored any candidate gives full marks.
bool is_best_possible(const placement::Decision& decision) {
  constexpr std::int32_t kFullMarks = 100;
  if (decision.denied || !decision.lost_votes.empty() || decision.scored_by.empty()) return false;
  const auto& opinions = decision.verdicts.best.front().opinions;
  const bool is_best_for_all =
      std::all_of(decision.scored_by.begin(), decision.scored_by.end(), [&](const std::string& policy) {
        return std::any_of(opinions.begin(), opinions.end(), [&](const auto& opinion) {
          return opinion.policy == policy && opinion.kind == "score" && opinion.score >= kFullMarks;
        });
      });
  return is_best_for_all && decision.nodes.size() == 1;
}

}  // namespace

Allocation assumed_allocation(const placement::Workload& workload, const placement::Decision& decision) {
  Allocation allocation;
  allocation.workload = workload;
  placement::take_over_notes(decision, allocation.workload);
  allocation.placement = decision.placement;
  allocation.within = decision.within;
  return allocation;
}

placement::Had had_of(const Allocation& allocation) {
  const placement::Placement& has = allocation.placement;
  return {allocation.home_cpus(), has.withheld, has.mems};
}

bool Placer::Constraints::admits(const placement::Candidate& candidate) const {
  if (within_nodes) {
    const bool is_outside_nodes = candidate.nodes.empty();
    if (is_outside_nodes != within_nodes->empty() || !candidate.nodes.is_subset_of(*within_nodes)) return false;
  }
  if (!among.empty() && !among.contains(candidate.nodes.words())) return false;
  return !exact_candidate || (candidate.nodes == exact_candidate->nodes && candidate.cpus == exact_candidate->cpus);
}

bool keeps_pod_together(const placement::Workload& workload, const placement::Decision& decision) {
  return workload.pod_demand && workload.pod_nodes.empty() && !decision.nodes.empty() && !decision.unpinned;
}

CpuSet core_siblings_of(const topology::Topology& topology, const CpuSet& cpus) {
  CpuSet cores;
  for (const CpuSet& core : topology.cores) {
    if (core.intersects(cpus)) cores |= core;
  }
  return cores - cpus;
}

std::uint32_t Placer::largest_exclusive_cpus(const Ledger& ledger) const {
  return ledger.recent_sizes().largest(deps_.wall ? deps_.wall() : std::chrono::milliseconds(0));
}

placement::PolicyRequest Placer::request(const Ledger& ledger, const placement::Workload& workload,
                                         const Constraints& constraints) const {
  // What is kept of its last attempt is its own until it has a place again.
  const Allocation* own = ledger.find(workload.key);
  const Allocation* kept = own == nullptr ? ledger.find_kept(workload.key) : nullptr;
  const placement::ContainerKey* without = kept != nullptr ? &kept->workload.key : &workload.key;
  placement::Workload asked = constraints.zone ? placement::with_zone(workload, *constraints.zone) : workload;
  placement::LedgerSnapshot view = ledger.snapshot(without);
  ledger.book_together(asked, view);
  placement::PolicyRequest request = make_request(deps_.topology, std::move(view), std::move(asked), {}, deps_.rules,
                                                  ledger.kubelet_hands_out_cpusets());
  if (deps_.rdt_classes != nullptr) request.rdt_classes = deps_.rdt_classes->usable();
  request.any_rdt_class = deps_.any_rdt_class;
  request.load = settled_load(deps_.load, ledger);
  if (deps_.settable) request.settable = deps_.settable();
  // A runtime that has forgotten an attempt has the kubelet make the same once more.
  if (!constraints.keep.cpus.empty()) request.occasion = placement::Occasion::kRestart;
  if (constraints.occasion) request.occasion = *constraints.occasion;
  request.stay_near = constraints.stay_near;
  request.keep_nodes = constraints.keep_nodes;
  request.plan_began = constraints.plan_began;
  if (constraints.only_shared) request.share(placement::NotExclusive::kOnlyAtCreation);
  if (constraints.on_reserved) request.shared_mode = placement::Mode::kReserved;
  if (request.exclusive) {
    if (constraints.exclusive_cpus > 0) request.exclusive_cpus = constraints.exclusive_cpus;
    // Whoever has had some comes back to them.
    if (deps_.rules.when_full == placement::WhenFull::kShare && is_of_create(request) && constraints.keep.cpus.empty())
      request.awaited_cpus = ledger.cpus_awaited_before(workload.key);
    request.keep = constraints.keep.cpus;
    request.retained_withheld = constraints.keep.withheld | core_siblings_of(*deps_.topology, constraints.keep.cpus);
    request.must_retain = constraints.must_retain;
    request.zone_is_of_pool = constraints.zone_is_of_pool;
    if (constraints.only_from) request.from = *constraints.only_from;
    if (request.must_retain && !request.keep.empty()) {
      // It grows where it is, whatever the rules would give it now.
      const bool has_isolated = request.keep.intersects(request.ledger.isolated);
      request.from = has_isolated ? placement::CpuSource::kIsolated : placement::CpuSource::kPool;
    }
  }
  if (!is_of_create(request)) request.container_id = own == nullptr ? constraints.container_id : own->id_in_runtime();
  request.had = had_before(ledger, request, constraints);
  request.largest_exclusive_cpus = largest_exclusive_cpus(ledger);
  const auto admits = [&constraints](const placement::Candidate& candidate) { return constraints.admits(candidate); };
  if (request.exclusive || !constraints.also_among.empty()) {
    request.candidates = deps_.candidates;
    if (request.exclusive)
      add_emptiest_nodes(request.candidates, *request.topology, request.free(), request.exclusive_cpus);
    if (request.exclusive && request.from == placement::CpuSource::kPreferIsolated)
      add_emptiest_nodes(request.candidates, *request.topology, request.ledger.pool, request.exclusive_cpus);
    for (const NodeSet& nodes : constraints.also_among) add_proposed(request.candidates, *request.topology, nodes);
    request.candidates_are_cut = std::erase_if(request.candidates, std::not_fn(admits)) > 0;
  } else {
    std::copy_if(deps_.candidates.begin(), deps_.candidates.end(), std::back_inserter(request.candidates), admits);
    request.candidates_are_cut = request.candidates.size() < deps_.candidates.size();
  }
  return request;
}

Plan Placer::plan(const Ledger& ledger, const placement::Workload& workload, const Constraints& constraints) const {
  auto policy_request = std::make_shared<const placement::PolicyRequest>(request(ledger, workload, constraints));
  std::string first_obstacle;
  while (true) {
    Plan plan;
    plan.decision = deps_.decide(policy_request, deps_.rules);
    if (plan.decision.denied && !first_obstacle.empty()) {
      plan.decision.reason += first_obstacle;
      plan.decision.reason_code = placement::reason_code::kNeighboursStranded;
    }
    if (plan.decision.denied || plan.decision.conflict) return plan;
    Result<std::vector<Move>> moves = moves_for(ledger, *policy_request, plan.decision);
    if (moves) {
      plan.moves = *std::move(moves);
      add_wished_moves(ledger, *policy_request, plan);
      return plan;
    }
    // A cpuset from the kubelet has no next best.
    if (!workload.kubelet_cpus.empty()) return plan;
    if (first_obstacle.empty()) first_obstacle = "; " + moves.error().message;
    placement::PolicyRequest next = *policy_request;
    std::erase_if(next.candidates, [&](const placement::Candidate& candidate) {
      return candidate.nodes == plan.decision.nodes && candidate.cpus == plan.decision.cpus_of_candidate;
    });
    next.candidates_are_cut = true;
    next.excluded_node_sets.push_back(plan.decision.nodes);
    policy_request = std::make_shared<const placement::PolicyRequest>(std::move(next));
  }
}

/// Returns the moves. The error names a container that has nowhere to go.
Result<std::vector<Move>> Placer::moves_for(const Ledger& ledger, const placement::PolicyRequest& request,
                                            const placement::Decision& decision) const {
  std::vector<Move> moves;
  const std::vector<placement::ContainerKey> stranded = stranded_by(ledger, request.workload.key, decision.placement);
  if (stranded.empty()) return moves;
  Ledger after = ledger.for_plan();
  after.assume(assumed_allocation(request.workload, decision));
  ShortLists short_lists;
  for (const placement::ContainerKey& key : stranded) {
    std::optional<Move> next = plan_move(after, *ledger.find(key), request, short_lists);
    if (!next) {
      return Error{Code::kResourceExhausted,
                   fmt::format("{}, which shares CPUs, would have none left on {}",
                               display_name(ledger.find(key)->workload), placement::node_names(decision.nodes))};
    }
    after.assume(assumed_allocation(next->workload, next->decision));
    moves.push_back(*std::move(next));
  }
  return moves;
}

/// Each is decided with the container and those before it where they will be, by all policies. What these wish for
/// others then is not followed: it has no end.
void Placer::add_wished_moves(const Ledger& ledger, const placement::PolicyRequest& request, Plan& plan) const {
  if (plan.decision.replace.empty()) return;
  Ledger after = ledger.for_plan();
  after.assume(assumed_allocation(request.workload, plan.decision));
  for (const Move& move : plan.moves) after.assume(assumed_allocation(move.workload, move.decision));
  for (const placement::WishedReplacement& wish : plan.decision.replace) {
    const auto moves_already = [&wish](const Move& move) { return move.workload.key == wish.key; };
    const Allocation* allocation = ledger.find(wish.key);
    if (allocation == nullptr || std::any_of(plan.moves.begin(), plan.moves.end(), moves_already)) continue;
    std::optional<Move> next = plan_wished_move(after, *allocation, wish, request);
    if (!next) continue;
    after.assume(assumed_allocation(next->workload, next->decision));
    plan.moves.push_back(*std::move(next));
  }
}

std::optional<Move> Placer::plan_wished_move(const Ledger& after, const Allocation& allocation,
                                             const placement::WishedReplacement& wish,
                                             const placement::PolicyRequest& newcomer) const {
  if (!allocation.is_movable_in_pool() || allocation.stuck) return std::nullopt;
  Constraints constraints;
  constraints.occasion = placement::Occasion::kMove;
  constraints.only_shared = true;
  constraints.had = had_of(allocation);
  constraints.plan_began = *newcomer.plan_began;
  if (!wish.move_nodes) constraints.within_nodes = deps_.topology->nodes_of(allocation.home_cpus());
  placement::Workload workload = allocation.workload;
  workload.pod_nodes = after.nodes_of_pod(workload.key.pod_uid, workload.key.sandbox_id);
  Move move{allocation.workload,
            deps_.decide(std::make_shared<const placement::PolicyRequest>(request(after, workload, constraints)),
                         deps_.rules),
            std::nullopt};
  placement::Placement& placement = move.decision.placement;
  const bool is_there = !move.decision.denied && !placement.cpus.empty() &&
                        placement.withheld.is_subset_of(allocation.placement.withheld);
  const bool goes_elsewhere = placement.mode == allocation.placement.mode && move.decision.within != allocation.within;
  if (!is_there || !goes_elsewhere) return std::nullopt;
  retain_memory_nodes(allocation, deps_.rules, placement);
  move.decision.reason_code = placement::reason_code::kRequestedByPlugin;
  move.decision.reason =
      fmt::format("placed anew with {} ({}); {}", display_name(newcomer.workload), wish.why, move.decision.reason);
  move.cause = MoveCause::kPlugin;
  return move;
}

placement::Decision Placer::decide_shared(const Ledger& ledger, const placement::Workload& workload,
                                          Constraints constraints, ShortLists& short_lists) const {
  const auto decide = [&] {
    return deps_.decide(std::make_shared<const placement::PolicyRequest>(request(ledger, workload, constraints)),
                        deps_.rules);
  };
  constraints.only_shared = true;
  if (const ShortLists::List* list = short_lists.take(workload)) {
    constraints.among = list->nodes;
    add_nodes_of_pod(ledger, workload, constraints.among);
    placement::Decision decision = decide();
    if (list->suffices(decision)) return decision;
    constraints.among.clear();
  }
  if (placement::omits_node_sets(deps_.candidates) && needs_no_certain_nodes(workload)) {
    constraints.among = nodes_of_domains(deps_.candidates);
    add_nodes_of_pod(ledger, workload, constraints.among);
    placement::Decision decision = decide();
    if (is_best_possible(decision)) {
      short_lists.keep(workload, decision, ShortLists::Asked::kSome);
      return decision;
    }
    constraints.among.clear();
  }
  placement::Decision decision = decide();
  short_lists.keep(workload, decision, ShortLists::Asked::kAll);
  return decision;
}

std::optional<Move> Placer::plan_move(const Ledger& after, const Allocation& allocation,
                                      const placement::PolicyRequest& beneficiary, ShortLists& short_lists) const {
  Constraints constraints;
  constraints.occasion = placement::Occasion::kRepair;
  constraints.had = had_of(allocation);
  constraints.plan_began = *beneficiary.plan_began;
  Move move{allocation.workload, decide_shared(after, allocation.workload, constraints, short_lists),
            preferred_of(allocation, *deps_.topology)};
  if (move.decision.denied || move.decision.placement.cpus.empty()) return std::nullopt;
  retain_memory_nodes(allocation, deps_.rules, move.decision.placement);
  move.decision.reason_code = placement::reason_code::kMadeRoom;
  move.decision.reason = fmt::format("its CPUs go to {}; {}", display_name(beneficiary.workload), move.decision.reason);
  return move;
}

Result<placement::Settings> Placer::read_settings(const placement::Workload& workload) const {
  if (deps_.annotations) return placement::read_settings(workload, rules(), deps_.annotations());
  placement::KnownAnnotations core_only = placement::core_annotations();
  core_only.silent_plugins.emplace_back("any");  // who reads what is not known
  return placement::read_settings(workload, rules(), core_only);
}

bool Placer::may_keep_exclusively(const Ledger& ledger, const placement::Workload& workload, const CpuSet& cpus) const {
  const placement::PolicyRequest policy_request = request(ledger, workload, {});
  return policy_request.exclusive && policy_request.exclusive_cpus == cpus.size() &&
         validate({placement::Mode::kExclusive, cpus, {}, {}}, policy_request.ledger, deps_.rules).has_value();
}

std::string reason_not_placed(const placement::Workload& workload, const std::string& obstacle) {
  return fmt::format("topolet does not place containers of runtime handler '{}' ({})",
                     placement::handler_name(workload.runtime_handler), obstacle);
}

std::string describe_foreign(const placement::Workload& workload, const std::string& obstacle) {
  return fmt::format("{}: what they run may use any CPU, also those that other containers have exclusively",
                     reason_not_placed(workload, obstacle));
}

Preferred preferred_of(const Allocation& before, const topology::Topology& topology) {
  if (before.preferred) return *before.preferred;
  Preferred preferred;
  preferred.placement.mode = before.placement.mode;
  preferred.within = before.within;
  if (before.is_exclusive()) {
    preferred.placement.cpus = before.placement.cpus;
    preferred.placement.withheld = before.placement.withheld;
  }
  preferred.nodes = nodes_of(before, topology);
  return preferred;
}

NodeSet nodes_of(const Allocation& allocation, const topology::Topology& topology) {
  if (!allocation.nodes.empty()) return allocation.nodes;
  return topology.nodes_of(allocation.is_exclusive() ? allocation.placement.cpus : allocation.within);
}

std::string describe_withheld_change(const placement::Placement& before, const placement::Placement& now) {
  std::string text;
  const CpuSet given_up = before.withheld - now.withheld - now.cpus;
  if (!given_up.empty()) text += fmt::format("; {} no longer withheld", named("CPU", given_up));
  const CpuSet more = now.withheld - before.withheld;
  if (!more.empty()) text += fmt::format("; {} withheld from now on", named("CPU", more));
  return text;
}

void retain_memory_nodes(const Allocation& before, const placement::PlacementRules& rules,
                         placement::Placement& placement) {
  const NodeSet& had = rules.memory_migrate ? before.intended_mems() : before.placement.mems;
  placement.mems = retained_memory_nodes(had, placement.mems, before.may_run(), rules);
}

}  // namespace topolet::engine
