#include "plugins/gpu/proposals.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "plugins/gpu/locality.hpp"

namespace topolet::gpu {
namespace {

/// Returns the devices' local nodes that do not contain any of `nodes`.
std::vector<Nodes> not_covered_by(const Nodes& nodes, std::vector<Nodes> uncovered) {
  std::erase_if(uncovered, [&nodes](const Nodes& local_nodes) {
    return std::any_of(local_nodes.begin(), local_nodes.end(),
                       [&nodes](std::uint32_t node) { return contains(nodes, node); });
  });
  return uncovered;
}

class NodeSetBuilder {
 public:
  explicit NodeSetBuilder(const topolet_request& request)
      : request_(request),
        nodes_(*request.topology),
        free_(sdk::union_of_candidates(request, &topolet_candidate::usable)) {}

  /// Adds node by node, until each device is local to one: next is the one local to most of the uncovered devices;
  /// among equals the one with most free CPUs, then the first.
  Nodes covering_all(std::vector<Nodes> uncovered) const {
    Nodes chosen;
    while (!uncovered.empty()) {
      std::uint32_t best = uncovered.front().front();
      std::pair<std::size_t, std::size_t> most{0, 0};
      for (const std::uint32_t node : nodes_.positions()) {
        const auto count = std::count_if(uncovered.begin(), uncovered.end(),
                                         [&](const Nodes& local_nodes) { return contains(local_nodes, node); });
        const std::pair rank{static_cast<std::size_t>(count), free_on(node)};
        if (rank.first > 0 && rank > most) {
          most = rank;
          best = node;
        }
      }
      chosen.push_back(best);
      uncovered = not_covered_by(chosen, std::move(uncovered));
    }
    return chosen;
  }

  /// Adds the nearest nodes with free CPUs until the container has enough.
  Nodes with_enough_cpus(Nodes chosen) const {
    std::size_t free = 0;
    for (const std::uint32_t node : chosen) free += free_on(node);
    Nodes others;
    for (const std::uint32_t node : nodes_.positions()) {
      if (!contains(chosen, node) && free_on(node) > 0) others.push_back(node);
    }
    const auto total_distance = [&](std::uint32_t node) {
      std::uint64_t sum = 0;
      for (const std::uint32_t from : chosen) sum += nodes_.distance(from, node);
      return sum;
    };
    std::vector<std::pair<std::uint64_t, std::uint32_t>> nearest;
    for (const std::uint32_t node : others) nearest.emplace_back(total_distance(node), node);
    std::sort(nearest.begin(), nearest.end());
    for (const auto& [_, node] : nearest) {
      if (free >= request_.exclusive_cpus) break;
      chosen.push_back(node);
      free += free_on(node);
    }
    return chosen;
  }

  const CpuNodes& nodes() const { return nodes_; }

 private:
  std::size_t free_on(std::uint32_t node) const {
    return sdk::size_of_both(sdk::nodes(*request_.topology)[node].cpus, free_.view());
  }

  const topolet_request& request_;
  const CpuNodes nodes_;
  const sdk::Set free_;  ///< what the container may have: CPUs of the pool, or those that the kernel isolates
};

}  // namespace

std::vector<sdk::Set> node_sets_near_devices(const topolet_request& request, const ContainerDevices& container) {
  const NodeSetBuilder builder(request);
  const CpuNodes& nodes = builder.nodes();
  std::vector<Nodes> local_nodes_of_devices;
  for (const Device& device : container.devices) {
    Nodes local_nodes = device_locality(*request.topology, device.ref, container.cpu_nodes).local_nodes;
    // A device that is local to all nodes is one whose place the machine does not tell.
    const bool is_located = !local_nodes.empty() && local_nodes.size() < nodes.positions().size();
    if (is_located) local_nodes_of_devices.push_back(std::move(local_nodes));
  }
  const Nodes covering = builder.covering_all(std::move(local_nodes_of_devices));
  if (covering.size() < 2) return {};
  std::vector<sdk::Set> sets = {nodes.os_indices(covering)};
  const Nodes with_capacity = builder.with_enough_cpus(covering);
  if (with_capacity.size() > covering.size()) sets.push_back(nodes.os_indices(with_capacity));
  return sets;
}

}  // namespace topolet::gpu
