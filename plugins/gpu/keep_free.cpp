#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "plugins/gpu/bench.hpp"
#include "plugins/gpu/division.hpp"
#include "plugins/gpu/judge.hpp"
#include "plugins/gpu/locality.hpp"

namespace topolet::gpu {
namespace {

/// CPUs that are asked for already, by shared containers, in thousandths.
std::int64_t shared_demand(const topolet_request& request, const Nodes& nodes) {
  std::int64_t sum = 0;
  for (const std::uint32_t node : nodes) {
    if (node >= request.ledger->node_demand_count) continue;
    const topolet_node_demand& demand = sdk::node_demands(*request.ledger)[node];
    sum += std::max<std::int64_t>(0, demand.cpu_request_milli - std::int64_t{1000} * demand.exclusive_cpus);
  }
  return sum;
}

bool has_room(const topolet_request& request, const topolet_candidate& candidate, const Nodes& nodes) {
  const auto free = static_cast<std::int64_t>(sdk::size_of(candidate.free));
  if (request.exclusive != 0) return free >= request.exclusive_cpus;
  const topolet_demand* const demand = request.workload->demand;
  const std::int64_t asked = demand == nullptr ? 0 : demand->cpu_request_milli;
  return free > 0 && shared_demand(request, nodes) + asked <= 1000 * free;
}

/// Nodes of accelerators, by position; those of devices near to every node don't count.
std::set<std::uint32_t> nodes_with_accelerators(const topolet_topology& topology, const CpuNodes& nodes) {
  std::set<std::uint32_t> found;
  const auto add = [&](const Spot& spot) {
    if (!is_accelerator(topology, spot)) return;
    const Nodes homes = homes_of(topology, spot);
    if (homes.size() < nodes.positions().size()) found.insert(homes.begin(), homes.end());
  };
  for (std::uint32_t i = 0; i < topology.pci_device_count; ++i) add({.pci_device = i});
  for (std::uint32_t i = 0; i < topology.os_device_count; ++i) {
    if (sdk::os_devices(topology)[i].pci_device == TOPOLET_NONE) add({.os_device = i});
  }
  return found;
}

/// What a candidate is to a container without devices.
struct Berth {
  Nodes usable;
  std::size_t kept = 0;  ///< of these
  bool has_room = false;
  std::size_t asked = 0, away = 0;  ///< of all that the container takes there, how much is not beside GPUs at the best

