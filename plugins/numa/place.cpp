#include "plugins/numa/place.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>

namespace topolet::numa {
namespace {

using sdk::Set;

/// What is the same for all candidates of a request.
struct Ground {
  std::vector<std::uint32_t> position;    ///< of a node in the topology, by OS index
  std::vector<std::uint32_t> package;     ///< of a node, by position; TOPOLET_NONE if unknown
  std::vector<std::int64_t> milli_asked;  ///< by shared containers, by position
  Set cpus_without_node;

  Ground(const topolet_topology& topology, const topolet_ledger& ledger);
};

/// What exclusive containers ask for is none of the shared CPUs' business.
void leave_out_exclusive(const topolet_topology& topology, const topolet_ledger& ledger,
                         std::vector<std::int64_t>& milli) {
  std::vector<std::uint32_t> node_of;
  for (const topolet_pu& pu : sdk::pus(topology)) {
    if (node_of.size() <= pu.os_index) node_of.resize(pu.os_index + 1, TOPOLET_NONE);
    node_of[pu.os_index] = pu.node;
  }
  std::vector<std::int64_t> cpus(milli.size(), 0);
  for (const topolet_ledger_entry& entry : sdk::entries(ledger)) {
    if (entry.mode == TOPOLET_MODE_SHARED || entry.mode == TOPOLET_MODE_RESERVED || entry.demand == nullptr) continue;
    std::fill(cpus.begin(), cpus.end(), 0);
    std::int64_t all = 0;
    for (std::size_t word = 0; word < entry.cpus.count; ++word) {
      for (std::uint64_t rest = entry.cpus.words[word]; rest != 0; rest &= rest - 1) {
        const std::size_t cpu = word * 64 + static_cast<std::size_t>(std::countr_zero(rest));
        if (cpu >= node_of.size() || node_of[cpu] >= cpus.size()) continue;
        ++cpus[node_of[cpu]];
        ++all;
      }
    }
    const std::int64_t asked = std::clamp<std::int64_t>(entry.demand->cpu_request_milli, 0, std::int64_t{1} << 40U);
    for (std::size_t i = 0; i < cpus.size() && all > 0; ++i) milli[i] -= asked * cpus[i] / all;
  }
}

Ground::Ground(const topolet_topology& topology, const topolet_ledger& ledger)
    : package(topology.node_count, TOPOLET_NONE), milli_asked(topology.node_count, 0) {
  const auto nodes = sdk::nodes(topology);
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    if (position.size() <= nodes[i].os_index) position.resize(nodes[i].os_index + 1, TOPOLET_NONE);
    position[nodes[i].os_index] = i;
  }
  for (const topolet_pu& pu : sdk::pus(topology)) {
    if (pu.node == TOPOLET_NONE) cpus_without_node.insert(pu.os_index);
    if (pu.node < package.size() && package[pu.node] == TOPOLET_NONE) package[pu.node] = pu.package;
  }
  const auto demands = sdk::node_demands(ledger);
  for (std::size_t i = 0; i < std::min(demands.size(), milli_asked.size()); ++i) {
    milli_asked[i] = demands[i].cpu_request_milli;
  }
  leave_out_exclusive(topology, ledger, milli_asked);
  for (std::int64_t& milli : milli_asked) milli = std::max<std::int64_t>(0, milli);
}

/// Positions in the topology's nodes.
void positions_of(topolet_set nodes, const Ground& ground, std::vector<std::uint32_t>& positions) {
  positions.clear();
  for (std::size_t word = 0; word < nodes.count; ++word) {
    for (std::uint64_t rest = nodes.words[word]; rest != 0; rest &= rest - 1) {
      const std::size_t os_index = word * 64 + static_cast<std::size_t>(std::countr_zero(rest));
      if (os_index >= ground.position.size() || ground.position[os_index] == TOPOLET_NONE) continue;
      positions.push_back(ground.position[os_index]);
    }
  }
}

std::size_t packages_of(const std::vector<std::uint32_t>& positions, const Ground& ground) {
  Set packages;
  std::size_t unknown = 0;
  for (const std::uint32_t node : positions) {
    if (ground.package[node] == TOPOLET_NONE) {
      ++unknown;
    } else {
      packages.insert(ground.package[node]);
    }
  }
  return packages.size() + unknown;
}

}  // namespace

std::string list_of(topolet_set set) {
  std::string list;
  const auto append = [&list](std::uint32_t number) {
    std::array<char, 10> digits;
    list.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr);
  };
  const auto end = static_cast<std::uint32_t>(set.count * 64);
  for (std::uint32_t first = 0; first < end; ++first) {
    if (set.words[first / 64] >> (first % 64) == 0) {
      first |= 63U;
      continue;
    }
    if (topolet_set_has(set, first) == 0) continue;
    std::uint32_t last = first;
    while (topolet_set_has(set, last + 1) != 0) ++last;
    if (!list.empty()) list += ',';
    append(first);
    if (last > first) list += '-', append(last);
    first = last;
  }
  return list;
}

std::string Place::name() const {
  const std::size_t count = sdk::size_of(nodes);
  if (count == 0) return "the CPUs without a node";
  std::string text = (count == 1 ? "node " : "nodes ") + list_of(nodes);
  if (has_others) text += " and the CPUs without one";
  return text;
}

std::vector<Place> places_of(const topolet_request& request, const Asked& asked, const NodeMemory& memory) {
  const Ground ground(*request.topology, *request.ledger);
  const bool in_pod = sdk::size_of(asked.pod_nodes) > 0;
  std::vector<Place> places;
  places.reserve(request.candidate_count);
  std::vector<std::uint32_t> positions;
  for (const topolet_candidate& candidate : sdk::candidates(request)) {
    Place place;
    positions_of(candidate.nodes, ground, positions);
    const std::size_t nodes = sdk::size_of(candidate.nodes);
    place.nodes = candidate.nodes;
    place.has_others = sdk::size_of_both(candidate.cpus, ground.cpus_without_node.view()) > 0;
    place.width = std::max<std::size_t>(1, nodes + (place.has_others ? 1 : 0));
    place.packages = std::max<std::size_t>(1, packages_of(positions, ground) + (place.has_others && nodes > 0 ? 1 : 0));
    place.cpus = sdk::size_of(candidate.cpus);
    place.free = sdk::size_of(candidate.free);
    for (const std::uint32_t node : positions) place.milli_asked += ground.milli_asked[node];
    place.distance = candidate.distance;
    place.memory = memory.room(positions);
    for (const auto& [page_bytes, bytes] : asked.huge_pages) {
      place.pages_fit = place.pages_fit && memory.huge_page_room(positions, page_bytes).holds(bytes);
    }
    if (in_pod) place.outside_pod = nodes == 0 ? 1 : nodes - sdk::size_of_both(candidate.nodes, asked.pod_nodes);
    places.push_back(place);
  }
  return places;
}

}  // namespace topolet::numa
