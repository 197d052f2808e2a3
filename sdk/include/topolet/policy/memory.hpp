// Which nodes have no memory of their own. See <topolet/policy.hpp>.
#pragma once

#include <topolet/policy/views.hpp>

#include <algorithm>
#include <cstddef>

namespace topolet::sdk {

/// The nodes that have CPUs and no memory, as a die whose slots are empty: what runs there has all of its memory on
/// other nodes. Where the machine tells the size of no node with CPUs, each is taken to have some. Borrows nothing.
class NodesWithoutMemory {
 public:
  explicit NodesWithoutMemory(const topolet_topology& topology) {
    const auto all = sdk::nodes(topology);
    sizes_are_known_ = std::any_of(all.begin(), all.end(), has_memory);
    for (const topolet_node& node : all) {
      if (sizes_are_known_ && node.memory_only == 0 && !has_memory(node)) nodes_.insert(node.os_index);
    }
  }

  /// True for a node whose own CPUs find memory there. Of memory-only nodes, false.
  static bool has_memory(const topolet_node& node) { return node.memory_only == 0 && node.memory_bytes > 0; }

  /// True if the machine tells the size of some node with CPUs.
  bool sizes_are_known() const { return sizes_are_known_; }
  /// By OS index.
  const Set& nodes() const { return nodes_; }
  /// Counts those among `nodes`. `has_others`: beside CPUs outside any node, which are one more without memory of its
  /// own.
  std::size_t count_in(topolet_set nodes, bool has_others) const {
    const std::size_t others = has_others && sizes_are_known_ ? 1 : 0;
    return others + (nodes_.empty() ? 0 : size_of_both(nodes, nodes_.view()));
  }

 private:
  bool sizes_are_known_ = false;
  Set nodes_;
};

}  // namespace topolet::sdk
