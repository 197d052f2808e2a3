#include "plugins/numa/candidate_resources.hpp"

#include <algorithm>
#include <optional>

#include "plugins/numa/pod_place.hpp"
#include "plugins/numa/zone.hpp"

namespace topolet::numa {
namespace {

using sdk::Set;

/// Values that are the same for all candidates of a request. "By position" is by a node's position in the topology.
struct NodeTables {
  std::vector<std::uint32_t> position;               ///< by OS index of the node
  std::vector<std::uint32_t> package;                ///< by position; TOPOLET_NONE if unknown
  std::vector<std::int64_t> shared_milli_requested;  ///< by position
  Set cpus_outside_nodes;
  std::int64_t shared_milli_requested_outside = 0;  ///< of the CPUs outside any node

  NodeTables(const topolet_topology& topology, const topolet_ledger& ledger);
};

bool shares_cpus(const topolet_ledger_entry& entry) {
  return entry.mode == TOPOLET_MODE_SHARED || entry.mode == TOPOLET_MODE_RESERVED;
}

std::int64_t requested_milli(const topolet_ledger_entry& entry) {
  if (entry.demand == nullptr) return 0;
  return std::clamp<std::int64_t>(entry.demand->cpu_request_milli, 0, std::int64_t{1} << 40U);
}

/// Takes the requests of containers with CPUs of their own off: these do not compete for shared CPUs.
void subtract_exclusive(const topolet_topology& topology, const topolet_ledger& ledger, const Set& cpus_outside_nodes,
                        std::vector<std::int64_t>& milli) {
  std::vector<std::uint32_t> node_of;
  for (const topolet_pu& pu : sdk::pus(topology)) {
    if (node_of.size() <= pu.os_index) node_of.resize(pu.os_index + 1, TOPOLET_NONE);
    node_of[pu.os_index] = pu.node;
  }
  std::vector<std::int64_t> cpus(milli.size(), 0);
  for (const topolet_ledger_entry& entry : sdk::entries(ledger)) {
    if (shares_cpus(entry) || entry.demand == nullptr) continue;
    std::fill(cpus.begin(), cpus.end(), 0);
    auto all = static_cast<std::int64_t>(sdk::size_of_both(entry.cpus, cpus_outside_nodes.view()));
    sdk::for_each_index(entry.cpus, [&](std::uint32_t cpu) {
      if (cpu >= node_of.size() || node_of[cpu] >= cpus.size()) return;
      ++cpus[node_of[cpu]];
      ++all;
    });
    const std::int64_t requested = requested_milli(entry);
    for (std::size_t i = 0; i < cpus.size() && all > 0; ++i) milli[i] -= requested * cpus[i] / all;
  }
}

/// Returns the requests of shared containers for CPUs outside any node, each in proportion to its CPUs there.
std::int64_t shared_milli_on(const Set& cpus, const topolet_ledger& ledger) {
  std::int64_t milli = 0;
  for (const topolet_ledger_entry& entry : sdk::entries(ledger)) {
    const auto here = static_cast<std::int64_t>(sdk::size_of_both(entry.cpus, cpus.view()));
    if (here == 0 || !shares_cpus(entry)) continue;
    milli += requested_milli(entry) * here / static_cast<std::int64_t>(sdk::size_of(entry.cpus));
  }
  return milli;
}

NodeTables::NodeTables(const topolet_topology& topology, const topolet_ledger& ledger)
    : package(topology.node_count, TOPOLET_NONE), shared_milli_requested(topology.node_count, 0) {
  const auto nodes = sdk::nodes(topology);
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    if (position.size() <= nodes[i].os_index) position.resize(nodes[i].os_index + 1, TOPOLET_NONE);
    position[nodes[i].os_index] = i;
  }
  for (const topolet_pu& pu : sdk::pus(topology)) {
    if (pu.node == TOPOLET_NONE) cpus_outside_nodes.insert(pu.os_index);
    if (pu.node < package.size() && package[pu.node] == TOPOLET_NONE) package[pu.node] = pu.package;
  }
  const auto demands = sdk::node_demands(ledger);
  for (std::size_t i = 0; i < std::min(demands.size(), shared_milli_requested.size()); ++i) {
    shared_milli_requested[i] = demands[i].cpu_request_milli;
  }
  subtract_exclusive(topology, ledger, cpus_outside_nodes, shared_milli_requested);
  if (!cpus_outside_nodes.empty()) shared_milli_requested_outside = shared_milli_on(cpus_outside_nodes, ledger);
  for (std::int64_t& milli : shared_milli_requested) milli = std::max<std::int64_t>(0, milli);
}

void positions_of(topolet_set nodes, const NodeTables& tables, std::vector<std::uint32_t>& positions) {
  positions.clear();
  sdk::for_each_index(nodes, [&](std::uint32_t os_index) {
    if (os_index >= tables.position.size() || tables.position[os_index] == TOPOLET_NONE) return;
    positions.push_back(tables.position[os_index]);
  });
}

std::size_t count_packages(const std::vector<std::uint32_t>& positions, const NodeTables& tables) {
  Set packages;
  std::size_t unknown = 0;
  for (const std::uint32_t node : positions) {
    if (tables.package[node] == TOPOLET_NONE) {
      ++unknown;
    } else {
      packages.insert(tables.package[node]);
    }
  }
  return packages.size() + unknown;
}

/// Returns the distance that CPUs outside any node, as a node of their own, add to `nodes` others.
std::uint32_t distance_outside_nodes(std::size_t nodes) {
  constexpr std::uint32_t kToItself = 10;
  constexpr std::uint32_t kToOthers = 20;
  return kToItself + 2 * kToOthers * static_cast<std::uint32_t>(nodes);
}

/// Counts free CPUs by cache; nothing if no node has several caches.
std::optional<FreeByCache> free_by_cache(const topolet_request& request) {
  const CacheGroups groups(*request.topology);
  if (!groups.divide_nodes()) return std::nullopt;
  return FreeByCache(*request.topology, groups, sdk::union_of_candidates(request, &topolet_candidate::usable).view());
}

Set free_isolated_cpus(const topolet_request& request) {
  const topolet_ledger& ledger = *request.ledger;
  Set isolated(request.topology->isolated);
  for (const topolet_set& held : {ledger.exclusive, ledger.withheld, ledger.reserved_cpus}) isolated -= held;
  return isolated;
}

std::size_t nodes_outside_pod(const topolet_candidate& candidate, bool has_cpus_outside_nodes, const Demand& demand) {
  const std::size_t nodes = sdk::size_of(candidate.nodes);
  if (nodes == 0) return sdk::size_of(demand.pod_nodes) == 0 ? 0 : 1;
  // A machine of one node and other CPUs, which has the nodes of that node, is more than one place.
  const bool adds_others = has_cpus_outside_nodes && demand.alignment == Alignment::kSingleNumaNode;
  return nodes - sdk::size_of_both(candidate.nodes, demand.pod_nodes) + (adds_others ? 1 : 0);
}

}  // namespace

