#include "plugins/gpu/keep_free.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "plugins/gpu/locality.hpp"
#include "plugins/gpu/locality_model.hpp"

namespace topolet::gpu {
namespace {

using sdk::Verdict;

/// Returns the request of the shared containers on these nodes, in thousandths of a CPU.
std::int64_t shared_request_milli(const topolet_request& request, const Nodes& nodes) {
  std::int64_t sum = 0;
  for (const std::uint32_t node : nodes) {
    if (node >= request.ledger->node_demand_count) continue;
    const topolet_node_demand& demand = sdk::node_demands(*request.ledger)[node];
    sum += std::max<std::int64_t>(0, demand.cpu_request_milli - std::int64_t{1000} * demand.exclusive_cpus);
  }
  return sum;
}

bool has_capacity(const topolet_request& request, const topolet_candidate& candidate, const Nodes& nodes) {
  if (request.exclusive != 0) return sdk::size_of(candidate.usable) >= request.exclusive_cpus;
  const auto free = static_cast<std::int64_t>(sdk::size_of(candidate.pool));
  const topolet_demand* const demand = request.workload->demand;
  const std::int64_t request_milli = demand == nullptr ? 0 : demand->cpu_request_milli;
  return free > 0 && shared_request_milli(request, nodes) + request_milli <= 1000 * free;
}

/// The nodes that accelerators are local to. One that is near all nodes does not count.
Nodes nodes_with_accelerators(const topolet_topology& topology, const CpuNodes& nodes) {
  std::set<std::uint32_t> found;
  const auto add = [&](const DeviceRef& ref) {
    if (!is_accelerator(topology, ref)) return;
    const Nodes local = local_nodes_of(topology, ref);
    if (local.size() < nodes.positions().size()) found.insert(local.begin(), local.end());
  };
  for (std::uint32_t i = 0; i < topology.pci_device_count; ++i) add({.pci_device = i});
  for (std::uint32_t i = 0; i < topology.os_device_count; ++i) {
    if (sdk::os_devices(topology)[i].pci_device == TOPOLET_NONE) add({.os_device = i});
  }
  return {found.begin(), found.end()};
}

/// How well a container without devices fits a candidate. The unit is a CPU for an exclusive container, and a node for
/// a shared one, which runs on all nodes of the candidate alike.
struct CandidateFit {
  std::size_t gpu_nodes = 0;         ///< usable nodes with GPUs
  bool has_capacity = false;         ///< the container fits
  std::size_t wanted = 0, away = 0;  ///< units that the container takes, and how many of them can be away from GPUs

