#include "plugins/gpu/proposals.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "plugins/gpu/locality.hpp"

namespace topolet::gpu {
namespace {

using Nodes = std::vector<std::uint32_t>;  // positions in the topology's nodes

bool has(const Nodes& nodes, std::uint32_t node) { return std::find(nodes.begin(), nodes.end(), node) != nodes.end(); }

/// Of each device that has none of `nodes` yet: its homes.
std::vector<Nodes> lodgings_without(const Nodes& nodes, std::vector<Nodes> lodgings) {
  std::erase_if(lodgings, [&nodes](const Nodes& homes) {
    return std::any_of(homes.begin(), homes.end(), [&nodes](std::uint32_t home) { return has(nodes, home); });
  });
  return lodgings;
}

class Finder {
 public:
  explicit Finder(const topolet_request& request) : request_(request), nodes_(*request.topology) {}

  /// Each time the node of most devices that have none yet; of equals the one with more free CPUs, then the first.
  Nodes beside_all(std::vector<Nodes> lodgings) const {
    Nodes chosen;
    while (!lodgings.empty()) {
      std::uint32_t best = lodgings.front().front();
      std::pair<std::size_t, std::size_t> most{0, 0};
      for (const std::uint32_t node : nodes_.positions()) {
        const auto count =
            std::count_if(lodgings.begin(), lodgings.end(), [&](const Nodes& homes) { return has(homes, node); });
        const std::pair now{static_cast<std::size_t>(count), free_on(node)};
        if (now.first > 0 && now > most) {
          most = now;
          best = node;
        }
      }
      chosen.push_back(best);
      lodgings = lodgings_without(chosen, std::move(lodgings));
    }
    return chosen;
  }

  /// With the nearest nodes that have free CPUs, until there are enough of these.
  Nodes with_room(Nodes chosen) const {
    std::size_t free = 0;
    for (const std::uint32_t node : chosen) free += free_on(node);
    Nodes others;
    for (const std::uint32_t node : nodes_.positions()) {
      if (!has(chosen, node) && free_on(node) > 0) others.push_back(node);
    }
    const auto away = [&](std::uint32_t node) {
      std::uint64_t sum = 0;
      for (const std::uint32_t from : chosen) sum += nodes_.distance(from, node);
      return sum;
    };
    std::vector<std::pair<std::uint64_t, std::uint32_t>> nearest;
    for (const std::uint32_t node : others) nearest.emplace_back(away(node), node);
    std::sort(nearest.begin(), nearest.end());
    for (const auto& [_, node] : nearest) {
      if (free >= request_.exclusive_cpus) break;
      chosen.push_back(node);
      free += free_on(node);
    }
    return chosen;
  }

  const Nodes& nodes() const { return nodes_.positions(); }

  sdk::Set os_indices(const Nodes& nodes) const {
    sdk::Set set;
    for (const std::uint32_t node : nodes) set.insert(nodes_.os_index(node));
    return set;
  }

 private:
  std::size_t free_on(std::uint32_t node) const {
    return sdk::size_of_both(sdk::nodes(*request_.topology)[node].cpus, request_.ledger->pool);
  }

  const topolet_request& request_;
  const CpuNodes nodes_;
};

}  // namespace

std::vector<sdk::Set> nodes_beside(const topolet_request& request, const Sought& sought) {
  const Finder finder(request);
  std::vector<Nodes> lodgings;
  for (const Device& device : sought.devices) {
    Nodes homes = lodging_of(*request.topology, device.spot, sought.cpu_nodes).homes;
    // What is at home everywhere is so because the machine does not tell.
    if (!homes.empty() && homes.size() < finder.nodes().size()) lodgings.push_back(std::move(homes));
  }
  const Nodes beside = finder.beside_all(std::move(lodgings));
  if (beside.size() < 2) return {};
  std::vector<sdk::Set> sets = {finder.os_indices(beside)};
  const Nodes roomy = finder.with_room(beside);
  if (roomy.size() > beside.size()) sets.push_back(finder.os_indices(roomy));
  return sets;
}

}  // namespace topolet::gpu