  bool is_away() const { return kept == 0; }
};

/// An exclusive container can have all CPUs that are free on other nodes, a shared one is on all nodes alike.
Berth berth_of(const topolet_request& request, const topolet_candidate& candidate, const Bench& bench,
               const std::set<std::uint32_t>& kept) {
  Berth berth;
  const sdk::Set takeable = bench.takeable(candidate.free);
  berth.usable = bench.nodes().usable(candidate.nodes, takeable.view());
  berth.has_room = has_room(request, candidate, berth.usable);
  berth.asked = request.exclusive == 0 ? berth.usable.size() : request.exclusive_cpus;
  for (const std::uint32_t node : berth.usable) {
    if (kept.contains(node)) {
      ++berth.kept;
    } else {
      const topolet_set cpus = sdk::nodes(*request.topology)[node].cpus;
      berth.away += request.exclusive == 0 ? 1 : sdk::size_of_both(cpus, takeable.view());
    }
  }
  berth.away = std::min(berth.away, berth.asked);
  return berth;
}

sdk::Set os_indices(const std::set<std::uint32_t>& positions, const CpuNodes& nodes) {
  sdk::Set indices;
  for (const std::uint32_t position : positions) indices.insert(nodes.os_index(position));
  return indices;
}

// With the plugin's own weight: between them more than what a node more costs, less than what isolation is worth.
constexpr std::int32_t kPoints = 4;

/// From 0, where next to nothing is beside GPUs, to -4: less than what a node more costs, so that what fits one node is
/// not spread to have only a part beside GPUs.
std::int32_t points_of(const Berth& berth) {
  const auto beside =
      static_cast<double>(berth.asked - berth.away) / static_cast<double>(std::max<std::size_t>(berth.asked, 1));
  return -static_cast<std::int32_t>(std::ceil(kPoints * beside));
}

/// Where there is room away from GPUs for all that the container asks for.
Verdict verdict_of(const Berth& berth, const std::string& where, const std::string& kept) {
  if (!berth.is_away()) {
    return {TOPOLET_VERDICT_SCORE, points_of(berth), where + ": GPUs of " + kept + " are kept free"};
  }
  if (berth.has_room) return {TOPOLET_VERDICT_SCORE, kPoints, where + ": room, and no GPUs"};
  return {TOPOLET_VERDICT_ABSTAIN, 0, where + ": no GPUs, but no room either"};
}

/// Where there is room for a part only.
Verdict verdict_on_part(const Berth& berth, bool is_exclusive, const std::string& where, const std::string& kept) {
  if (berth.is_away()) return {TOPOLET_VERDICT_SCORE, -kPoints, where + ": no GPUs, but no room either"};
  if (berth.away == 0) {
    return {TOPOLET_VERDICT_SCORE, points_of(berth), where + ": no room away from the GPUs of " + kept};
  }
  const std::string part = is_exclusive ? std::to_string(berth.away) + " of " + std::to_string(berth.asked) + " CPUs"
                                        : std::string("a part");
  return {TOPOLET_VERDICT_SCORE, points_of(berth), where + ": room for " + part + " away from the GPUs of " + kept};
}

/// Of nodes with so many free CPUs the fewest that have `count` together, and of as few the fullest.
std::vector<sdk::Set> fewest(std::vector<sdk::Set> nodes, std::size_t count) {
  const auto smaller = [](const sdk::Set& a, const sdk::Set& b) { return a.size() < b.size(); };
  std::stable_sort(nodes.begin(), nodes.end(), smaller);
  std::vector<sdk::Set> chosen;
  while (count > 0 && !nodes.empty()) {
    auto next =
        std::find_if(nodes.begin(), nodes.end(), [count](const sdk::Set& node) { return node.size() >= count; });
    if (next == nodes.end()) --next;
    count -= std::min(count, next->size());
    chosen.push_back(*next);
    nodes.erase(next);
  }
  return chosen;
}

}  // namespace

std::vector<Verdict> judge_keeping_free(const topolet_request& request, const Rules& rules) {
  const Bench bench(request, {}, rules.whole_cores);
  const CpuNodes& nodes = bench.nodes();
  const std::set<std::uint32_t> kept = nodes_with_accelerators(*request.topology, nodes);
  if (kept.empty() || kept.size() == nodes.positions().size()) return {};

  const std::string kept_text = nodes_text(os_indices(kept, nodes));
  std::vector<Berth> berths;
  bool is_room = false;
  bool is_room_for_part = false;
  for (const topolet_candidate& candidate : sdk::candidates(request)) {
    const Berth& berth = berths.emplace_back(berth_of(request, candidate, bench, kept));
    is_room = is_room || (berth.has_room && berth.is_away());
    is_room_for_part = is_room_for_part || (berth.has_room && berth.away > 0);
  }
  if (!is_room && !is_room_for_part) {
    const Verdict nothing{TOPOLET_VERDICT_ABSTAIN, 0, "no room away from the GPUs of " + kept_text};
    return {request.candidate_count, nothing};
  }
  std::vector<Verdict> verdicts;
  for (std::size_t i = 0; i < berths.size(); ++i) {
    const std::string where = nodes_text(sdk::candidates(request)[i].nodes);
    verdicts.push_back(is_room ? verdict_of(berths[i], where, kept_text)
                               : verdict_on_part(berths[i], request.exclusive != 0, where, kept_text));
  }
  return verdicts;
}

std::vector<Share> divide_keeping_free(const topolet_pick_request& picking, const Rules& rules) {
  if (is_chosen(picking)) return {};
  const topolet_topology& topology = *picking.request->topology;
  const Bench bench(*picking.request, {}, rules.whole_cores);
  const std::size_t count = picking.request->exclusive_cpus;
  const sdk::Set usable = bench.takeable(picking.usable);
  sdk::Set away = usable;
  std::vector<sdk::Set> beside;
  for (const std::uint32_t node : nodes_with_accelerators(topology, bench.nodes())) {
    const sdk::Set here = sdk::Set(sdk::nodes(topology)[node].cpus) & usable;
    away -= here;
    if (!here.empty()) beside.push_back(here);
  }
  std::vector<Share> shares;
  const auto add = [&](const sdk::Set& cpus) {
    if (!cpus.empty() && cpus.size() < usable.size()) shares.push_back({cpus, count});
  };
  add(away);
  sdk::Set taken = away;
  for (const sdk::Set& node : fewest(std::move(beside), count - std::min(count, away.size()))) add(taken |= node);
  return shares;
}

}  // namespace topolet::gpu
