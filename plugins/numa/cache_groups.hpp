// Groups of CPUs that share a cache with CPUs of other cores, and the free CPUs of each such cache.
#pragma once

#include <topolet/policy.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace topolet::numa {

/// The groups of CPUs that are to be kept together: those of one last-level cache within one node. On a machine where
/// no node has more than one such cache, the clusters of cores within it that share a cache of a lower level (such as
/// an L2), where there are any. Borrows nothing.
class CacheGroups {
 public:
  explicit CacheGroups(const topolet_topology& topology);

  /// The group of an online CPU; CPUs that share no such cache are one group in each node.
  std::uint32_t group_of(std::uint32_t cpu) const { return cpu < group_by_cpu_.size() ? group_by_cpu_[cpu] : 0; }
  std::size_t group_count() const { return group_count_; }
  /// Returns true if some node has more than one group; if not, groups and nodes are the same.
  bool divide_nodes() const { return divide_nodes_; }

 private:
  void group_by_node_and(const topolet_topology& topology, const std::vector<std::uint32_t>& cache_by_cpu);

  std::vector<std::uint32_t> group_by_cpu_;  ///< by OS index
  std::size_t group_count_ = 0;
  bool divide_nodes_ = false;
};

/// The caches that are needed to serve a request from some nodes.
struct CacheFit {
  std::size_t caches = 0;  ///< the fewest that have as many free CPUs
  std::size_t rest = 0;    ///< free CPUs that would be left in the last of them: those are harder to use afterwards
};

/// The free CPUs of each cache, node by node.
class FreeByCache {
 public:
  FreeByCache(const topolet_topology& topology, const CacheGroups& groups, topolet_set free);

  /// For CPUs of these nodes, given by position in the topology, and with `outside_nodes` also those that belong to no
  /// node. Where there are too few, the fit of all there are.
  CacheFit fit(const std::vector<std::uint32_t>& nodes, bool outside_nodes, std::size_t wanted) const;

 private:
  /// How many CPUs are free, by cache, for each position of a node; at the end for CPUs outside any node. The most
  /// first.
  std::vector<std::vector<std::size_t>> by_node_;
};

}  // namespace topolet::numa
