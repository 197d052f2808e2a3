// The memory left on nodes when containers may have theirs on any of several nodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace topolet::numa {

/// Bytes of each node that are booked. Nodes are named by position.
///
/// Nobody knows on which of its nodes a container that is bound to several has its memory. It may be on any of them, so
/// for every set of nodes, the containers bound to nodes of that set alone must fit on it together. The booking finds
/// for each of them where its memory could be so that all of it fits, which is a maximum flow (Edmonds-Karp): what a
/// node has not left counts on the others.
class NodeBooking {
 public:
  static constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max() / 4;

  NodeBooking() = default;
  /// `capacity`: bytes by node; kUnlimited where it is not known.
  explicit NodeBooking(std::vector<std::int64_t> capacity);

  /// On this node and no other. More than there is leaves nothing.
  void book(std::size_t node, std::int64_t bytes);
  /// On any of these nodes, which are in ascending order. More than there is leaves nothing.
  void book(const std::vector<std::size_t>& nodes, std::int64_t bytes);

  /// How much a container that is bound to these nodes can have of them, at most.
  std::int64_t free_on(const std::vector<std::size_t>& nodes) const;

 private:
  /// Containers that are bound to the same nodes.
  struct Group {
    std::vector<std::size_t> nodes;
    std::vector<std::int64_t> bytes;  ///< on each of them, in their order

    std::int64_t& bytes_on(std::size_t node);
  };
  /// Memory of a group moves.
  struct Move {
    std::size_t group = 0;
    std::size_t from = 0;
    std::size_t to = 0;
  };
  /// How room on one node becomes room on another, by moving memory of one group after the other.
  struct Way {
    std::size_t first = 0;  ///< the node that gains it, by position in those that were asked for
    std::size_t room = 0;   ///< the node that has it
    std::vector<Move> moves;
  };

  /// Returns true if memory of others is on these nodes and could be on others instead.
  bool others_may_yield(const std::vector<std::size_t>& nodes) const;
  /// Takes as much as there is, up to `bytes`. Returns what it took, by position in `nodes`.
  std::vector<std::int64_t> take(const std::vector<std::size_t>& nodes, std::int64_t bytes);
  /// Finds the shortest way to any of `nodes`; nothing if no room can be reached.
  std::optional<Way> find_way(const std::vector<std::size_t>& nodes) const;

  std::vector<std::int64_t> free_;  ///< by node
  std::vector<Group> groups_;
};

}  // namespace topolet::numa