  bool is_away() const { return gpu_nodes == 0; }
};

/// `has_gpus`: by position of the node.
CandidateFit fit_of(const topolet_request& request, const topolet_candidate& candidate, const LocalityModel& model,
                    const std::vector<bool>& has_gpus) {
  CandidateFit fit;
  const sdk::Set assignable = model.assignable(candidate.usable);
  const Nodes usable = model.nodes().usable(candidate.nodes, assignable.view());
  fit.has_capacity = has_capacity(request, candidate, usable);
  fit.wanted = request.exclusive == 0 ? usable.size() : request.exclusive_cpus;
  for (const std::uint32_t node : usable) {
    if (has_gpus[node]) {
      ++fit.gpu_nodes;
    } else {
      fit.away += request.exclusive == 0 ? 1 : model.nodes().count_on(node, assignable.view());
    }
  }
  fit.away = std::min(fit.away, fit.wanted);
  return fit;
}

// Times the plugin's default weight: 4 to -4 differ by more than `numa` subtracts for one more node, and by less than
// `smt` gives for isolation.
constexpr std::int32_t kPoints = 4;

/// From 0, where hardly anything is beside GPUs, to -4. That is less than `numa` subtracts for one more node: what fits
/// one node is not spread over two to have only a part of it beside GPUs.
std::int32_t score_of(const CandidateFit& fit) {
  const auto beside =
      static_cast<double>(fit.wanted - fit.away) / static_cast<double>(std::max<std::size_t>(fit.wanted, 1));
  return -static_cast<std::int32_t>(std::ceil(kPoints * beside));
}

Verdict verdict_without_capacity(const std::string& where, topolet_verdict_kind kind, std::int32_t score) {
  return {kind, score, where + ": no GPUs, but the container does not fit"};
}

/// A container that requests nothing takes what it gets: it is kept to all nodes without GPUs, not to one of them.
bool takes_what_it_gets(const topolet_request& request) {
  return request.exclusive == 0 && request.workload->qos == TOPOLET_QOS_BESTEFFORT;
}

/// For such a container. Nodes whose CPUs all belong to others at present count too: they may come free.
Verdict verdict_on_nodes(const topolet_candidate& candidate, const CpuNodes& nodes, const Nodes& gpu_nodes,
                         const std::string& gpus) {
  const std::string where = nodes_text(candidate.nodes);
  std::size_t without_gpus = 0;
  for (const std::uint32_t node : nodes.positions()) {
    if (topolet_set_has(candidate.nodes, nodes.os_index(node)) == 0) continue;
    if (contains(gpu_nodes, node)) return {TOPOLET_VERDICT_SCORE, -kPoints, where + ": keep-free avoids " + gpus};
    ++without_gpus;
  }
  if (without_gpus == nodes.positions().size() - gpu_nodes.size()) {
    return {TOPOLET_VERDICT_SCORE, kPoints, where + ": all nodes without GPUs"};
  }
  return {TOPOLET_VERDICT_SCORE, 0, where + ": no GPUs, but there are more nodes without them"};
}

/// If some candidate has room for the whole container away from GPUs.
Verdict verdict_on(const CandidateFit& fit, const std::string& where, const std::string& gpus) {
  if (!fit.is_away()) return {TOPOLET_VERDICT_SCORE, score_of(fit), where + ": keep-free avoids " + gpus};
  if (!fit.has_capacity) return verdict_without_capacity(where, TOPOLET_VERDICT_ABSTAIN, 0);
  return {TOPOLET_VERDICT_SCORE, kPoints, where + ": no GPUs, and the container fits"};
}

/// If there is room for a part of the container only.
Verdict verdict_on_part(const CandidateFit& fit, bool is_exclusive, const std::string& where, const std::string& gpus) {
  if (fit.is_away()) return verdict_without_capacity(where, TOPOLET_VERDICT_SCORE, -kPoints);
  std::string part = "nothing";
  if (fit.away > 0) {
    part = is_exclusive ? std::to_string(fit.away) + " of " + std::to_string(fit.wanted) + " CPUs"
                        : std::string("part of the container");
  }
  return {TOPOLET_VERDICT_SCORE, score_of(fit), where + ": " + part + " can be kept away from " + gpus};
}

/// The fewest of these nodes that have `count` CPUs together and, among equally few, those with the fewest CPUs.
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

std::vector<Verdict> keep_free_verdicts(const topolet_request& request, const Rules& rules) {
  const LocalityModel model(request, {}, rules.whole_cores);
  const CpuNodes& nodes = model.nodes();
  const Nodes gpu_nodes = nodes_with_accelerators(*request.topology, nodes);
  if (gpu_nodes.empty() || gpu_nodes.size() == nodes.positions().size()) return {};

  const std::string gpus = "the GPUs of " + nodes_text(nodes.os_indices(gpu_nodes));
  std::vector<bool> has_gpus(request.topology->node_count);
  for (const std::uint32_t node : gpu_nodes) has_gpus[node] = true;
  std::vector<CandidateFit> fits;
  bool fits_away = false;
  bool fits_away_in_part = false;
  for (const topolet_candidate& candidate : sdk::candidates(request)) {
    const CandidateFit& fit = fits.emplace_back(fit_of(request, candidate, model, has_gpus));
    fits_away = fits_away || (fit.has_capacity && fit.is_away());
    fits_away_in_part = fits_away_in_part || (fit.has_capacity && fit.away > 0);
  }
  if (!fits_away && !fits_away_in_part) {
    return {request.candidate_count, Verdict{TOPOLET_VERDICT_ABSTAIN, 0, "nothing can be kept away from " + gpus}};
  }
  std::vector<Verdict> verdicts;
  for (std::size_t i = 0; i < fits.size(); ++i) {
    const std::string where = nodes_text(sdk::candidates(request)[i].nodes);
    if (fits_away && takes_what_it_gets(request)) {
      verdicts.push_back(verdict_on_nodes(sdk::candidates(request)[i], nodes, gpu_nodes, gpus));
      continue;
    }
    verdicts.push_back(fits_away ? verdict_on(fits[i], where, gpus)
                                 : verdict_on_part(fits[i], request.exclusive != 0, where, gpus));
  }
  return verdicts;
}

std::optional<sdk::Set> nodes_kept_free_of_gpus(const topolet_request& request) {
  if (!takes_what_it_gets(request)) return std::nullopt;
  const CpuNodes nodes(*request.topology);
  const Nodes gpu_nodes = nodes_with_accelerators(*request.topology, nodes);
  sdk::Set others;
  for (const std::uint32_t node : nodes.positions()) {
    if (!contains(gpu_nodes, node)) others.insert(nodes.os_index(node));
  }
  if (gpu_nodes.empty() || others.size() < 2) return std::nullopt;
  return others;
}

std::vector<CpuMinimum> split_keeping_free(const topolet_pick_request& picking, const Rules& rules) {
  if (has_chosen_cpus(picking)) return {};
  const topolet_topology& topology = *picking.request->topology;
  const LocalityModel model(*picking.request, {}, rules.whole_cores);
  const std::size_t count = picking.request->exclusive_cpus;
  const sdk::Set usable = model.assignable(picking.usable);
  sdk::Set away = usable;
  std::vector<sdk::Set> beside;
  for (const std::uint32_t node : nodes_with_accelerators(topology, model.nodes())) {
    const sdk::Set cpus = sdk::Set(sdk::nodes(topology)[node].cpus) & usable;
    away -= cpus;
    if (!cpus.empty()) beside.push_back(cpus);
  }
  std::vector<CpuMinimum> minimums;
  const auto add = [&](const sdk::Set& cpus) {
    if (!cpus.empty() && cpus.size() < usable.size()) minimums.push_back({cpus, count});
  };
  add(away);
  sdk::Set widened = away;
  for (const sdk::Set& cpus : fewest(std::move(beside), count - std::min(count, away.size()))) add(widened |= cpus);
  return minimums;
}

}  // namespace topolet::gpu
