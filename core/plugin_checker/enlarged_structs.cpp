#include "core/plugin_checker/enlarged_structs.hpp"

#include <algorithm>

namespace topolet::plugin_checker {

static_assert(EnlargedStructs::kExcessBytes % alignof(std::max_align_t) == 8,
              "elements stay aligned for their pointers");

unsigned char* EnlargedStructs::allocate(std::size_t bytes) {
  // For structs: aligned as the strictest of their members, and at no address twice, even without any byte.
  const std::size_t words = bytes / sizeof(std::uint64_t) + 1;
  auto* fresh = reinterpret_cast<unsigned char*>(block_.make_array<std::uint64_t>(words).own);  // NOLINT
  std::fill_n(fresh, words * sizeof(std::uint64_t), kPoison);
  return fresh;
}

const topolet_demand* EnlargedStructs::enlarge(const topolet_demand* demand) {
  topolet_demand* copy = enlarge_flat(demand);
  enlarge_array(copy->huge_page_limits, copy->huge_page_limit_count, copy->huge_page_limit_stride);
  return copy;
}

const topolet_workload* EnlargedStructs::enlarge(const topolet_workload* workload) {
  topolet_workload* copy = enlarge_flat(workload);
  replace(copy->qos);
  copy->demand = enlarge(copy->demand);
  if (copy->pod_demand != nullptr) copy->pod_demand = enlarge(copy->pod_demand);
  return copy;
}

const topolet_topology* EnlargedStructs::enlarge(const topolet_topology* topology) {
  topolet_topology* copy = enlarge_flat(topology);
  enlarge_array(copy->pus, copy->pu_count, copy->pu_stride);
  enlarge_array(copy->nodes, copy->node_count, copy->node_stride, [this](topolet_node& node) {
    enlarge_array(node.huge_pages, node.huge_pages_count, node.huge_pages_stride);
  });
  enlarge_array(copy->domains, copy->domain_count, copy->domain_stride,
                [this](topolet_domain& domain) { replace(domain.kind); });
  enlarge_array(copy->cpu_kinds, copy->cpu_kind_count, copy->cpu_kind_stride);
  enlarge_array(copy->caches, copy->cache_count, copy->cache_stride,
                [this](topolet_cache& cache) { replace(cache.kind); });
  enlarge_array(copy->pci_bridges, copy->pci_bridge_count, copy->pci_bridge_stride);
  enlarge_array(copy->pci_devices, copy->pci_device_count, copy->pci_device_stride);
  enlarge_array(copy->os_devices, copy->os_device_count, copy->os_device_stride,
                [this](topolet_os_device& device) { replace(device.kind); });
  return copy;
}

const topolet_ledger* EnlargedStructs::enlarge(const topolet_ledger* ledger) {
  topolet_ledger* copy = enlarge_flat(ledger);
  enlarge_array(copy->entries, copy->entry_count, copy->entry_stride, [this](topolet_ledger_entry& entry) {
    entry.demand = enlarge(entry.demand);
    replace(entry.qos);
    replace(entry.mode);
    add_flag(entry.flags);
  });
  enlarge_array(copy->node_demands, copy->node_demand_count, copy->node_demand_stride);
  return copy;
}

const topolet_request* EnlargedStructs::enlarge(const topolet_request* request) {
  topolet_request* copy = enlarge_flat(request);
  enlarge_array(copy->candidates, copy->candidate_count, copy->candidate_stride,
                [this](topolet_candidate& candidate) { replace(candidate.kind); });
  replace(copy->occasion);
  replace(copy->mode);
  replace(copy->cpu_source);
  replace(copy->why_shared);
  add_flag(copy->flags);
  copy->workload = enlarge(copy->workload);
  copy->topology = enlarge(copy->topology);
  copy->ledger = enlarge(copy->ledger);
  copy->load = enlarge_load(copy->load, *copy->topology, *copy->ledger);
  return copy;
}

/// Its arrays are as long as those of the topology and the ledger.
const topolet_load* EnlargedStructs::enlarge_load(const topolet_load* load, const topolet_topology& topology,
                                                  const topolet_ledger& ledger) {
  if (load == nullptr) return nullptr;
  topolet_load* copy = enlarge_flat(load);
  if (copy->nodes != nullptr) enlarge_array(copy->nodes, topology.node_count, copy->node_stride);
  if (copy->pus != nullptr) enlarge_array(copy->pus, topology.pu_count, copy->pu_stride);
  if (copy->entries != nullptr) enlarge_array(copy->entries, ledger.entry_count, copy->entry_stride);
  return copy;
}

const topolet_pick_request* EnlargedStructs::enlarge(const topolet_pick_request* request) {
  topolet_pick_request* copy = enlarge_flat(request);
  replace(copy->stage);
  copy->request = enlarge(copy->request);
  return copy;
}

const topolet_adjust_request* EnlargedStructs::enlarge(const topolet_adjust_request* request) {
  topolet_adjust_request* copy = enlarge_flat(request);
  replace(copy->mode);
  replace(copy->asks);
  copy->request = enlarge(copy->request);
  return copy;
}

const topolet_event* EnlargedStructs::enlarge(const topolet_event* event) {
  topolet_event* copy = enlarge_flat(event);
  replace(copy->kind);
  replace(copy->mode);
  add_flag(copy->flags);
  copy->workload = enlarge(copy->workload);
  copy->topology = enlarge(copy->topology);
  return copy;
}

const topolet_tick_request* EnlargedStructs::enlarge(const topolet_tick_request* request) {
  topolet_tick_request* copy = enlarge_flat(request);
  copy->topology = enlarge(copy->topology);
  copy->ledger = enlarge(copy->ledger);
  copy->load = enlarge_load(copy->load, *copy->topology, *copy->ledger);
  return copy;
}

}  // namespace topolet::plugin_checker
