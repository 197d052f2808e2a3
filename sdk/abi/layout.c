/* Made by scripts/abi-baseline. Every size, offset, enumerator and macro of the plugin ABI: what does not match does
 * not compile. sdk/ABI.md says how a change is made that is meant. */
/* NOLINTBEGIN */
/* clang-format off */
#include <topolet/abi.h>
#include <topolet/adjust.h>
#include <topolet/annotations.h>
#include <topolet/codes.h>
#include <topolet/events.h>
#include <topolet/log.h>
#include <topolet/pick.h>
#include <topolet/propose.h>
#include <topolet/reads.h>
#include <topolet/score.h>
#include <topolet/state.h>
#include <topolet/tick.h>
#include <topolet/wake.h>

#define SIZE(type, size) _Static_assert(sizeof(type) == (size), "the ABI changed: the size of " #type)
#define FIELD(type, field, offset, size, ...)                                              \
  _Static_assert(offsetof(type, field) == (offset) && sizeof(((type*)0)->field) == (size), \
                 "the ABI changed: the place of " #type "." #field);                       \
  _Static_assert(_Generic(((type*)0)->field, __VA_ARGS__: 1, default: 0),                  \
                 "the ABI changed: the type of " #type "." #field)
#define VALUE(name, value) _Static_assert((name) == (value), "the ABI changed: the value of " #name)

SIZE(topolet_str, 16);
FIELD(topolet_str, ptr, 0, 8, const char*);
FIELD(topolet_str, len, 8, 8, size_t);

SIZE(topolet_strs, 16);
FIELD(topolet_strs, items, 0, 8, const topolet_str*);
FIELD(topolet_strs, count, 8, 8, size_t);

SIZE(topolet_kv, 32);
FIELD(topolet_kv, key, 0, 16, topolet_str);
FIELD(topolet_kv, value, 16, 16, topolet_str);

SIZE(topolet_kvs, 16);
FIELD(topolet_kvs, items, 0, 8, const topolet_kv*);
FIELD(topolet_kvs, count, 8, 8, size_t);

SIZE(topolet_set, 16);
FIELD(topolet_set, words, 0, 8, const uint64_t*);
FIELD(topolet_set, count, 8, 8, size_t);

SIZE(topolet_status, 4);
VALUE(TOPOLET_OK, 0);
VALUE(TOPOLET_FAILED, 1);
VALUE(TOPOLET_INVALID, 2);
VALUE(TOPOLET_OUT_OF_RANGE, 3);
VALUE(TOPOLET_UNKNOWN, 4);
VALUE(TOPOLET_DUPLICATE, 5);
VALUE(TOPOLET_LATE, 6);
VALUE(TOPOLET_THREW, 7);
VALUE(TOPOLET_FORBIDDEN, 8);
VALUE(TOPOLET_UNSUPPORTED, 9);

SIZE(topolet_pu, 24);
FIELD(topolet_pu, os_index, 0, 4, uint32_t);
FIELD(topolet_pu, core, 4, 4, uint32_t);
FIELD(topolet_pu, l3, 8, 4, uint32_t);
FIELD(topolet_pu, die, 12, 4, uint32_t);
FIELD(topolet_pu, node, 16, 4, uint32_t);
FIELD(topolet_pu, package, 20, 4, uint32_t);

SIZE(topolet_huge_pages, 16);
FIELD(topolet_huge_pages, page_bytes, 0, 8, int64_t);
FIELD(topolet_huge_pages, count, 8, 8, int64_t);

SIZE(topolet_node, 64);
FIELD(topolet_node, os_index, 0, 4, uint32_t);
FIELD(topolet_node, memory_only, 4, 4, uint32_t);
FIELD(topolet_node, cpus, 8, 16, topolet_set);
FIELD(topolet_node, subtype, 24, 16, topolet_str);
FIELD(topolet_node, memory_bytes, 40, 8, int64_t);
FIELD(topolet_node, huge_pages, 48, 8, const topolet_huge_pages*);
FIELD(topolet_node, huge_pages_count, 56, 4, uint32_t);
FIELD(topolet_node, huge_pages_stride, 60, 4, uint32_t);

SIZE(topolet_domain_kind, 4);
VALUE(TOPOLET_DOMAIN_NODE, 0);
VALUE(TOPOLET_DOMAIN_DIE, 1);
VALUE(TOPOLET_DOMAIN_PACKAGE, 2);
VALUE(TOPOLET_DOMAIN_MACHINE, 3);

SIZE(topolet_domain, 40);
FIELD(topolet_domain, kind, 0, 4, int32_t);
FIELD(topolet_domain, reserved, 4, 4, uint32_t);
FIELD(topolet_domain, cpus, 8, 16, topolet_set);
FIELD(topolet_domain, nodes, 24, 16, topolet_set);

SIZE(topolet_cpu_kind, 24);
FIELD(topolet_cpu_kind, efficiency, 0, 4, uint32_t);
FIELD(topolet_cpu_kind, reserved, 4, 4, uint32_t);
FIELD(topolet_cpu_kind, cpus, 8, 16, topolet_set);

SIZE(topolet_cache_kind, 4);
VALUE(TOPOLET_CACHE_UNIFIED, 0);
VALUE(TOPOLET_CACHE_DATA, 1);
VALUE(TOPOLET_CACHE_INSTRUCTION, 2);

SIZE(topolet_cache, 32);
FIELD(topolet_cache, level, 0, 4, uint32_t);
FIELD(topolet_cache, kind, 4, 4, int32_t);
FIELD(topolet_cache, bytes, 8, 8, int64_t);
FIELD(topolet_cache, cpus, 16, 16, topolet_set);

SIZE(topolet_pci_bridge, 64);
FIELD(topolet_pci_bridge, address, 0, 16, topolet_str);
FIELD(topolet_pci_bridge, parent, 16, 4, uint32_t);
FIELD(topolet_pci_bridge, vendor_id, 20, 4, uint32_t);
FIELD(topolet_pci_bridge, device_id, 24, 4, uint32_t);
FIELD(topolet_pci_bridge, reserved, 28, 4, uint32_t);
FIELD(topolet_pci_bridge, cpus, 32, 16, topolet_set);
FIELD(topolet_pci_bridge, nodes, 48, 16, topolet_set);

SIZE(topolet_pci_device, 80);
FIELD(topolet_pci_device, address, 0, 16, topolet_str);
FIELD(topolet_pci_device, bridge, 16, 4, uint32_t);
FIELD(topolet_pci_device, class_id, 20, 4, uint32_t);
FIELD(topolet_pci_device, vendor_id, 24, 4, uint32_t);
FIELD(topolet_pci_device, device_id, 28, 4, uint32_t);
FIELD(topolet_pci_device, cpus, 32, 16, topolet_set);
FIELD(topolet_pci_device, nodes, 48, 16, topolet_set);
FIELD(topolet_pci_device, info, 64, 16, topolet_kvs);

SIZE(topolet_os_device_kind, 4);
VALUE(TOPOLET_OS_DEVICE_BLOCK, 0);
VALUE(TOPOLET_OS_DEVICE_GPU, 1);
VALUE(TOPOLET_OS_DEVICE_NETWORK, 2);
VALUE(TOPOLET_OS_DEVICE_OPENFABRICS, 3);
VALUE(TOPOLET_OS_DEVICE_DMA, 4);
VALUE(TOPOLET_OS_DEVICE_COPROCESSOR, 5);
VALUE(TOPOLET_OS_DEVICE_OTHER, 6);

SIZE(topolet_os_device, 88);
FIELD(topolet_os_device, name, 0, 16, topolet_str);
FIELD(topolet_os_device, subtype, 16, 16, topolet_str);
FIELD(topolet_os_device, kind, 32, 4, int32_t);
FIELD(topolet_os_device, pci_device, 36, 4, uint32_t);
FIELD(topolet_os_device, cpus, 40, 16, topolet_set);
FIELD(topolet_os_device, nodes, 56, 16, topolet_set);
FIELD(topolet_os_device, info, 72, 16, topolet_kvs);

SIZE(topolet_topology, 264);
FIELD(topolet_topology, struct_size, 0, 4, uint32_t);
FIELD(topolet_topology, distances_known, 4, 4, uint32_t);
FIELD(topolet_topology, generation, 8, 8, uint64_t);
FIELD(topolet_topology, pus, 16, 8, const topolet_pu*);
FIELD(topolet_topology, pu_count, 24, 4, uint32_t);
FIELD(topolet_topology, pu_stride, 28, 4, uint32_t);
FIELD(topolet_topology, nodes, 32, 8, const topolet_node*);
FIELD(topolet_topology, node_count, 40, 4, uint32_t);
FIELD(topolet_topology, node_stride, 44, 4, uint32_t);
FIELD(topolet_topology, domains, 48, 8, const topolet_domain*);
FIELD(topolet_topology, domain_count, 56, 4, uint32_t);
FIELD(topolet_topology, domain_stride, 60, 4, uint32_t);
FIELD(topolet_topology, cores, 64, 8, const topolet_set*);
FIELD(topolet_topology, core_count, 72, 8, size_t);
FIELD(topolet_topology, l3s, 80, 8, const topolet_set*);
FIELD(topolet_topology, l3_count, 88, 8, size_t);
FIELD(topolet_topology, dies, 96, 8, const topolet_set*);
FIELD(topolet_topology, die_count, 104, 8, size_t);
FIELD(topolet_topology, packages, 112, 8, const topolet_set*);
FIELD(topolet_topology, package_count, 120, 8, size_t);
FIELD(topolet_topology, distances, 128, 8, const uint32_t*);
FIELD(topolet_topology, online, 136, 16, topolet_set);
FIELD(topolet_topology, allowed, 152, 16, topolet_set);
FIELD(topolet_topology, isolated, 168, 16, topolet_set);
FIELD(topolet_topology, cpu_kinds, 184, 8, const topolet_cpu_kind*);
FIELD(topolet_topology, cpu_kind_count, 192, 4, uint32_t);
FIELD(topolet_topology, cpu_kind_stride, 196, 4, uint32_t);
FIELD(topolet_topology, caches, 200, 8, const topolet_cache*);
FIELD(topolet_topology, cache_count, 208, 4, uint32_t);
FIELD(topolet_topology, cache_stride, 212, 4, uint32_t);
FIELD(topolet_topology, pci_bridges, 216, 8, const topolet_pci_bridge*);
FIELD(topolet_topology, pci_bridge_count, 224, 4, uint32_t);
FIELD(topolet_topology, pci_bridge_stride, 228, 4, uint32_t);
FIELD(topolet_topology, pci_devices, 232, 8, const topolet_pci_device*);
FIELD(topolet_topology, pci_device_count, 240, 4, uint32_t);
FIELD(topolet_topology, pci_device_stride, 244, 4, uint32_t);
FIELD(topolet_topology, os_devices, 248, 8, const topolet_os_device*);
FIELD(topolet_topology, os_device_count, 256, 4, uint32_t);
FIELD(topolet_topology, os_device_stride, 260, 4, uint32_t);

SIZE(topolet_qos, 4);
VALUE(TOPOLET_QOS_GUARANTEED, 0);
VALUE(TOPOLET_QOS_BURSTABLE, 1);
VALUE(TOPOLET_QOS_BESTEFFORT, 2);

SIZE(topolet_certainty, 4);
VALUE(TOPOLET_CERTAINTY_TOLD, 0);
VALUE(TOPOLET_CERTAINTY_ESTIMATED, 1);
VALUE(TOPOLET_CERTAINTY_UNKNOWN, 2);
VALUE(TOPOLET_CERTAINTY_OF_POD, 3);

SIZE(topolet_huge_page_limit, 24);
FIELD(topolet_huge_page_limit, page_size, 0, 16, topolet_str);
FIELD(topolet_huge_page_limit, bytes, 16, 8, int64_t);

SIZE(topolet_demand, 64);
FIELD(topolet_demand, struct_size, 0, 4, uint32_t);
FIELD(topolet_demand, memory_request_estimated, 4, 4, uint32_t);
FIELD(topolet_demand, cpu_request_milli, 8, 8, int64_t);
FIELD(topolet_demand, cpu_limit_milli, 16, 8, int64_t);
FIELD(topolet_demand, memory_request_bytes, 24, 8, int64_t);
FIELD(topolet_demand, memory_limit_bytes, 32, 8, int64_t);
FIELD(topolet_demand, huge_page_limits, 40, 8, const topolet_huge_page_limit*);
FIELD(topolet_demand, huge_page_limit_count, 48, 4, uint32_t);
FIELD(topolet_demand, huge_page_limit_stride, 52, 4, uint32_t);
FIELD(topolet_demand, cpu_request_certainty, 56, 4, int32_t);
FIELD(topolet_demand, reserved, 60, 4, uint32_t);

SIZE(topolet_workload, 336);
FIELD(topolet_workload, struct_size, 0, 4, uint32_t);
FIELD(topolet_workload, attempt, 4, 4, uint32_t);
FIELD(topolet_workload, pod_uid, 8, 16, topolet_str);
FIELD(topolet_workload, pod_name, 24, 16, topolet_str);
FIELD(topolet_workload, pod_namespace, 40, 16, topolet_str);
FIELD(topolet_workload, sandbox_id, 56, 16, topolet_str);
FIELD(topolet_workload, container_name, 72, 16, topolet_str);
FIELD(topolet_workload, runtime_handler, 88, 16, topolet_str);
FIELD(topolet_workload, qos, 104, 4, int32_t);
FIELD(topolet_workload, reserved, 108, 4, uint32_t);
FIELD(topolet_workload, demand, 112, 8, const topolet_demand*);
FIELD(topolet_workload, kubelet_cpus, 120, 16, topolet_set);
FIELD(topolet_workload, kubelet_mems, 136, 16, topolet_set);
FIELD(topolet_workload, devices, 152, 16, topolet_strs);
FIELD(topolet_workload, cdi_devices, 168, 16, topolet_strs);
FIELD(topolet_workload, env, 184, 16, topolet_kvs);
FIELD(topolet_workload, pod_labels, 200, 16, topolet_kvs);
FIELD(topolet_workload, pod_annotations, 216, 16, topolet_kvs);
FIELD(topolet_workload, annotations, 232, 16, topolet_kvs);
FIELD(topolet_workload, settings, 248, 16, topolet_kvs);
FIELD(topolet_workload, pod_demand, 264, 8, const topolet_demand*);
FIELD(topolet_workload, pod_nodes, 272, 16, topolet_set);
FIELD(topolet_workload, used_devices, 288, 16, topolet_strs);
FIELD(topolet_workload, tags, 304, 16, topolet_kvs);
FIELD(topolet_workload, container_id, 320, 16, topolet_str);

SIZE(topolet_mode, 4);
VALUE(TOPOLET_MODE_EXCLUSIVE, 0);
VALUE(TOPOLET_MODE_SHARED, 1);
VALUE(TOPOLET_MODE_RESERVED, 2);
VALUE(TOPOLET_MODE_FOREIGN, 3);

SIZE(topolet_ledger_entry, 312);
FIELD(topolet_ledger_entry, pod_uid, 0, 16, topolet_str);
FIELD(topolet_ledger_entry, container_name, 16, 16, topolet_str);
FIELD(topolet_ledger_entry, attempt, 32, 4, uint32_t);
FIELD(topolet_ledger_entry, qos, 36, 4, int32_t);
FIELD(topolet_ledger_entry, mode, 40, 4, int32_t);
FIELD(topolet_ledger_entry, flags, 44, 4, uint32_t);
FIELD(topolet_ledger_entry, cpus, 48, 16, topolet_set);
FIELD(topolet_ledger_entry, withheld, 64, 16, topolet_set);
FIELD(topolet_ledger_entry, mems, 80, 16, topolet_set);
FIELD(topolet_ledger_entry, demand, 96, 8, const topolet_demand*);
FIELD(topolet_ledger_entry, settings, 104, 16, topolet_kvs);
FIELD(topolet_ledger_entry, used_devices, 120, 16, topolet_strs);
FIELD(topolet_ledger_entry, pod_name, 136, 16, topolet_str);
FIELD(topolet_ledger_entry, pod_namespace, 152, 16, topolet_str);
FIELD(topolet_ledger_entry, sandbox_id, 168, 16, topolet_str);
FIELD(topolet_ledger_entry, container_id, 184, 16, topolet_str);
FIELD(topolet_ledger_entry, runtime_handler, 200, 16, topolet_str);
FIELD(topolet_ledger_entry, pod_labels, 216, 16, topolet_kvs);
FIELD(topolet_ledger_entry, pod_annotations, 232, 16, topolet_kvs);
FIELD(topolet_ledger_entry, annotations, 248, 16, topolet_kvs);
FIELD(topolet_ledger_entry, tags, 264, 16, topolet_kvs);
FIELD(topolet_ledger_entry, devices, 280, 16, topolet_strs);
FIELD(topolet_ledger_entry, cdi_devices, 296, 16, topolet_strs);

SIZE(topolet_node_demand, 24);
FIELD(topolet_node_demand, containers, 0, 4, uint32_t);
FIELD(topolet_node_demand, exclusive_cpus, 4, 4, uint32_t);
FIELD(topolet_node_demand, cpu_request_milli, 8, 8, int64_t);
FIELD(topolet_node_demand, memory_request_bytes, 16, 8, int64_t);

SIZE(topolet_ledger, 128);
FIELD(topolet_ledger, struct_size, 0, 4, uint32_t);
FIELD(topolet_ledger, reserved, 4, 4, uint32_t);
FIELD(topolet_ledger, generation, 8, 8, uint64_t);
FIELD(topolet_ledger, allowed, 16, 16, topolet_set);
FIELD(topolet_ledger, reserved_cpus, 32, 16, topolet_set);
FIELD(topolet_ledger, pool, 48, 16, topolet_set);
FIELD(topolet_ledger, exclusive, 64, 16, topolet_set);
FIELD(topolet_ledger, withheld, 80, 16, topolet_set);
FIELD(topolet_ledger, entries, 96, 8, const topolet_ledger_entry*);
FIELD(topolet_ledger, entry_count, 104, 4, uint32_t);
FIELD(topolet_ledger, entry_stride, 108, 4, uint32_t);
FIELD(topolet_ledger, node_demands, 112, 8, const topolet_node_demand*);
FIELD(topolet_ledger, node_demand_count, 120, 4, uint32_t);
FIELD(topolet_ledger, node_demand_stride, 124, 4, uint32_t);

SIZE(topolet_occasion, 4);
VALUE(TOPOLET_OCCASION_CREATE, 0);
VALUE(TOPOLET_OCCASION_RESTART, 1);
VALUE(TOPOLET_OCCASION_RESIZE, 2);
VALUE(TOPOLET_OCCASION_MOVE, 3);
VALUE(TOPOLET_OCCASION_REPAIR, 4);
VALUE(TOPOLET_OCCASION_ADOPT, 5);

SIZE(topolet_cpu_source, 4);
VALUE(TOPOLET_CPUS_FROM_POOL, 0);
VALUE(TOPOLET_CPUS_PREFER_ISOLATED, 1);
VALUE(TOPOLET_CPUS_FROM_ISOLATED, 2);

SIZE(topolet_why_shared, 4);
VALUE(TOPOLET_SHARED_NOT, 0);
VALUE(TOPOLET_SHARED_OTHER, 1);
VALUE(TOPOLET_SHARED_ANNOTATED_NONE, 2);
VALUE(TOPOLET_SHARED_ANNOTATED_SHARED, 3);
VALUE(TOPOLET_SHARED_BURSTABLE, 4);
VALUE(TOPOLET_SHARED_BESTEFFORT, 5);
VALUE(TOPOLET_SHARED_UNKNOWN_DEMAND, 6);
VALUE(TOPOLET_SHARED_FRACTIONAL_REQUEST, 7);
VALUE(TOPOLET_SHARED_NO_REQUEST, 8);
VALUE(TOPOLET_SHARED_UNKNOWN_REQUEST, 9);
VALUE(TOPOLET_SHARED_NOTHING_REQUESTED, 10);
VALUE(TOPOLET_SHARED_NO_OWN_REQUEST, 11);
VALUE(TOPOLET_SHARED_ONLY_WHOLE_CPUS, 12);
VALUE(TOPOLET_SHARED_RESERVED_NAMESPACE, 13);
VALUE(TOPOLET_SHARED_RULE_NEVER, 14);
VALUE(TOPOLET_SHARED_RULE_ANNOTATED, 15);
VALUE(TOPOLET_SHARED_KUBELET_HANDS_OUT_CPUS, 16);
VALUE(TOPOLET_SHARED_ONLY_AT_CREATION, 17);
VALUE(TOPOLET_SHARED_NODE_FULL, 18);

SIZE(topolet_candidate, 80);
FIELD(topolet_candidate, kind, 0, 4, int32_t);
FIELD(topolet_candidate, is_domain, 4, 4, uint32_t);
FIELD(topolet_candidate, nodes, 8, 16, topolet_set);
FIELD(topolet_candidate, cpus, 24, 16, topolet_set);
FIELD(topolet_candidate, pool, 40, 16, topolet_set);
FIELD(topolet_candidate, usable, 56, 16, topolet_set);
FIELD(topolet_candidate, distance, 72, 4, uint32_t);
FIELD(topolet_candidate, reserved, 76, 4, uint32_t);

SIZE(topolet_node_load, 24);
FIELD(topolet_node_load, effective_milli, 0, 8, int64_t);
FIELD(topolet_node_load, age_ms, 8, 8, int64_t);
FIELD(topolet_node_load, used_milli, 16, 8, int64_t);

SIZE(topolet_pu_load, 16);
FIELD(topolet_pu_load, effective_milli, 0, 8, int64_t);
FIELD(topolet_pu_load, age_ms, 8, 8, int64_t);

SIZE(topolet_entry_load, 24);
FIELD(topolet_entry_load, cpu_milli, 0, 8, int64_t);
FIELD(topolet_entry_load, age_ms, 8, 8, int64_t);
FIELD(topolet_entry_load, psi_some_permille, 16, 4, int32_t);
FIELD(topolet_entry_load, reserved, 20, 4, uint32_t);

SIZE(topolet_load, 56);
FIELD(topolet_load, struct_size, 0, 4, uint32_t);
FIELD(topolet_load, reserved, 4, 4, uint32_t);
FIELD(topolet_load, nodes, 8, 8, const topolet_node_load*);
FIELD(topolet_load, pus, 16, 8, const topolet_pu_load*);
FIELD(topolet_load, entries, 24, 8, const topolet_entry_load*);
FIELD(topolet_load, node_stride, 32, 4, uint32_t);
FIELD(topolet_load, pu_stride, 36, 4, uint32_t);
FIELD(topolet_load, entry_stride, 40, 4, uint32_t);
FIELD(topolet_load, reserved_2, 44, 4, uint32_t);
FIELD(topolet_load, measured_ms, 48, 8, int64_t);

SIZE(topolet_request, 152);
FIELD(topolet_request, struct_size, 0, 4, uint32_t);
FIELD(topolet_request, exclusive, 4, 4, uint32_t);
FIELD(topolet_request, exclusive_cpus, 8, 4, uint32_t);
FIELD(topolet_request, candidate_count, 12, 4, uint32_t);
FIELD(topolet_request, candidates, 16, 8, const topolet_candidate*);
FIELD(topolet_request, candidate_stride, 24, 4, uint32_t);
FIELD(topolet_request, occasion, 28, 4, int32_t);
FIELD(topolet_request, workload, 32, 8, const topolet_workload*);
FIELD(topolet_request, topology, 40, 8, const topolet_topology*);
FIELD(topolet_request, ledger, 48, 8, const topolet_ledger*);
FIELD(topolet_request, mode, 56, 4, int32_t);
FIELD(topolet_request, flags, 60, 4, uint32_t);
FIELD(topolet_request, cpu_source, 64, 4, int32_t);
FIELD(topolet_request, why_shared, 68, 4, int32_t);
FIELD(topolet_request, had_cpus, 72, 16, topolet_set);
FIELD(topolet_request, had_withheld, 88, 16, topolet_set);
FIELD(topolet_request, had_mems, 104, 16, topolet_set);
FIELD(topolet_request, keep, 120, 16, topolet_set);
FIELD(topolet_request, min_shared_cpus, 136, 4, uint32_t);
FIELD(topolet_request, largest_exclusive_cpus, 140, 4, uint32_t);
FIELD(topolet_request, load, 144, 8, const topolet_load*);

SIZE(topolet_option_type, 4);
VALUE(TOPOLET_OPTION_STRING, 0);
VALUE(TOPOLET_OPTION_BOOL, 1);
VALUE(TOPOLET_OPTION_INTEGER, 2);
VALUE(TOPOLET_OPTION_CHOICE, 3);
VALUE(TOPOLET_OPTION_FLOAT, 4);
VALUE(TOPOLET_OPTION_DURATION, 5);
VALUE(TOPOLET_OPTION_SIZE, 6);
VALUE(TOPOLET_OPTION_LIST, 7);
VALUE(TOPOLET_OPTION_CPULIST, 8);

SIZE(topolet_option, 88);
FIELD(topolet_option, name, 0, 16, topolet_str);
FIELD(topolet_option, type, 16, 4, int32_t);
FIELD(topolet_option, flags, 20, 4, uint32_t);
FIELD(topolet_option, default_value, 24, 16, topolet_str);
FIELD(topolet_option, allowed, 40, 16, topolet_strs);
FIELD(topolet_option, minimum, 56, 8, int64_t);
FIELD(topolet_option, maximum, 64, 8, int64_t);
FIELD(topolet_option, help, 72, 16, topolet_str);

SIZE(topolet_host, 56);
FIELD(topolet_host, struct_size, 0, 4, uint32_t);
FIELD(topolet_host, abi_minor, 4, 4, uint32_t);
FIELD(topolet_host, context, 8, 8, void*);
FIELD(topolet_host, get_capability, 16, 8, const void* (*)(const topolet_host* host, topolet_str id));
FIELD(topolet_host, name, 24, 16, topolet_str);
FIELD(topolet_host, version, 40, 16, topolet_str);

SIZE(topolet_error_sink, 24);
FIELD(topolet_error_sink, struct_size, 0, 4, uint32_t);
FIELD(topolet_error_sink, reserved, 4, 4, uint32_t);
FIELD(topolet_error_sink, context, 8, 8, void*);
FIELD(topolet_error_sink, set, 16, 8, int32_t (*)(const topolet_error_sink* sink, topolet_str message));

SIZE(topolet_instance, 32);
FIELD(topolet_instance, struct_size, 0, 4, uint32_t);
FIELD(topolet_instance, reserved, 4, 4, uint32_t);
FIELD(topolet_instance, context, 8, 8, void*);
FIELD(topolet_instance, get_capability, 16, 8, const void* (*)(const topolet_instance* instance, topolet_str id));
FIELD(topolet_instance, destroy, 24, 8, void (*)(const topolet_instance* instance));

SIZE(topolet_purpose, 4);
VALUE(TOPOLET_PURPOSE_RUN, 0);
VALUE(TOPOLET_PURPOSE_CHECK, 1);
VALUE(TOPOLET_PURPOSE_SIMULATE, 2);

SIZE(topolet_create_request, 64);
FIELD(topolet_create_request, struct_size, 0, 4, uint32_t);
FIELD(topolet_create_request, purpose, 4, 4, int32_t);
FIELD(topolet_create_request, host, 8, 8, const topolet_host*);
FIELD(topolet_create_request, options, 16, 16, topolet_kvs);
FIELD(topolet_create_request, configuration, 32, 16, topolet_kvs);
FIELD(topolet_create_request, topology, 48, 8, const topolet_topology*);
FIELD(topolet_create_request, deadline_ms, 56, 4, uint32_t);
FIELD(topolet_create_request, reserved, 60, 4, uint32_t);

SIZE(topolet_plugin_entry, 120);
FIELD(topolet_plugin_entry, struct_size, 0, 4, uint32_t);
FIELD(topolet_plugin_entry, abi_minor, 4, 4, uint32_t);
FIELD(topolet_plugin_entry, abi_draft, 8, 4, uint32_t);
FIELD(topolet_plugin_entry, default_weight, 12, 4, uint32_t);
FIELD(topolet_plugin_entry, id, 16, 16, topolet_str);
FIELD(topolet_plugin_entry, version, 32, 16, topolet_str);
FIELD(topolet_plugin_entry, options, 48, 8, const topolet_option*);
FIELD(topolet_plugin_entry, option_count, 56, 4, uint32_t);
FIELD(topolet_plugin_entry, option_stride, 60, 4, uint32_t);
FIELD(topolet_plugin_entry, create, 64, 8, int32_t (*)(const topolet_create_request* request, const topolet_error_sink* error, const topolet_instance** instance));
FIELD(topolet_plugin_entry, vendor, 72, 16, topolet_str);
FIELD(topolet_plugin_entry, url, 88, 16, topolet_str);
FIELD(topolet_plugin_entry, description, 104, 16, topolet_str);

SIZE(topolet_asks, 4);
VALUE(TOPOLET_ASKS_CREATE, 0);
VALUE(TOPOLET_ASKS_UPDATE, 1);
VALUE(TOPOLET_ASKS_SANDBOX, 2);
VALUE(TOPOLET_ASKS_UNPLACED, 3);

SIZE(topolet_memory_mode, 4);
VALUE(TOPOLET_MEMORY_PREFERRED, 1);
VALUE(TOPOLET_MEMORY_BIND, 2);
VALUE(TOPOLET_MEMORY_INTERLEAVE, 3);
VALUE(TOPOLET_MEMORY_LOCAL, 4);
VALUE(TOPOLET_MEMORY_PREFERRED_MANY, 5);
VALUE(TOPOLET_MEMORY_WEIGHTED_INTERLEAVE, 6);

SIZE(topolet_scheduler_class, 4);
VALUE(TOPOLET_SCHEDULER_OTHER, 0);
VALUE(TOPOLET_SCHEDULER_BATCH, 3);
VALUE(TOPOLET_SCHEDULER_IDLE, 5);

SIZE(topolet_io_class, 4);
VALUE(TOPOLET_IO_REALTIME, 1);
VALUE(TOPOLET_IO_BEST_EFFORT, 2);
VALUE(TOPOLET_IO_IDLE, 3);

SIZE(topolet_adjust_request, 72);
FIELD(topolet_adjust_request, struct_size, 0, 4, uint32_t);
FIELD(topolet_adjust_request, candidate, 4, 4, uint32_t);
FIELD(topolet_adjust_request, request, 8, 8, const topolet_request*);
FIELD(topolet_adjust_request, mode, 16, 4, int32_t);
FIELD(topolet_adjust_request, asks, 20, 4, int32_t);
FIELD(topolet_adjust_request, cpus, 24, 16, topolet_set);
FIELD(topolet_adjust_request, withheld, 40, 16, topolet_set);
FIELD(topolet_adjust_request, memory, 56, 16, topolet_set);

SIZE(topolet_adjust_sink, 112);
FIELD(topolet_adjust_sink, struct_size, 0, 4, uint32_t);
FIELD(topolet_adjust_sink, reserved, 4, 4, uint32_t);
FIELD(topolet_adjust_sink, context, 8, 8, void*);
FIELD(topolet_adjust_sink, mems, 16, 8, int32_t (*)(const topolet_adjust_sink* sink, topolet_set nodes));
FIELD(topolet_adjust_sink, env, 24, 8, int32_t (*)(const topolet_adjust_sink* sink, topolet_str name, topolet_str value));
FIELD(topolet_adjust_sink, annotation, 32, 8, int32_t (*)(const topolet_adjust_sink* sink, topolet_str key, topolet_str value));
FIELD(topolet_adjust_sink, reason, 40, 8, int32_t (*)(const topolet_adjust_sink* sink, topolet_str reason));
FIELD(topolet_adjust_sink, error, 48, 8, int32_t (*)(const topolet_adjust_sink* sink, topolet_str message));
FIELD(topolet_adjust_sink, uses, 56, 8, int32_t (*)(const topolet_adjust_sink* sink, topolet_str device));
FIELD(topolet_adjust_sink, tag, 64, 8, int32_t (*)(const topolet_adjust_sink* sink, topolet_str key, topolet_str value));
FIELD(topolet_adjust_sink, unified, 72, 8, int32_t (*)(const topolet_adjust_sink* sink, topolet_str key, topolet_str value));
FIELD(topolet_adjust_sink, rdt_class, 80, 8, int32_t (*)(const topolet_adjust_sink* sink, topolet_str name));
FIELD(topolet_adjust_sink, memory_policy, 88, 8, int32_t (*)(const topolet_adjust_sink* sink, int32_t mode, topolet_set nodes, uint32_t flags));
FIELD(topolet_adjust_sink, scheduler, 96, 8, int32_t (*)(const topolet_adjust_sink* sink, int32_t scheduler_class, int32_t nice));
FIELD(topolet_adjust_sink, io_priority, 104, 8, int32_t (*)(const topolet_adjust_sink* sink, int32_t io_class, int32_t priority));

SIZE(topolet_adjust, 16);
FIELD(topolet_adjust, struct_size, 0, 4, uint32_t);
FIELD(topolet_adjust, reserved, 4, 4, uint32_t);
FIELD(topolet_adjust, adjust, 8, 8, int32_t (*)(const topolet_instance* instance, const topolet_adjust_request* request, const topolet_adjust_sink* sink));

SIZE(topolet_annotations, 40);
FIELD(topolet_annotations, struct_size, 0, 4, uint32_t);
FIELD(topolet_annotations, reserved, 4, 4, uint32_t);
FIELD(topolet_annotations, names, 8, 16, topolet_strs);
FIELD(topolet_annotations, taking, 24, 16, topolet_kvs);

SIZE(topolet_codes, 24);
FIELD(topolet_codes, struct_size, 0, 4, uint32_t);
FIELD(topolet_codes, reserved, 4, 4, uint32_t);
FIELD(topolet_codes, codes, 8, 16, topolet_kvs);

SIZE(topolet_event_kind, 4);
VALUE(TOPOLET_EVENT_PLACED, 0);
VALUE(TOPOLET_EVENT_STARTED, 1);
VALUE(TOPOLET_EVENT_MOVED, 2);
VALUE(TOPOLET_EVENT_RESIZED, 3);
VALUE(TOPOLET_EVENT_RELEASED, 4);
VALUE(TOPOLET_EVENT_EXITED, 5);
VALUE(TOPOLET_EVENT_POD_REMOVED, 6);
VALUE(TOPOLET_EVENT_DENIED, 7);
VALUE(TOPOLET_EVENT_UNPINNED, 8);

SIZE(topolet_event, 128);
FIELD(topolet_event, struct_size, 0, 4, uint32_t);
FIELD(topolet_event, kind, 4, 4, int32_t);
FIELD(topolet_event, workload, 8, 8, const topolet_workload*);
FIELD(topolet_event, mode, 16, 4, int32_t);
FIELD(topolet_event, flags, 20, 4, uint32_t);
FIELD(topolet_event, cpus, 24, 16, topolet_set);
FIELD(topolet_event, withheld, 40, 16, topolet_set);
FIELD(topolet_event, mems, 56, 16, topolet_set);
FIELD(topolet_event, topology, 72, 8, const topolet_topology*);
FIELD(topolet_event, sequence, 80, 8, uint64_t);
FIELD(topolet_event, container_id, 88, 16, topolet_str);
FIELD(topolet_event, reason, 104, 16, topolet_str);
FIELD(topolet_event, exit_code, 120, 4, int32_t);
FIELD(topolet_event, reserved, 124, 4, uint32_t);

SIZE(topolet_event_sink, 24);
FIELD(topolet_event_sink, struct_size, 0, 4, uint32_t);
FIELD(topolet_event_sink, reserved, 4, 4, uint32_t);
FIELD(topolet_event_sink, context, 8, 8, void*);
FIELD(topolet_event_sink, error, 16, 8, int32_t (*)(const topolet_event_sink* sink, topolet_str message));

SIZE(topolet_events, 16);
FIELD(topolet_events, struct_size, 0, 4, uint32_t);
FIELD(topolet_events, reserved, 4, 4, uint32_t);
FIELD(topolet_events, notify, 8, 8, int32_t (*)(const topolet_instance* instance, const topolet_event* event, const topolet_event_sink* sink));

SIZE(topolet_log_level, 4);
VALUE(TOPOLET_LOG_DEBUG, 0);
VALUE(TOPOLET_LOG_INFO, 1);
VALUE(TOPOLET_LOG_WARN, 2);
VALUE(TOPOLET_LOG_ERROR, 3);

SIZE(topolet_log, 16);
FIELD(topolet_log, struct_size, 0, 4, uint32_t);
FIELD(topolet_log, reserved, 4, 4, uint32_t);
FIELD(topolet_log, write, 8, 8, void (*)(const topolet_host* host, int32_t level, topolet_str message));

SIZE(topolet_tick_request, 48);
FIELD(topolet_tick_request, struct_size, 0, 4, uint32_t);
FIELD(topolet_tick_request, reserved, 4, 4, uint32_t);
FIELD(topolet_tick_request, now_ms, 8, 8, uint64_t);
FIELD(topolet_tick_request, topology, 16, 8, const topolet_topology*);
FIELD(topolet_tick_request, ledger, 24, 8, const topolet_ledger*);
FIELD(topolet_tick_request, load, 32, 8, const topolet_load*);
FIELD(topolet_tick_request, unix_ms, 40, 8, int64_t);

SIZE(topolet_tick_sink, 32);
FIELD(topolet_tick_sink, struct_size, 0, 4, uint32_t);
FIELD(topolet_tick_sink, reserved, 4, 4, uint32_t);
FIELD(topolet_tick_sink, context, 8, 8, void*);
FIELD(topolet_tick_sink, replace, 16, 8, int32_t (*)(const topolet_tick_sink* sink, uint32_t entry, uint32_t flags, topolet_str reason));
FIELD(topolet_tick_sink, error, 24, 8, int32_t (*)(const topolet_tick_sink* sink, topolet_str message));

SIZE(topolet_tick, 16);
FIELD(topolet_tick, struct_size, 0, 4, uint32_t);
FIELD(topolet_tick, interval_ms, 4, 4, uint32_t);
FIELD(topolet_tick, tick, 8, 8, int32_t (*)(const topolet_instance* instance, const topolet_tick_request* request, const topolet_tick_sink* sink));

SIZE(topolet_pick_stage, 4);
VALUE(TOPOLET_PICK_CHOOSE, 0);
VALUE(TOPOLET_PICK_ORDER, 1);
VALUE(TOPOLET_PICK_REVIEW, 2);

SIZE(topolet_pick_request, 56);
FIELD(topolet_pick_request, struct_size, 0, 4, uint32_t);
FIELD(topolet_pick_request, candidate, 4, 4, uint32_t);
FIELD(topolet_pick_request, request, 8, 8, const topolet_request*);
FIELD(topolet_pick_request, usable, 16, 16, topolet_set);
FIELD(topolet_pick_request, chosen, 32, 16, topolet_set);
FIELD(topolet_pick_request, count, 48, 4, uint32_t);
FIELD(topolet_pick_request, stage, 52, 4, int32_t);

SIZE(topolet_pick_sink, 104);
FIELD(topolet_pick_sink, struct_size, 0, 4, uint32_t);
FIELD(topolet_pick_sink, reserved, 4, 4, uint32_t);
FIELD(topolet_pick_sink, context, 8, 8, void*);
FIELD(topolet_pick_sink, narrow, 16, 8, int32_t (*)(const topolet_pick_sink* sink, topolet_set cpus));
FIELD(topolet_pick_sink, withhold, 24, 8, int32_t (*)(const topolet_pick_sink* sink, topolet_set cpus));
FIELD(topolet_pick_sink, order, 32, 8, int32_t (*)(const topolet_pick_sink* sink, const uint32_t* os_indices, size_t count));
FIELD(topolet_pick_sink, reason, 40, 8, int32_t (*)(const topolet_pick_sink* sink, topolet_str reason));
FIELD(topolet_pick_sink, error, 48, 8, int32_t (*)(const topolet_pick_sink* sink, topolet_str message));
FIELD(topolet_pick_sink, unmet, 56, 8, int32_t (*)(const topolet_pick_sink* sink, topolet_str what));
FIELD(topolet_pick_sink, at_least, 64, 8, int32_t (*)(const topolet_pick_sink* sink, topolet_set cpus, uint32_t count));
FIELD(topolet_pick_sink, reject, 72, 8, int32_t (*)(const topolet_pick_sink* sink, topolet_str reason));
FIELD(topolet_pick_sink, code, 80, 8, int32_t (*)(const topolet_pick_sink* sink, topolet_str code));
FIELD(topolet_pick_sink, replace, 88, 8, int32_t (*)(const topolet_pick_sink* sink, uint32_t entry, uint32_t flags, topolet_str reason));
FIELD(topolet_pick_sink, soften, 96, 8, int32_t (*)(const topolet_pick_sink* sink));

SIZE(topolet_pick, 16);
FIELD(topolet_pick, struct_size, 0, 4, uint32_t);
FIELD(topolet_pick, reserved, 4, 4, uint32_t);
FIELD(topolet_pick, pick, 8, 8, int32_t (*)(const topolet_instance* instance, const topolet_pick_request* request, const topolet_pick_sink* sink));

SIZE(topolet_propose_sink, 32);
FIELD(topolet_propose_sink, struct_size, 0, 4, uint32_t);
FIELD(topolet_propose_sink, reserved, 4, 4, uint32_t);
FIELD(topolet_propose_sink, context, 8, 8, void*);
FIELD(topolet_propose_sink, nodes, 16, 8, int32_t (*)(const topolet_propose_sink* sink, topolet_set nodes));
FIELD(topolet_propose_sink, error, 24, 8, int32_t (*)(const topolet_propose_sink* sink, topolet_str message));

SIZE(topolet_propose, 16);
FIELD(topolet_propose, struct_size, 0, 4, uint32_t);
FIELD(topolet_propose, reserved, 4, 4, uint32_t);
FIELD(topolet_propose, propose, 8, 8, int32_t (*)(const topolet_instance* instance, const topolet_request* request, const topolet_propose_sink* sink));

SIZE(topolet_reads, 40);
FIELD(topolet_reads, struct_size, 0, 4, uint32_t);
FIELD(topolet_reads, flags, 4, 4, uint32_t);
FIELD(topolet_reads, env, 8, 16, topolet_strs);
FIELD(topolet_reads, annotations, 24, 16, topolet_strs);

SIZE(topolet_verdict_kind, 4);
VALUE(TOPOLET_VERDICT_ABSTAIN, 0);
VALUE(TOPOLET_VERDICT_REJECT, 1);
VALUE(TOPOLET_VERDICT_SCORE, 2);

SIZE(topolet_score_sink, 40);
FIELD(topolet_score_sink, struct_size, 0, 4, uint32_t);
FIELD(topolet_score_sink, reserved, 4, 4, uint32_t);
FIELD(topolet_score_sink, context, 8, 8, void*);
FIELD(topolet_score_sink, set, 16, 8, int32_t (*)(const topolet_score_sink* sink, uint32_t candidate, int32_t kind, int32_t score, topolet_str reason));
FIELD(topolet_score_sink, error, 24, 8, int32_t (*)(const topolet_score_sink* sink, topolet_str message));
FIELD(topolet_score_sink, code, 32, 8, int32_t (*)(const topolet_score_sink* sink, uint32_t candidate, topolet_str code));

SIZE(topolet_score, 16);
FIELD(topolet_score, struct_size, 0, 4, uint32_t);
FIELD(topolet_score, reserved, 4, 4, uint32_t);
FIELD(topolet_score, score, 8, 8, int32_t (*)(const topolet_instance* instance, const topolet_request* request, const topolet_score_sink* sink));

SIZE(topolet_state, 40);
FIELD(topolet_state, struct_size, 0, 4, uint32_t);
FIELD(topolet_state, reserved, 4, 4, uint32_t);
FIELD(topolet_state, get, 8, 8, int32_t (*)(const topolet_host* host, topolet_str key, void* buffer, size_t capacity, size_t* size));
FIELD(topolet_state, next, 16, 8, int32_t (*)(const topolet_host* host, topolet_str after, void* buffer, size_t capacity, size_t* size));
FIELD(topolet_state, set, 24, 8, int32_t (*)(const topolet_host* host, topolet_str key, topolet_str value));
FIELD(topolet_state, remove, 32, 8, int32_t (*)(const topolet_host* host, topolet_str key));

SIZE(topolet_wake, 16);
FIELD(topolet_wake, struct_size, 0, 4, uint32_t);
FIELD(topolet_wake, reserved, 4, 4, uint32_t);
FIELD(topolet_wake, tick_soon, 8, 8, int32_t (*)(const topolet_host* host));

/* A macro may be defined twice only if both say the same. */
#define TOPOLET_ABI_DRAFT 3u
#define TOPOLET_ABI_MINOR 0u
#define TOPOLET_ADJUST_ID "topolet.adjust/1"
#define TOPOLET_ADJUST_MAX_DEVICES 1024
#define TOPOLET_ADJUST_MAX_FIELDS 64
#define TOPOLET_ADJUST_MAX_KEY 256
#define TOPOLET_ADJUST_MAX_TAG 256
#define TOPOLET_ADJUST_MAX_TAGS 16
#define TOPOLET_ADJUST_MAX_VALUE 32768
#define TOPOLET_ANNOTATIONS_ID "topolet.annotations/1"
#define TOPOLET_ANNOTATIONS_MAX_LENGTH 63u
#define TOPOLET_ANNOTATIONS_MAX_NAMES 64u
#define TOPOLET_AT(type,items,stride,i) ((const type*)(const void*)((const char*)(items) + (size_t)(stride) * (size_t)(i)))
#define TOPOLET_CODES_ID "topolet.codes/1"
#define TOPOLET_CODES_MAX 64u
#define TOPOLET_CODES_MAX_HELP 1024u
#define TOPOLET_CODES_MAX_LENGTH 64u
#define TOPOLET_ENTRY_ADOPTED 4u
#define TOPOLET_ENTRY_PENDING 1u
#define TOPOLET_ENTRY_STARTED 2u
#define TOPOLET_ENTRY_SYMBOL "topolet_plugin_v1"
#define TOPOLET_EVENTS_ID "topolet.events/1"
#define TOPOLET_EVENT_ADOPTED 1u
#define TOPOLET_EVENT_EXIT_CODE_UNKNOWN 2u
#define TOPOLET_EXPORT __attribute__((visibility("default")))
#define TOPOLET_HAS(ptr,field) ((size_t)((const char*)&(ptr)->field - (const char*)(ptr)) + sizeof((ptr)->field) <= (size_t)(ptr)->struct_size)
#define TOPOLET_IO_PRIORITY_MAX 7
#define TOPOLET_LOG_ID "topolet.log/1"
#define TOPOLET_MEMORY_NUMA_BALANCING 4u
#define TOPOLET_MEMORY_RELATIVE_NODES 2u
#define TOPOLET_MEMORY_STATIC_NODES 1u
#define TOPOLET_NICE_MAX 19
#define TOPOLET_NICE_MIN (-20)
#define TOPOLET_NONE UINT32_MAX
#define TOPOLET_OPTION_REPEATED 1u
#define TOPOLET_OPTION_REQUIRED 2u
#define TOPOLET_OPTION_SECRET 4u
#define TOPOLET_PICK_ID "topolet.pick/1"
#define TOPOLET_PICK_MAX_SHARES 1024
#define TOPOLET_PROPOSE_ID "topolet.propose/1"
#define TOPOLET_PROPOSE_MAX_SETS 8u
#define TOPOLET_READS_ID "topolet.reads/1"
#define TOPOLET_READS_LOAD 1u
#define TOPOLET_READS_MAX_LENGTH 317u
#define TOPOLET_READS_MAX_PATTERNS 256u
#define TOPOLET_REPLACE_NOW 2u
#define TOPOLET_REPLACE_OTHER_NODES 1u
#define TOPOLET_REQUEST_KUBELET_CPUS 16u
#define TOPOLET_REQUEST_MUST_KEEP 1u
#define TOPOLET_REQUEST_PARTIAL 4u
#define TOPOLET_REQUEST_POD_SCOPE 32u
#define TOPOLET_REQUEST_SPREAD_CORES 64u
#define TOPOLET_REQUEST_STAYS 2u
#define TOPOLET_REQUEST_WHOLE_CORES 8u
#define TOPOLET_SCORE_ID "topolet.score/1"
#define TOPOLET_SCORE_MAX 100
#define TOPOLET_SCORE_MIN (-100)
#define TOPOLET_SET_MAX 1024u
#define TOPOLET_STATE_ID "topolet.state/1"
#define TOPOLET_STATE_MAX_KEY 256
#define TOPOLET_STATE_MAX_READ 65536
#define TOPOLET_STATE_MAX_VALUE 65536
#define TOPOLET_STATE_MAX_VALUES 4096
#define TOPOLET_STR(literal) { literal, sizeof(literal) - 1 }
#define TOPOLET_STRIDE_HAS(stride,type,field) (offsetof(type, field) + sizeof(((const type*)0)->field) <= (size_t)(stride))
#define TOPOLET_STRUCT_MAX 4096u
#define TOPOLET_TABLE_MAX 1024u
#define TOPOLET_TEXT_MAX 65536u
#define TOPOLET_TICK_ID "topolet.tick/1"
#define TOPOLET_TICK_MAX_MS 86400000u
#define TOPOLET_TICK_MIN_MS 100u
#define TOPOLET_WAKE_ID "topolet.wake/1"
#define TOPOLET_WEIGHT_MAX 1000
/* NOLINTEND */
