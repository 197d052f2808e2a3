// How much memory and huge pages the nodes have and how much of it is spoken for.
#pragma once

#include <topolet/policy.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace topolet::numa {

/// What the system keeps of each node: "1Gi" of every one, or "0:1Gi,1:512Mi" by OS index.
class ReservedMemory {
 public:
  ReservedMemory() = default;
  /// Throws std::invalid_argument with a line that says what is wrong.
  explicit ReservedMemory(std::string_view text);

  std::int64_t of(std::uint32_t os_index) const;

 private:
  std::int64_t each_ = 0;
  std::map<std::uint32_t, std::int64_t> by_node_;
};

/// Bytes asked for in huge pages, by size of the page.
using HugePages = std::map<std::int64_t, std::int64_t>;

HugePages huge_pages_of(const topolet_demand& demand);

/// What a container asks of memory: its request, or its limit where the request is not known.
std::int64_t memory_of(const topolet_demand& demand);

/// Memory of a set of nodes.
struct Room {
  bool known = true;  ///< false: one of the nodes does not tell its size, so nothing is too much
  std::int64_t capacity = 0;
  std::int64_t free = 0;

  bool could_hold(std::int64_t bytes) const { return !known || bytes <= capacity; }
  bool holds(std::int64_t bytes) const { return !known || bytes <= free; }
};

/// The nodes' memory in one decision. Nodes are named by position in the topology's `nodes`.
class NodeMemory {
 public:
  /// `topology` and `ledger` are borrowed.
  NodeMemory(const topolet_topology& topology, const topolet_ledger& ledger, const ReservedMemory& reserved,
             bool with_memory, const HugePages& asked_pages);

  /// The node whose memory the CPUs of `node` use: the node's own, or of a node without memory the nearest one's.
  std::size_t home(std::size_t node) const { return homes_[node]; }
  /// Of the homes of these nodes together, each counted once.
  Room room(const std::vector<std::uint32_t>& nodes) const;
  Room huge_page_room(const std::vector<std::uint32_t>& nodes, std::int64_t page_bytes) const;
  const Room& room_of(std::size_t node) const { return rooms_[node]; }

 private:
  void find_homes();
  void count_memory(const topolet_ledger& ledger, const ReservedMemory& reserved);
  void count_huge_pages(const topolet_ledger& ledger, std::int64_t page_bytes);
  /// Calls `add(node, part)` for the parts of an amount that an entry has on the nodes.
  template <class Add>
  void divide(const topolet_ledger_entry& entry, std::int64_t bytes, Add add) const;
  Room sum(const std::vector<Room>& rooms, const std::vector<std::uint32_t>& nodes) const;

  const topolet_topology& topology_;
  std::vector<std::size_t> homes_;
  bool homes_are_own_ = true;  ///< every node with CPUs has memory
  std::vector<Room> rooms_;
  std::map<std::int64_t, std::vector<Room>> huge_pages_;
};

/// The memory nodes of a container with `asked` bytes. Those of its CPUs' nodes; if they don't have so much free, the
/// others of `next`, then of the machine, nearest first, until they have. Nothing if all together don't. Only nodes of
/// `open`; memory-only nodes never, but where `open` has no other.
std::optional<sdk::Set> memory_nodes(const topolet_topology& topology, const NodeMemory& memory, std::int64_t asked,
                                     topolet_set cpus, topolet_set next, topolet_set open);

}  // namespace topolet::numa
