// The CPUs that are free, counted by core, cache, node and package, and the steps in which the kubelet packs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plugins/numa/layout.hpp"

namespace topolet::numa {

/// The choice between whole cores and CPUs of different cores; with kIdleFirst, those of the least used cores come
/// first.
enum class AcrossCores : std::uint8_t { kNo, kYes, kIdleFirst };

/// CPUs are named by their position in the layout, which must outlive this. Wherever groups are ordered, those with the
/// fewest free CPUs come first, the lowest first among equals, and groups without free CPUs are left out.
class FreeCpus {
 public:
  FreeCpus(const Layout& layout, const std::vector<std::uint32_t>& cpus);

  std::size_t size() const { return size_; }
  std::size_t in_node(std::uint32_t node) const { return free_by_node_[node]; }
  /// Ascending.
  std::vector<std::uint32_t> cpus_of_node(std::uint32_t node) const;
  /// The nodes with free CPUs, in order; package by package where packages are larger than nodes.
  std::vector<std::uint32_t> nodes() const;

  /// Takes `wanted` CPUs, or all if there are fewer: whole nodes and packages, whole caches if `by_cache`, whole cores
  /// unless `across_cores`, then single CPUs; with it, first one of each core.
  std::vector<std::uint32_t> take_packed(std::size_t wanted, bool by_cache, AcrossCores across_cores);
  /// Takes whole nodes and packages only, as many as fit into `wanted`.
  std::vector<std::uint32_t> take_whole_nodes(std::size_t wanted);
  void remove(const std::vector<std::uint32_t>& cpus);

 private:
  struct Selection {
    std::size_t still_wanted;
    std::vector<std::uint32_t> cpus;
  };
  using Groups = std::vector<std::uint32_t>;

  /// Nodes are the larger groups where there are as many packages as nodes, or more.
  bool nodes_first() const { return layout_.package_count >= layout_.node_count; }
  Groups packages() const;
  Groups caches() const;
  Groups cores() const;
  /// All free CPUs, package by package: the lowest of each core, then the second of each, and so on.
  Groups one_of_each_core_first(bool idle_first) const;
  Groups core_by_core() const;
  /// The groups of `inner` with free CPUs, each once, in the order of the `outer` groups that they are in. `counts`:
  /// free CPUs by group of `inner`.
  Groups inside(const Partition& outer, const Groups& outer_order, const Partition& inner, const Groups& counts) const;

  void take(std::uint32_t pu, Selection& selection);
  void take_whole(const Partition& division, const Groups& counts, const Groups& order, Selection& selection);
  void take_nodes_and_packages(Selection& selection);
  void take_in_one_cache(std::uint32_t cache, Selection& selection);
  void take_by_cache(Selection& selection);

  const Layout& layout_;
  std::vector<std::uint8_t> is_free_;  ///< by position
  std::size_t size_ = 0;
  Groups free_by_core_, free_by_cache_, free_by_node_, free_by_package_;  ///< how many CPUs
};

}  // namespace topolet::numa
