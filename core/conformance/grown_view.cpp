#include "core/conformance/grown_view.hpp"

#include <algorithm>

namespace topolet {

static_assert(GrownView::kExcessBytes % alignof(std::max_align_t) == 8, "elements stay aligned for their pointers");

unsigned char* GrownView::room(std::size_t bytes) {
  auto& fresh = rooms_.emplace_back(std::make_unique<unsigned char[]>(bytes + 1));
  std::fill_n(fresh.get(), bytes, kPoison);
  return fresh.get();
}

const topolet_demand* GrownView::grow(const topolet_demand* demand) {
  topolet_demand* copy = grow_flat(demand);
  grow_array(copy->huge_page_limits, copy->huge_page_limit_count, copy->huge_page_limit_stride);
  return copy;
}

const topolet_workload* GrownView::grow(const topolet_workload* workload) {
  topolet_workload* copy = grow_flat(workload);
  copy->demand = grow(copy->demand);
  return copy;
}

const topolet_topology* GrownView::grow(const topolet_topology* topology) {
  topolet_topology* copy = grow_flat(topology);
  grow_array(copy->pus, copy->pu_count, copy->pu_stride);
  grow_array(copy->nodes, copy->node_count, copy->node_stride, [this](topolet_node& node) {
    grow_array(node.huge_pages, node.huge_pages_count, node.huge_pages_stride);
  });
  grow_array(copy->domains, copy->domain_count, copy->domain_stride);
  grow_array(copy->cpu_kinds, copy->cpu_kind_count, copy->cpu_kind_stride);
  grow_array(copy->caches, copy->cache_count, copy->cache_stride);
  grow_array(copy->pci_bridges, copy->pci_bridge_count, copy->pci_bridge_stride);
  grow_array(copy->pci_devices, copy->pci_device_count, copy->pci_device_stride);
  grow_array(copy->os_devices, copy->os_device_count, copy->os_device_stride);
  return copy;
}

const topolet_ledger* GrownView::grow(const topolet_ledger* ledger) {
  topolet_ledger* copy = grow_flat(ledger);
  grow_array(copy->entries, copy->entry_count, copy->entry_stride,
             [this](topolet_ledger_entry& entry) { entry.demand = grow(entry.demand); });
  grow_array(copy->node_demands, copy->node_demand_count, copy->node_demand_stride);
  return copy;
}

const topolet_request* GrownView::grow(const topolet_request* request) {
  topolet_request* copy = grow_flat(request);
  grow_array(copy->candidates, copy->candidate_count, copy->candidate_stride);
  copy->workload = grow(copy->workload);
  copy->topology = grow(copy->topology);
  copy->ledger = grow(copy->ledger);
  return copy;
}

const topolet_pick_request* GrownView::grow(const topolet_pick_request* request) {
  topolet_pick_request* copy = grow_flat(request);
  copy->request = grow(copy->request);
  return copy;
}

const topolet_adjust_request* GrownView::grow(const topolet_adjust_request* request) {
  topolet_adjust_request* copy = grow_flat(request);
  copy->request = grow(copy->request);
  return copy;
}

const topolet_event* GrownView::grow(const topolet_event* event) {
  topolet_event* copy = grow_flat(event);
  copy->workload = grow(copy->workload);
  copy->topology = grow(copy->topology);
  return copy;
}

const topolet_tick_request* GrownView::grow(const topolet_tick_request* request) {
  topolet_tick_request* copy = grow_flat(request);
  copy->topology = grow(copy->topology);
  copy->ledger = grow(copy->ledger);
  return copy;
}

}  // namespace topolet
