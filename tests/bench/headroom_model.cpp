#include "tests/bench/headroom_model.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace topolet::bench {

HeadroomModel::HeadroomModel(std::vector<std::uint32_t> nodes, std::vector<std::size_t> node_of_gpu)
    : node_of_gpu_(std::move(node_of_gpu)) {
  for (const std::uint32_t cpus : nodes) nodes_.push_back({.free = cpus});
  for (const std::size_t node : node_of_gpu_) ++nodes_[node].unused_gpus;
  for (Node& node : nodes_) {
    if (node.unused_gpus > 0) node.cpus_by_gpu = node.free / node.unused_gpus;
  }
}

std::size_t HeadroomModel::emptiest() const {
  const auto most = std::max_element(nodes_.begin(), nodes_.end(), [](const Node& a, const Node& b) {
    return std::pair(a.free > 0, a.beside_headroom()) < std::pair(b.free > 0, b.beside_headroom());
  });
  if (most->free == 0) throw std::logic_error("no CPU is free");
  return static_cast<std::size_t>(most - nodes_.begin());
}

std::size_t HeadroomModel::best_node(std::int64_t cpus) const {
  std::size_t best = nodes_.size();
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    if (nodes_[node].beside_headroom() < cpus) continue;
    if (best == nodes_.size() || nodes_[node].free < nodes_[best].free) best = node;
  }
  if (best != nodes_.size()) return best;
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    if (nodes_[node].free < cpus) continue;
    if (best == nodes_.size() || nodes_[node].beside_headroom() > nodes_[best].beside_headroom()) best = node;
  }
  return best == nodes_.size() ? emptiest() : best;
}

bool HeadroomModel::admit(std::size_t pod, const Arrival& arrival) {
  std::int64_t left = arrival.cpus();
  if (arrival.gpu) --nodes_[node_of_gpu_[*arrival.gpu]].unused_gpus;
  Pod& placed = pods_[pod] = {arrival, std::vector<std::int64_t>(nodes_.size(), 0)};
  const std::size_t first = arrival.gpu ? node_of_gpu_[*arrival.gpu] : best_node(left);
  const auto take = [&](std::size_t node, std::int64_t cpus) {
    nodes_[node].free -= cpus;
    placed.cpus[node] += cpus;
    left -= cpus;
  };
  take(first, std::min(left, nodes_[first].free));
  while (left > 0) take(emptiest(), 1);
  return placed.cpus[first] == arrival.cpus();
}

void HeadroomModel::end(std::size_t pod) {
  const auto found = pods_.find(pod);
  if (found == pods_.end()) return;
  for (std::size_t node = 0; node < nodes_.size(); ++node) nodes_[node].free += found->second.cpus[node];
  if (const auto gpu = found->second.arrival.gpu) ++nodes_[node_of_gpu_[*gpu]].unused_gpus;
  pods_.erase(found);
}

}  // namespace topolet::bench
