#include "core/engine/state/release_transition.hpp"

#include <string>
#include <utility>
#include <vector>

#include "core/engine/state/unified_files.hpp"
#include "core/placement/reason_codes.hpp"

namespace topolet::engine {
namespace {

/// Also what plugins have set of it.
void lift_memory(Allocation& allocation) {
  const std::string file(placement::kMemoryHigh);
  if (allocation.memory_high > 0) allocation.memory_high = kMemoryHighLifted;
  if (allocation.unified.count(file) != 0)
    allocation.unified = with_files(allocation.unified, {{file, std::string(placement::kNoLimit)}});
}

/// As one that shares CPUs and was placed nowhere in particular.
void give_pool(const CpuSet& all, const NodeSet& nodes, const NodeSet& mems, Allocation& allocation) {
  allocation.placement.mode = placement::Mode::kShared;
  allocation.placement.cpus = allocation.within = allocation.evaluated_cpus = all;
  allocation.placement.withheld = {};
  if (!allocation.placement.mems.empty()) allocation.placement.mems = mems;
  allocation.mems_to_keep = {};
  allocation.nodes = nodes;
  allocation.preferred.reset();
  allocation.widening.reset();
  allocation.moved_from.reset();
  allocation.arrived_cpus = {};
  allocation.restricted = false;
  allocation.squeeze = Squeeze::kNone;
}

struct Everything {
  CpuSet cpus;
  NodeSet nodes;
  NodeSet mems;
};

Everything everything(const Ledger& ledger) {
  Everything all{ledger.inventory().allowed, {}, {}};
  if (ledger.topology() == nullptr) return all;
  for (const topology::Node& node : ledger.topology()->nodes) {
    if (node.has_memory) all.mems.insert(node.os_index);
    if (node.cpus.intersects(all.cpus)) all.nodes.insert(node.os_index);
  }
  return all;
}

}  // namespace

void release(const Ledger& ledger, const event::Released& event, Draft& draft) {
  const Everything all = everything(ledger);
  draft.narrow_besteffort({});
  std::vector<placement::ContainerKey> kept;
  for (const auto& [key, allocation] : ledger.allocations()) {
    if (event.cpusets && allocation.is_kept()) kept.push_back(key);
    if (!allocation.is_managed()) {
      draft.put(allocation);  // it knows from then on that it is not narrowed
      continue;
    }
    Allocation after = allocation;
    lift_memory(after);
    if (event.cpusets && !allocation.stays_within()) give_pool(all.cpus, all.nodes, all.mems, after);
    const bool follows = allocation.yields() && !allocation.narrowed_to.empty();
    if (after == allocation && !follows) continue;
    const bool is_placed_anew = after.placement.mode != allocation.placement.mode;
    AuditEntry audit{is_placed_anew ? AuditEvent::kReplaced : AuditEvent::kWidened, event.reason, after.nodes};
    audit.reason_code = placement::reason_code::kReleased;
    if (event.cpusets) after.reason = event.reason;
    draft.put(std::move(after), std::move(audit));
  }
  for (const placement::ContainerKey& key : kept) draft.end(key, "released");
}

}  // namespace topolet::engine
