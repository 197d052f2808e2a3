#include "plugins/numa/node_booking.hpp"

#include <algorithm>
#include <deque>
#include <numeric>
#include <optional>
#include <utility>

namespace topolet::numa {

NodeBooking::NodeBooking(std::vector<std::int64_t> capacity) : free_(std::move(capacity)) {}

void NodeBooking::book(std::size_t node, std::int64_t bytes) { take({node}, bytes); }

void NodeBooking::book(const std::vector<std::size_t>& nodes, std::int64_t bytes) {
  const auto same = std::find_if(groups_.begin(), groups_.end(), [&](const Group& g) { return g.nodes == nodes; });
  const auto position = static_cast<std::size_t>(same - groups_.begin());
  if (same == groups_.end()) groups_.push_back({nodes, std::vector<std::int64_t>(nodes.size(), 0)});
  const std::vector<std::int64_t> taken = take(nodes, bytes);
  for (std::size_t i = 0; i < taken.size(); ++i) groups_[position].bytes[i] += taken[i];
}

std::int64_t NodeBooking::free_on(const std::vector<std::size_t>& nodes) const {
  const auto sum = [](const std::vector<std::int64_t>& parts) {
    return std::accumulate(parts.begin(), parts.end(), std::int64_t{0},
                           [](std::int64_t a, std::int64_t b) { return std::min(kUnlimited, a + b); });
  };
  if (others_may_yield(nodes)) return sum(NodeBooking(*this).take(nodes, kUnlimited));
  std::vector<std::int64_t> here;
  here.reserve(nodes.size());
  for (const std::size_t node : nodes) here.push_back(free_[node]);
  return sum(here);
}

bool NodeBooking::others_may_yield(const std::vector<std::size_t>& nodes) const {
  const auto is_here = [&](std::size_t node) { return std::find(nodes.begin(), nodes.end(), node) != nodes.end(); };
  return std::any_of(groups_.begin(), groups_.end(), [&](const Group& group) {
    const auto on_both_sides = std::count_if(group.nodes.begin(), group.nodes.end(), is_here);
    return on_both_sides > 0 && static_cast<std::size_t>(on_both_sides) < group.nodes.size();
  });
}

std::int64_t& NodeBooking::Group::bytes_on(std::size_t node) {
  return bytes[static_cast<std::size_t>(std::find(nodes.begin(), nodes.end(), node) - nodes.begin())];
}

std::vector<std::int64_t> NodeBooking::take(const std::vector<std::size_t>& nodes, std::int64_t bytes) {
  std::vector<std::int64_t> taken(nodes.size(), 0);
  while (bytes > 0) {
    const std::optional<Way> way = find_way(nodes);
    if (!way) break;
    std::int64_t part = std::min(bytes, free_[way->room]);
    for (const Move& move : way->moves) part = std::min(part, groups_[move.group].bytes_on(move.from));
    for (const Move& move : way->moves) {
      groups_[move.group].bytes_on(move.from) -= part;
      groups_[move.group].bytes_on(move.to) += part;
    }
    free_[way->room] -= part;
    taken[way->first] += part;
    bytes -= part;
  }
  return taken;
}

std::optional<NodeBooking::Way> NodeBooking::find_way(const std::vector<std::size_t>& nodes) const {
  std::vector<std::optional<Way>> ways(free_.size());
  std::deque<std::size_t> reached;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    ways[nodes[i]] = Way{i, nodes[i], {}};
    reached.push_back(nodes[i]);
  }
  for (; !reached.empty(); reached.pop_front()) {
    const std::size_t from = reached.front();
    if (free_[from] > 0) return std::move(ways[from]);
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const Group& group = groups_[g];
      for (std::size_t i = 0; i < group.nodes.size(); ++i) {
        if (group.nodes[i] != from || group.bytes[i] == 0) continue;
        for (const std::size_t to : group.nodes) {
          if (ways[to]) continue;
          ways[to] = ways[from];
          ways[to]->room = to;
          ways[to]->moves.push_back({g, from, to});
          reached.push_back(to);
        }
      }
    }
  }
  return std::nullopt;
}

}  // namespace topolet::numa
