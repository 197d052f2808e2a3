// How much memory and how many huge pages the nodes have, and how much of them is still free.
#pragma once

#include <topolet/policy.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/numa/node_booking.hpp"

namespace topolet::numa {

/// Memory of each node that containers may not use: "1Gi" on every node, or "0:1Gi,1:512Mi" by OS index of the node.
class ReservedMemory {
 public:
  ReservedMemory() = default;
  /// Throws std::invalid_argument with one line that says what is wrong.
  explicit ReservedMemory(std::string_view text);

  std::int64_t of(std::uint32_t os_index) const;
  /// Returns the named nodes that the machine does not have.
  std::vector<std::uint32_t> nodes_missing_on(const topolet_topology& machine) const;

 private:
  std::int64_t each_ = 0;
  std::map<std::uint32_t, std::int64_t> by_node_;
};

/// Bytes requested in huge pages, by page size in bytes.
using HugePages = std::map<std::int64_t, std::int64_t>;

HugePages huge_pages_of(const topolet_demand& demand);

/// The memory a container needs in bytes: its request, or its limit where the request is unknown.
std::int64_t memory_of(const topolet_demand& demand);

/// Memory, or huge pages of one size, on a set of nodes.
struct MemoryAmount {
  bool known = true;  ///< false: the size of one of the nodes is unknown, so everything fits
  std::int64_t capacity_bytes = 0;
  std::int64_t free_bytes = 0;

  bool fits(std::int64_t bytes) const { return !known || bytes <= free_bytes; }
  bool fits_if_empty(std::int64_t bytes) const { return !known || bytes <= capacity_bytes; }
};

/// Memory, or huge pages of one size, of each node.
struct AmountByNode {
  std::vector<bool> known;
  std::vector<std::int64_t> capacity_bytes;
  NodeBooking booking;

  MemoryAmount on(const std::vector<std::size_t>& nodes) const;
};

/// The memory of all nodes in one decision. Nodes are named by position in the topology's `nodes`.
class NodeMemory {
 public:
  /// Borrows `topology` and `ledger`. Without `with_memory` only huge pages are counted, of the sizes in
  /// `requested_pages`.
  NodeMemory(const topolet_topology& topology, const topolet_ledger& ledger, const ReservedMemory& reserved,
             bool with_memory, const HugePages& requested_pages);

  /// The node whose memory the CPUs of `node` use: itself, or the nearest node with memory if it has none.
  std::size_t local_memory_node(std::size_t node) const { return local_memory_nodes_[node]; }
  /// How many of these nodes have CPUs and no memory of their own. `has_others`: with CPUs outside any node, which are
  /// one more.
  std::size_t count_without(topolet_set nodes, bool has_others) const {
    return without_memory_.count_in(nodes, has_others);
  }
  /// Returns the memory local to these nodes together; a memory node that is local to several of them counts once.
  MemoryAmount amount(const std::vector<std::uint32_t>& nodes) const;
  MemoryAmount huge_pages(const std::vector<std::uint32_t>& nodes, std::int64_t page_bytes) const;
  /// Returns the memory on these nodes themselves, which may be local to others. A node counts once.
  MemoryAmount amount_on(const std::vector<std::size_t>& nodes) const { return memory_.on(nodes); }
  MemoryAmount huge_pages_on(const std::vector<std::size_t>& nodes, std::int64_t page_bytes) const;

 private:
  void find_local_memory_nodes();
  void count_memory(const topolet_ledger& ledger, const ReservedMemory& reserved);
  void count_huge_pages(const topolet_ledger& ledger, std::int64_t page_bytes);
  /// Sets known sizes and capacities of `memory_`, and returns what is left beside `used`, by node.
  std::vector<std::int64_t> room_beside(const std::vector<std::int64_t>& used, const ReservedMemory& reserved);
  /// The nodes whose memory is local to these, each once, in ascending order.
  std::vector<std::size_t> local_to(std::vector<std::size_t> nodes) const;
  std::vector<std::size_t> memory_nodes_of(const std::vector<std::uint32_t>& nodes) const;
  /// Returns the nodes to which the entry's memory is bound, in ascending order.
  std::vector<std::size_t> bound_nodes(const topolet_ledger_entry& entry) const;
  /// Books huge pages of an entry that is bound to no nodes, in parts as large as the parts of its CPUs.
  void book_beside_cpus(const topolet_ledger_entry& entry, std::int64_t bytes, NodeBooking& booking) const;

  const topolet_topology& topology_;
  std::vector<sdk::NarrowSet> cpus_;             ///< by node
  std::vector<std::size_t> local_memory_nodes_;  ///< by node
  const sdk::NodesWithoutMemory without_memory_;
  AmountByNode memory_;
  std::map<std::int64_t, AmountByNode> huge_pages_;  ///< by page size in bytes
};

struct BindingRequest {
  std::int64_t bytes = 0;
  HugePages huge_pages = {};
  topolet_set cpus = {};       ///< the container's
  topolet_set preferred = {};  ///< nodes to add first if those local to the CPUs do not have enough
  topolet_set allowed = {};    ///< no other nodes may be used
};

/// The memory nodes to bind a container to: those local to its CPUs; if these have too little memory or huge pages
/// free, the `preferred` ones, then the others of the machine that have some, nearest first, until there is enough. For
/// CPUs outside any node the nodes of their packages are the nearest, and of these the emptiest. Nothing if all
/// together have too little. Memory-only nodes are used only where all allowed nodes are.
std::optional<sdk::Set> choose_memory_nodes(const topolet_topology& topology, const NodeMemory& memory,
                                            const BindingRequest& request);

}  // namespace topolet::numa
