/* Made by scripts/abi-baseline. One function for each struct and enum of the plugin ABI: abidiff sees a type only where
 * a symbol leads to it. */
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

#define SURFACE(type, name) \
  TOPOLET_EXPORT void name(const type* value); \
  void name(const type* value) { (void)value; }

SURFACE(topolet_str, surface_str)
SURFACE(topolet_strs, surface_strs)
SURFACE(topolet_kv, surface_kv)
SURFACE(topolet_kvs, surface_kvs)
SURFACE(topolet_set, surface_set)
SURFACE(topolet_status, surface_status)
SURFACE(topolet_pu, surface_pu)
SURFACE(topolet_huge_pages, surface_huge_pages)
SURFACE(topolet_node, surface_node)
SURFACE(topolet_domain_kind, surface_domain_kind)
SURFACE(topolet_domain, surface_domain)
SURFACE(topolet_cpu_kind, surface_cpu_kind)
SURFACE(topolet_cache_kind, surface_cache_kind)
SURFACE(topolet_cache, surface_cache)
SURFACE(topolet_pci_bridge, surface_pci_bridge)
SURFACE(topolet_pci_device, surface_pci_device)
SURFACE(topolet_os_device_kind, surface_os_device_kind)
SURFACE(topolet_os_device, surface_os_device)
SURFACE(topolet_topology, surface_topology)
SURFACE(topolet_qos, surface_qos)
SURFACE(topolet_certainty, surface_certainty)
SURFACE(topolet_huge_page_limit, surface_huge_page_limit)
SURFACE(topolet_demand, surface_demand)
SURFACE(topolet_workload, surface_workload)
SURFACE(topolet_mode, surface_mode)
SURFACE(topolet_ledger_entry, surface_ledger_entry)
SURFACE(topolet_node_demand, surface_node_demand)
SURFACE(topolet_ledger, surface_ledger)
SURFACE(topolet_occasion, surface_occasion)
SURFACE(topolet_cpu_source, surface_cpu_source)
SURFACE(topolet_why_shared, surface_why_shared)
SURFACE(topolet_candidate, surface_candidate)
SURFACE(topolet_node_load, surface_node_load)
SURFACE(topolet_pu_load, surface_pu_load)
SURFACE(topolet_entry_load, surface_entry_load)
SURFACE(topolet_load, surface_load)
SURFACE(topolet_request, surface_request)
SURFACE(topolet_option_type, surface_option_type)
SURFACE(topolet_option, surface_option)
SURFACE(topolet_host, surface_host)
SURFACE(topolet_error_sink, surface_error_sink)
SURFACE(topolet_instance, surface_instance)
SURFACE(topolet_purpose, surface_purpose)
SURFACE(topolet_create_request, surface_create_request)
SURFACE(topolet_plugin_entry, surface_plugin_entry)
SURFACE(topolet_asks, surface_asks)
SURFACE(topolet_memory_mode, surface_memory_mode)
SURFACE(topolet_scheduler_class, surface_scheduler_class)
SURFACE(topolet_io_class, surface_io_class)
SURFACE(topolet_adjust_request, surface_adjust_request)
SURFACE(topolet_adjust_sink, surface_adjust_sink)
SURFACE(topolet_adjust, surface_adjust)
SURFACE(topolet_annotations, surface_annotations)
SURFACE(topolet_codes, surface_codes)
SURFACE(topolet_event_kind, surface_event_kind)
SURFACE(topolet_event, surface_event)
SURFACE(topolet_event_sink, surface_event_sink)
SURFACE(topolet_events, surface_events)
SURFACE(topolet_log_level, surface_log_level)
SURFACE(topolet_log, surface_log)
SURFACE(topolet_tick_request, surface_tick_request)
SURFACE(topolet_tick_sink, surface_tick_sink)
SURFACE(topolet_tick, surface_tick)
SURFACE(topolet_pick_stage, surface_pick_stage)
SURFACE(topolet_pick_request, surface_pick_request)
SURFACE(topolet_pick_sink, surface_pick_sink)
SURFACE(topolet_pick, surface_pick)
SURFACE(topolet_propose_sink, surface_propose_sink)
SURFACE(topolet_propose, surface_propose)
SURFACE(topolet_reads, surface_reads)
SURFACE(topolet_verdict_kind, surface_verdict_kind)
SURFACE(topolet_score_sink, surface_score_sink)
SURFACE(topolet_score, surface_score)
SURFACE(topolet_state, surface_state)
SURFACE(topolet_wake, surface_wake)

/* Leads to nothing: a plugin defines it. */
const topolet_plugin_entry topolet_plugin_v1 = {0};
/* NOLINTEND */
