#include "tests/bench/kubelet_model.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <utility>

namespace topolet::bench {
namespace {

constexpr std::size_t kMostNodes = 16;

std::vector<CpuSet> cpus_of_nodes(const topology::Topology& topology) {
  std::vector<CpuSet> nodes;
  for (const topology::Node& node : topology.nodes) {
    if (!node.memory_only) nodes.push_back(node.cpus);
  }
  return nodes;
}

/// Takes CPUs step by step, as cpuAccumulator in the kubelet does.
class Accumulator {
 public:
  Accumulator(const topology::Topology& topology, CpuSet available, std::size_t count)
      : cores_(topology.cores),
        outer_(topology.packages),
        inner_(cpus_of_nodes(topology)),
        available_(std::move(available)),
        count_(count) {
    // Nodes that are as large as packages or larger come first.
    if (outer_.size() >= inner_.size()) std::swap(outer_, inner_);
  }

  CpuSet take() {
    take_whole(sorted(outer_));
    take_whole(inner_in_order());
    take_whole(cores_in_order());
    for (const CpuSet& core : cores_in_order()) {
      for (const std::uint32_t cpu : core& available_) take_whole({CpuSet{cpu}});
    }
    return taken_;
  }

 private:
  /// Those with the fewest available CPUs first, then the lowest.
  std::vector<CpuSet> sorted(std::vector<CpuSet> groups) const {
    const auto available = [this](const CpuSet& group) { return (group & available_).size(); };
    std::stable_sort(groups.begin(), groups.end(),
                     [&](const CpuSet& a, const CpuSet& b) { return available(a) < available(b); });
    return groups;
  }

  std::vector<CpuSet> within(const CpuSet& group, const std::vector<CpuSet>& smaller) const {
    std::vector<CpuSet> found;
    for (const CpuSet& candidate : smaller) {
      if (candidate.intersects(group)) found.push_back(candidate);
    }
    return sorted(std::move(found));
  }

  std::vector<CpuSet> inner_in_order() const {
    std::vector<CpuSet> all;
    for (const CpuSet& outer : sorted(outer_)) {
      for (CpuSet& inner : within(outer, inner_)) all.push_back(std::move(inner));
    }
    return all;
  }

  std::vector<CpuSet> cores_in_order() const {
    std::vector<CpuSet> all;
    for (const CpuSet& inner : inner_in_order()) {
      for (CpuSet& core : within(inner, cores_)) all.push_back(std::move(core));
    }
    return all;
  }

  void take_whole(const std::vector<CpuSet>& groups) {
    for (const CpuSet& group : groups) {
      if (group.size() > count_ - taken_.size() || !group.is_subset_of(available_)) continue;
      taken_ |= group;
      available_ -= group;
    }
  }

  const std::vector<CpuSet>& cores_;
  std::vector<CpuSet> outer_;  ///< packages or nodes, whichever are larger
  std::vector<CpuSet> inner_;
  CpuSet available_;
  const std::size_t count_;
  CpuSet taken_;
};

}  // namespace

CpuSet take_by_topology(const topology::Topology& topology, CpuSet available, std::size_t count) {
  if (available.size() < count) return {};
  return Accumulator(topology, std::move(available), count).take();
}

KubeletModel::KubeletModel(std::shared_ptr<const topology::Topology> topology)
    : topology_(std::move(topology)), free_(topology_->allowed) {
  const std::vector<CpuSet> nodes = cpus_of_nodes(*topology_);
  if (nodes.size() > kMostNodes) throw std::invalid_argument("the model of the kubelet is for at most 16 NUMA nodes");
  std::vector<std::uint32_t> masks;
  for (std::uint32_t mask = 1; mask < 1U << nodes.size(); ++mask) masks.push_back(mask);
  std::stable_sort(masks.begin(), masks.end(), [](auto a, auto b) { return std::popcount(a) < std::popcount(b); });
  for (const std::uint32_t mask : masks) {
    CpuSet& cpus = masks_.emplace_back();
    for (std::size_t node = 0; node < nodes.size(); ++node) {
      if ((mask >> node & 1U) != 0) cpus |= nodes[node];
    }
  }
}

CpuSet KubeletModel::narrowest_with(std::size_t cpus) const {
  for (const CpuSet& mask : masks_) {
    if (CpuSet free = mask & free_; free.size() >= cpus) return free;
  }
  return {};
}

std::optional<CpuSet> KubeletModel::admit(std::size_t pod, std::size_t cpus) {
  CpuSet taken = take_by_topology(*topology_, narrowest_with(cpus), cpus);
  if (taken.empty()) return std::nullopt;
  free_ -= taken;
  pods_[pod] = taken;
  return taken;
}

void KubeletModel::end(std::size_t pod) {
  const auto found = pods_.find(pod);
  if (found == pods_.end()) return;
  free_ |= found->second;
  pods_.erase(found);
}

}  // namespace topolet::bench
