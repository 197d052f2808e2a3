#include "plugins/gpu/pod.hpp"

#include <algorithm>
#include <cstdint>

#include "plugins/gpu/locality.hpp"

namespace topolet::gpu {
namespace {

std::int64_t milli_of(const topolet_ledger_entry& entry) {
  const std::int64_t asked = entry.demand == nullptr ? 0 : std::max<std::int64_t>(0, entry.demand->cpu_request_milli);
  if (entry.mode != TOPOLET_MODE_EXCLUSIVE) return asked;
  return std::max(asked, static_cast<std::int64_t>(sdk::size_of(entry.cpus)) * 1000);
}

bool is_named_accelerator(const topolet_topology& topology, std::string_view name) {
  for (std::uint32_t i = 0; i < topology.pci_device_count; ++i) {
    if (sdk::text(sdk::pci_devices(topology)[i].address) == name) return is_accelerator(topology, {.pci_device = i});
  }
  for (std::uint32_t i = 0; i < topology.os_device_count; ++i) {
    if (sdk::text(sdk::os_devices(topology)[i].name) == name) return is_accelerator(topology, {.os_device = i});
  }
  return false;
}

bool uses_accelerators(const topolet_request& request, const topolet_ledger_entry& entry) {
  if (!TOPOLET_STRIDE_HAS(request.ledger->entry_stride, topolet_ledger_entry, used_devices)) return false;
  for (std::size_t i = 0; i < entry.used_devices.count; ++i) {
    if (is_named_accelerator(*request.topology, sdk::text(entry.used_devices.items[i]))) return true;
  }
  return false;
}

}  // namespace

Pod pod_of(const topolet_request& request) {
  const topolet_workload& workload = *request.workload;
  Pod pod;
  std::int64_t placed = std::int64_t{request.exclusive_cpus} * 1000;
  for (const topolet_ledger_entry& entry : sdk::entries(*request.ledger)) {
    if (sdk::text(workload.pod_uid).empty()) break;  // as pods made by hand may be
    if (entry.mode == TOPOLET_MODE_FOREIGN || sdk::text(entry.pod_uid) != sdk::text(workload.pod_uid)) continue;
    if (sdk::text(entry.container_name) == sdk::text(workload.container_name)) continue;  // an earlier attempt
    pod.uses_accelerators = pod.uses_accelerators || uses_accelerators(request, entry);
    const std::int64_t milli = milli_of(entry);
    placed += milli;
    if (milli == 0) continue;
    for (const topolet_node& node : sdk::nodes(*request.topology)) {
      if (node.memory_only == 0 && sdk::size_of_both(node.cpus, entry.cpus) > 0) pod.nodes.insert(node.os_index);
    }
  }
  if (workload.pod_demand != nullptr && workload.pod_demand->cpu_request_milli > placed)
    pod.cpus_to_come = static_cast<std::size_t>((workload.pod_demand->cpu_request_milli - placed) / 1000);
  return pod;
}

}  // namespace topolet::gpu
