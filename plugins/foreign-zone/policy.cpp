#include "plugins/foreign-zone/policy.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include "plugins/foreign-zone/annotations.hpp"

namespace topolet::foreign_zone {
namespace {

using sdk::Set;
using sdk::Verdict;

Set nodes_of(const topolet_topology& topology, const Set& cpus) {
  Set nodes;
  for (const topolet_node& node : sdk::nodes(topology)) {
    if (node.memory_only == 0 && sdk::size_of_both(node.cpus, cpus.view()) > 0) nodes.insert(node.os_index);
  }
  return nodes;
}

/// Returns the nodes that have memory or devices only: no container runs there.
Set nodes_without_cpus(const topolet_topology& topology) {
  Set nodes;
  for (const topolet_node& node : sdk::nodes(topology)) {
    if (node.memory_only != 0) nodes.insert(node.os_index);
  }
  return nodes;
}

Set chosen_nodes(const topolet_topology& topology, const ForeignZone& zone) {
  if (zone.nodes.empty()) return nodes_of(topology, zone.cpus);
  return zone.nodes - nodes_without_cpus(topology);
}

bool is_within(const topolet_candidate& candidate, const Set& nodes) {
  const std::size_t count = sdk::size_of(candidate.nodes);
  return count > 0 && sdk::size_of_both(candidate.nodes, nodes.view()) == count;
}

bool has_room(const topolet_request& request, const topolet_candidate& candidate) {
  return sdk::size_of(candidate.usable) >= std::max<std::size_t>(1, request.exclusive_cpus);
}

std::string chosen_by(const ForeignZone& zone) {
  return std::string(zone.annotation == kKoordinator ? "koord-scheduler" : "crane-scheduler") + " has chosen";
}

}  // namespace

topolet_reads Policy::reads() {
  static constexpr std::array<topolet_str, 2> kForeign = {{sdk::borrow(kKoordinator), sdk::borrow(kCrane)}};
  return {sizeof(topolet_reads), 0, {nullptr, 0}, {kForeign.data(), kForeign.size()}};
}

std::vector<Verdict> Policy::score(const topolet_request& request) const {
  const ForeignZone zone = read_foreign_zone(request.workload->pod_annotations);
  const auto abstain = [&request](const std::string& why) {
    return std::vector<Verdict>(request.candidate_count, Verdict{TOPOLET_VERDICT_ABSTAIN, 0, why});
  };
  if (!zone.error.empty()) return abstain(zone.error);
  if (!zone.is_said()) return {};
  const Set nodes = chosen_nodes(*request.topology, zone);
  if (nodes.empty() && !zone.nodes.empty())
    return abstain(chosen_by(zone) + " " + sdk::node_names(zone.nodes.view()) + ", without any CPU");
  if (nodes.empty())
    return abstain(chosen_by(zone) + " " + sdk::cpu_names(zone.cpus) + ", which are on no node of this machine");
  const std::string chosen = sdk::node_names(nodes.view()) + ", which " + chosen_by(zone);
  const auto candidates = sdk::candidates(request);
  const bool any_room = std::any_of(candidates.begin(), candidates.end(), [&](const topolet_candidate& candidate) {
    return is_within(candidate, nodes) && has_room(request, candidate);
  });
  if (!any_room && !options_.requires_zone) return abstain("there is no room on " + chosen);
  std::vector<Verdict> verdicts;
  verdicts.reserve(request.candidate_count);
  for (const topolet_candidate& candidate : candidates) {
    if (is_within(candidate, nodes)) {
      verdicts.push_back({TOPOLET_VERDICT_SCORE, TOPOLET_SCORE_MAX, "it is within " + chosen});
    } else if (options_.requires_zone) {
      verdicts.push_back({TOPOLET_VERDICT_REJECT, 0, "it is not within " + chosen + " (zone = require)"});
    } else {
      verdicts.push_back({TOPOLET_VERDICT_SCORE, 0, "it is not within " + chosen});
    }
  }
  return verdicts;
}

Set Policy::propose(const topolet_request& request) const {
  const ForeignZone zone = read_foreign_zone(request.workload->pod_annotations);
  if (!zone.error.empty()) return {};
  Set nodes = chosen_nodes(*request.topology, zone);
  nodes &= sdk::union_of_candidates(request, &topolet_candidate::nodes);
  return nodes.size() > 1 ? nodes : Set();
}

CpuChoice Policy::pick(const topolet_pick_request& picking) const {
  const bool are_chosen = picking.stage == TOPOLET_PICK_REVIEW;
  if (!are_chosen && picking.stage != TOPOLET_PICK_CHOOSE) return {};
  const ForeignZone zone = read_foreign_zone(picking.request->workload->pod_annotations);
  if (!zone.error.empty() || zone.cpus.empty()) return {};
  Set usable = zone.cpus & Set(picking.usable);
  // A choice that cannot be followed is reported once the CPUs are chosen.
  if (are_chosen) {
    if (!usable.empty()) return {};
    return {{}, "", "none of " + sdk::cpu_names(zone.cpus) + ", which " + chosen_by(zone) + ", is free there"};
  }
  return {std::move(usable), "of " + sdk::cpu_names(zone.cpus) + ", which " + chosen_by(zone), ""};
}

void Policy::propose(const topolet_request& request, sdk::Proposals& proposals) const {
  if (const Set nodes = propose(request); !nodes.empty()) proposals.nodes(nodes.view());
}

void Policy::pick(const topolet_pick_request& request, sdk::Picks& picks) const {
  const CpuChoice choice = pick(request);
  if (!choice.unmet.empty()) picks.unmet(choice.unmet);
  if (choice.narrow.empty()) return;
  picks.narrow(choice.narrow.view());
  picks.reason(choice.reason);
}

}  // namespace topolet::foreign_zone
