// The memory that a container leaves behind when it moves to other NUMA nodes. Plain values.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/base/index_set.hpp"

namespace topolet::topology {
struct Topology;
}

namespace topolet::engine {

struct Change;

/// A container has moved away from the CPUs of `nodes`, and had memory there.
struct MemoryCost {
  NodeSet nodes;
  std::optional<std::int64_t> bytes;  ///< none: the kernel does not tell
  bool follows = false;               ///< the kernel is to move it, in a while; otherwise it stays

  friend bool operator==(const MemoryCost&, const MemoryCost&) = default;
};

/// Returns how much memory a container has on nodes; none if that is not known.
using MeasureMemory = std::function<std::optional<std::int64_t>(const std::string& container_id, const NodeSet& nodes)>;

/// Returns the cost of a change; none if it is no decision, or the container has not left the CPUs of a node while it
/// runs. `topology`: of the machine; null: nothing is known of nodes. `measure` may be empty.
std::optional<MemoryCost> memory_cost_of(const Change& change, const topology::Topology* topology,
                                         const MeasureMemory& measure);

/// Gives compact JSON, as in the column `memory_cost` of the table `decided`.
std::string to_json(const MemoryCost& cost);

}  // namespace topolet::engine
