#include "plugins/smt/proposals.hpp"

#include <topolet/propose.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>

#include "plugins/smt/isolation.hpp"

namespace topolet::smt {
namespace {

using sdk::Set;

/// A node with free whole cores.
struct NodeRoom {
  std::uint32_t position = 0;      ///< in the topology's nodes
  std::size_t on_whole_cores = 0;  ///< CPUs on free whole cores
  std::size_t free = 0;            ///< CPUs
  std::uint32_t distance = 0;      ///< from the node that neighbours are collected for
};
using Rooms = std::vector<NodeRoom>;

class NodeSetBuilder {
 public:
  NodeSetBuilder(const topolet_request& request, const sdk::CoreMap& cores, const Demand& demand)
      : request_(request),
        demand_(demand),
        nodes_(sdk::nodes(*request.topology)),
        free_(sdk::union_of_candidates(request, &topolet_candidate::usable)),
        whole_(cores.on_whole_cores(free_.view())),
        isolation_(cores, request, demand) {}

  /// The pod's nodes only, if they have enough for the container.
  Rooms rooms() const {
    Rooms all;
    Rooms of_pod;
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      const topolet_node& node = nodes_[i];
      if (node.memory_only != 0) continue;
      const NodeRoom room{i, sdk::size_of_both(whole_.view(), node.cpus), sdk::size_of_both(free_.view(), node.cpus),
                          0};
      if (room.on_whole_cores == 0) continue;
      all.push_back(room);
      if (topolet_set_has(request_.workload->pod_nodes, node.os_index) != 0) of_pod.push_back(room);
    }
    return first_with_enough(of_pod).empty() ? all : of_pod;
  }

  /// The first of them that have enough CPUs together; none if all together have too few.
  Rooms first_with_enough(const Rooms& order) const {
    std::size_t on_whole_cores = 0;
    std::size_t free = 0;
    for (auto room = order.begin(); room != order.end(); ++room) {
      on_whole_cores += room->on_whole_cores;
      free += room->free;
      if (on_whole_cores < demand_.exclusive_cpus) continue;
      if (free >= demand_.exclusive_cpus + demand_.rest_of_pod_cpus) return {order.begin(), room + 1};
    }
    return {};
  }

  /// A node and its nearest neighbours; of equally near ones those with the most whole cores.
  Rooms nearest_to(const NodeRoom& center, Rooms rooms) const {
    const auto nodes = std::size_t{request_.topology->node_count};
    for (NodeRoom& room : rooms) {
      const bool is_center = room.position == center.position;
      room.distance = is_center ? 0 : request_.topology->distances[center.position * nodes + room.position];
    }
    std::sort(rooms.begin(), rooms.end(), [](const NodeRoom& a, const NodeRoom& b) {
      return std::tuple(a.distance, b.on_whole_cores, a.position) <
             std::tuple(b.distance, a.on_whole_cores, b.position);
    });
    return first_with_enough(rooms);
  }

  /// Enough CPUs may still be too few: cores may have to leave too many of their threads idle.
  bool suffice(const Rooms& rooms) const {
    if (!demand_.isolated) return true;
    Set cpus;
    for (const NodeRoom& room : rooms) cpus |= Set(nodes_[room.position].cpus);
    return isolation_.fits((cpus & free_).view(), cpus & whole_);
  }

  Set os_indices(const Rooms& rooms) const {
    Set nodes;
    for (const NodeRoom& room : rooms) nodes.insert(nodes_[room.position].os_index);
    return nodes;
  }

 private:
  const topolet_request& request_;
  const Demand& demand_;
  const sdk::Array<topolet_node> nodes_;
  const Set free_;
  const Set whole_;
  const Isolation isolation_;
};

/// The additional nodes to try if the cores of the fewest nodes do not suffice.
constexpr std::size_t kMoreNodesTried = 4;

Rooms fewest(const NodeSetBuilder& builder, Rooms rooms) {
  std::stable_sort(rooms.begin(), rooms.end(),
                   [](const NodeRoom& a, const NodeRoom& b) { return a.on_whole_cores > b.on_whole_cores; });
  Rooms chosen = builder.first_with_enough(rooms);
  for (std::size_t more = 0; !chosen.empty() && !builder.suffice(chosen); ++more) {
    if (more == kMoreNodesTried || chosen.size() == rooms.size()) return {};
    chosen.push_back(rooms[chosen.size()]);
  }
  return chosen;
}

/// The smallest first, and of these the closest. Some may be the same.
std::vector<Rooms> neighbourhoods(const NodeSetBuilder& builder, const Rooms& rooms) {
  std::vector<std::tuple<std::size_t, std::uint64_t, std::size_t>> order;
  std::vector<Rooms> all;
  for (const NodeRoom& center : rooms) {
    Rooms set = builder.nearest_to(center, rooms);
    if (set.empty()) continue;
    std::uint64_t distance = 0;
    for (const NodeRoom& room : set) distance += room.distance;
    order.emplace_back(set.size(), distance, all.size());
    all.push_back(std::move(set));
  }
  std::sort(order.begin(), order.end());
  std::vector<Rooms> sorted;
  for (const auto& place : order) sorted.push_back(std::move(all[std::get<2>(place)]));
  return sorted;
}

}  // namespace

std::vector<Set> node_sets_of_whole_cores(const topolet_request& request, const sdk::CoreMap& cores,
                                          const Demand& demand) {
  const NodeSetBuilder builder(request, cores, demand);
  const Rooms rooms = builder.rooms();
  const Rooms emptiest = fewest(builder, rooms);
  if (emptiest.size() < 2) return {};
  std::vector<Set> sets = {builder.os_indices(emptiest)};
  for (const Rooms& near : neighbourhoods(builder, rooms)) {
    if (sets.size() == TOPOLET_PROPOSE_MAX_SETS) break;
    Set nodes = builder.os_indices(near);
    if (std::find(sets.begin(), sets.end(), nodes) == sets.end() && builder.suffice(near))
      sets.push_back(std::move(nodes));
  }
  return sets;
}

}  // namespace topolet::smt
