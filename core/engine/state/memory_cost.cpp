#include "core/engine/state/memory_cost.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/engine/state/transition.hpp"
#include "core/topology/topology.hpp"

namespace topolet::engine {

std::optional<MemoryCost> memory_cost_of(const Change& change, const topology::Topology* topology,
                                         const MeasureMemory& measure) {
  if (topology == nullptr || !change.audit || !change.before || !change.after) return std::nullopt;
  const Allocation& before = *change.before;
  const Allocation& after = *change.after;
  if (!before.may_run() || !after.may_run()) return std::nullopt;
  NodeSet left = topology->nodes_of(before.placement.cpus) - topology->nodes_of(after.placement.cpus);
  if (left.empty()) return std::nullopt;
  const bool follows = !after.mems_to_keep.empty() && !after.mems_to_keep.intersects(left);
  std::optional<std::int64_t> bytes;
  if (measure) bytes = measure(after.container_id, left);
  return MemoryCost{std::move(left), bytes, follows};
}

std::string to_json(const MemoryCost& cost) {
  return fmt::format(R"({{"nodes":"{}","bytes":{},"follows":{}}})", cost.nodes.to_string(),
                     cost.bytes ? std::to_string(*cost.bytes) : "null", cost.follows);
}

}  // namespace topolet::engine