std::string CandidateResources::name() const {
  const bool has_both = has_cpus_outside_nodes && sdk::size_of(nodes) > 0;
  return sdk::node_names(nodes) + (has_both ? " and the CPUs outside any node" : "");
}

std::vector<CandidateResources> candidate_resources(const topolet_request& request, const Demand& demand,
                                                    const NodeMemory& memory, std::size_t cpus_in_caches) {
  const NodeTables tables(*request.topology, *request.ledger);
  const std::optional<FreeByCache> caches = cpus_in_caches > 0 ? free_by_cache(request) : std::nullopt;
  const PodPlace pod(request);
  const Set isolated = demand.pod_takes_isolated ? free_isolated_cpus(request) : Set();
  std::vector<CandidateResources> all;
  all.reserve(request.candidate_count);
  std::vector<std::uint32_t> positions;
  for (const topolet_candidate& candidate : sdk::candidates(request)) {
    CandidateResources resources;
    positions_of(candidate.nodes, tables, positions);
    const std::size_t nodes = sdk::size_of(candidate.nodes);
    const bool has_others = sdk::size_of_both(candidate.cpus, tables.cpus_outside_nodes.view()) > 0;
    const std::size_t packages = count_packages(positions, tables) + (has_others && nodes > 0 ? 1 : 0);
    resources.nodes = candidate.nodes;
    resources.has_cpus_outside_nodes = has_others;
    resources.node_count = std::max<std::size_t>(1, nodes + (has_others ? 1 : 0));
    resources.package_count = std::max<std::size_t>(1, packages);
    resources.allowed_cpus = sdk::size_of(candidate.cpus);
    // What a container that shares CPUs keeps of them does not tell how crowded it is there.
    const topolet_set free = request.exclusive != 0 ? candidate.usable : candidate.pool;
    resources.free_cpus = sdk::size_of(free);
    resources.shared_cpus = sdk::size_of_both(candidate.cpus, request.ledger->pool);
    resources.unshared_cpus = resources.free_cpus - sdk::size_of_both(free, request.ledger->pool);
    resources.isolated_cpus = sdk::size_of_both(candidate.cpus, isolated.view());
    for (const std::uint32_t node : positions) resources.shared_milli_requested += tables.shared_milli_requested[node];
    if (has_others) resources.shared_milli_requested += tables.shared_milli_requested_outside;
    // The distance of a candidate does not count them beside nodes.
    resources.distance = candidate.distance + (has_others && nodes > 0 ? distance_outside_nodes(nodes) : 0);
    if (caches) resources.caches = caches->fit(positions, has_others, cpus_in_caches);
    resources.nodes_without_memory = memory.count_without(candidate.nodes, has_others);
    resources.memory = memory.amount(positions);
    for (const auto& [page_bytes, bytes] : demand.huge_pages) {
      const bool fits = memory.huge_pages(positions, page_bytes).fits(bytes);
      resources.huge_pages_fit = resources.huge_pages_fit && fits;
    }
    if (!pod.empty()) resources.pod_distance = pod.distance_to(positions, has_others);
    if (demand.pod_is_placed) resources.nodes_outside_pod = nodes_outside_pod(candidate, has_others, demand);
    if (request.exclusive != 0 && request.occasion == TOPOLET_OCCASION_MOVE)
      resources.left_behind = sdk::size_of(request.had_cpus) - sdk::size_of_both(request.had_cpus, candidate.cpus);
    resources.in_zone = demand.zone.empty() || is_in_zone(candidate, demand.zone);
    all.push_back(resources);
  }
  return all;
}

}  // namespace topolet::numa
