// CPUs that can be taken, counted by core, cache, node and package; the steps of the kubelet's packing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plugins/numa/layout.hpp"

namespace topolet::numa {

/// CPUs by position in the layout, which must outlive it. In every order the groups with fewest free CPUs come first,
/// then the lowest; groups without free CPUs are in none.
class FreeCpus {
 public:
  FreeCpus(const Layout& layout, const std::vector<std::uint32_t>& cpus);

  std::size_t size() const { return size_; }
  std::size_t in_node(std::uint32_t node) const { return in_nodes_[node]; }
  /// Ascending.
  std::vector<std::uint32_t> cpus_of_node(std::uint32_t node) const;
  /// Those of a package that has fewer free CPUs come first, unless packages are no larger than nodes.
  std::vector<std::uint32_t> nodes() const;

  /// Takes `wanted` CPUs, packed: whole nodes and packages, whole caches if `by_cache`, whole cores unless
  /// `across_cores`, then single ones. Takes all if there are fewer.
  std::vector<std::uint32_t> take_packed(std::size_t wanted, bool by_cache, bool across_cores);
  /// Only whole nodes and packages, as far as they fit.
  std::vector<std::uint32_t> take_whole_nodes(std::size_t wanted);
  void remove(const std::vector<std::uint32_t>& cpus);

 private:
  struct Taking {
    std::size_t wanted;
    std::vector<std::uint32_t> cpus;
  };
  using Groups = std::vector<std::uint32_t>;

  /// As many packages as nodes, or more: then nodes are the larger groups.
  bool nodes_first() const { return layout_.package_count >= layout_.node_count; }
  Groups packages() const;
  Groups caches() const;
  Groups cores() const;
  Groups single_cpus(bool across_cores) const;
  /// The groups of `inner` with free CPUs in the `outer` ones, one outer group after the other, each once.
  Groups inside(const Division& outer, const Groups& outer_order, const Division& inner, const Groups& counts) const;

  void take(std::uint32_t pu, Taking& taking);
  void take_whole(const Division& division, const Groups& counts, const Groups& order, Taking& taking);
  void take_nodes_and_packages(Taking& taking);
  void take_in_one_cache(std::uint32_t cache, Taking& taking);
  void take_by_cache(Taking& taking);

  const Layout& layout_;
  std::vector<std::uint8_t> free_;
  std::size_t size_ = 0;
  Groups in_cores_, in_caches_, in_nodes_, in_packages_;
};

}  // namespace topolet::numa
