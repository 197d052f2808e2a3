// Every field of what is recorded, once for writing and reading.
#pragma once

#include <array>
#include <tuple>

#include "core/load/load.hpp"
#include "core/placement/decide.hpp"
#include "core/placement/placement_rules.hpp"
#include "core/placement/policy.hpp"
#include "core/plugin/call/container_event.hpp"
#include "core/replay/json_values.hpp"
#include "core/topology/topology.hpp"

namespace topolet::replay {

template <>
struct Words<placement::Mode> {
  static auto all() {
    return std::array{placement::Mode::kExclusive, placement::Mode::kShared, placement::Mode::kReserved,
                      placement::Mode::kForeign};
  }
};

template <>
struct Words<placement::Qos> {
  static auto all() {
    return std::array{placement::Qos::kGuaranteed, placement::Qos::kBurstable, placement::Qos::kBestEffort,
                      placement::Qos::kUnknown};
  }
};

#define TOPOLET_FIELDS_OF(Type) \
  template <>                   \
  struct Fields<Type> {         \
    using T = Type;             \
    static auto all() {         \
      return std::make_tuple(
#define TOPOLET_END_OF_FIELDS \
  );                          \
  }                           \
  }                           \
  ;

// clang-format off
TOPOLET_FIELDS_OF(topology::Pu)
  field("os_index", &T::os_index), field("core", &T::core), field("l3", &T::l3), field("die", &T::die),
  field("node", &T::node), field("package", &T::package)
TOPOLET_END_OF_FIELDS

TOPOLET_FIELDS_OF(topology::HugePages)
  field("page_bytes", &T::page_bytes), field("count", &T::count)
TOPOLET_END_OF_FIELDS

TOPOLET_FIELDS_OF(topology::Node)
  field("os_index", &T::os_index), field("cpus", &T::cpus), field("memory_only", &T::memory_only),
  field("has_memory", &T::has_memory), field("subtype", &T::subtype), field("memory_bytes", &T::memory_bytes),
  field("huge_pages", &T::huge_pages)
TOPOLET_END_OF_FIELDS

TOPOLET_FIELDS_OF(topology::Domain)
  field("kind", &T::kind), field("cpus", &T::cpus), field("nodes", &T::nodes)
TOPOLET_END_OF_FIELDS

TOPOLET_FIELDS_OF(topology::CpuKind)
  field("efficiency", &T::efficiency), field("cpus", &T::cpus)
TOPOLET_END_OF_FIELDS

TOPOLET_FIELDS_OF(topology::Cache)
  field("level", &T::level), field("kind", &T::kind), field("bytes", &T::bytes), field("cpus", &T::cpus)
TOPOLET_END_OF_FIELDS

TOPOLET_FIELDS_OF(topology::PciBridge)
  field("address", &T::address), field("parent", &T::parent), field("vendor_id", &T::vendor_id),
  field("device_id", &T::device_id), field("cpus", &T::cpus), field("nodes", &T::nodes)
TOPOLET_END_OF_FIELDS

TOPOLET_FIELDS_OF(topology::PciDevice)
  field("address", &T::address), field("bridge", &T::bridge), field("class_id", &T::class_id),
  field("vendor_id", &T::vendor_id), field("device_id", &T::device_id), field("cpus", &T::cpus),
  field("nodes", &T::nodes), field("info", &T::info)
TOPOLET_END_OF_FIELDS

TOPOLET_FIELDS_OF(topology::OsDevice)
  field("name", &T::name), field("subtype", &T::subtype), field("kind", &T::kind),
  field("pci_device", &T::pci_device), field("cpus", &T::cpus), field("nodes", &T::nodes), field("info", &T::info)
TOPOLET_END_OF_FIELDS

TOPOLET_FIELDS_OF(topology::DeviceFile)
  field("path", &T::path), field("address", &T::address)
TOPOLET_END_OF_FIELDS

TOPOLET_FIELDS_OF(topology::Topology)
  field("generation", &T::generation), field("online", &T::online), field("present", &T::present),
  field("allowed", &T::allowed), field("isolated", &T::isolated), field("pus", &T::pus), field("cores", &T::cores),
  field("l3s", &T::l3s), field("dies", &T::dies), field("packages", &T::packages), field("nodes", &T::nodes),
  field("domains", &T::domains), field("distances", &T::distances), field("distances_known", &T::distances_known),
  field("cpu_kinds", &T::cpu_kinds), field("caches", &T::caches), field("pci_bridges", &T::pci_bridges),
  field("pci_devices", &T::pci_devices), field("os_devices", &T::os_devices), field("device_files", &T::device_files)
TOPOLET_END_OF_FIELDS

TOPOLET_FIELDS_OF(placement::ContainerKey)
  field("pod", &T::pod_uid), field("container", &T::name), field("attempt", &T::attempt),
  field("sandbox", &T::sandbox_id)
TOPOLET_END_OF_FIELDS

TOPOLET_FIELDS_OF(placement::Demand)
  field("cpu_request_milli", &T::cpu_request_milli), field("cpu_limit_milli", &T::cpu_limit_milli),
  field("memory_request", &T::memory_request_bytes), field("memory_request_estimated", &T::memory_request_estimated),
  field("memory_limit", &T::memory_limit_bytes), field("hugepages", &T::hugepage_limit_bytes),
  field("cpu_request_certainty", &T::cpu_request_certainty), field("oom_score_adj", &T::oom_score_adj),
  field("cpu_period", &T::cpu_period_us)
TOPOLET_END_OF_FIELDS

TOPOLET_FIELDS_OF(placement::Workload)
  field("key", &T::key), field("name", &T::pod_name), field("namespace", &T::pod_namespace),
  field("runtime_handler", &T::runtime_handler), field("qos", &T::qos), field("demand", &T::demand),
  field("cpuset_cpus", &T::kubelet_cpus), field("cpuset_mems", &T::kubelet_mems),
  field("unified", &T::kubelet_unified), field("devices", &T::devices),
  field("cdi_devices", &T::cdi_devices), field("env", &T::env), field("labels", &T::pod_labels),
  field("pod_annotations", &T::pod_annotations), field("annotations", &T::annotations),
  field("settings", &T::settings), field("pod_demand", &T::pod_demand), field("pod_nodes", &T::pod_nodes),
  field("used_devices", &T::used_devices), field("tags", &T::tags)
TOPOLET_END_OF_FIELDS

TOPOLET_FIELDS_OF(placement::MemoryPolicy)
  field("mode", &T::mode), field("nodes", &T::nodes), field("static_nodes", &T::static_nodes),
  field("relative_nodes", &T::relative_nodes), field("numa_balancing", &T::numa_balancing)
TOPOLET_END_OF_FIELDS

TOPOLET_FIELDS_OF(placement::Scheduler)
  field("class", &T::scheduler_class), field("nice", &T::nice)
TOPOLET_END_OF_FIELDS

TOPOLET_FIELDS_OF(placement::IoPriority)
  field("class", &T::io_class), field("priority", &T::priority)
TOPOLET_END_OF_FIELDS

TOPOLET_FIELDS_OF(placement::Settable)
  field("memory_modes", &T::memory_modes), field("scheduler", &T::scheduler), field("io_priority", &T::io_priority),
  field("through", &T::through)
TOPOLET_END_OF_FIELDS

TOPOLET_FIELDS_OF(placement::AddedFields)
  field("env", &T::env), field("annotations", &T::annotations), field("tags", &T::tags),
  field("unified", &T::unified), field("rdt_class", &T::rdt_class), field("memory_policy", &T::memory_policy),
  field("scheduler", &T::scheduler), field("io_priority", &T::io_priority)
TOPOLET_END_OF_FIELDS

TOPOLET_FIELDS_OF(placement::Placement)
  field("mode", &T::mode), field("cpus", &T::cpus), field("withheld", &T::withheld), field("mems", &T::mems),
  field("added", &T::added)
TOPOLET_END_OF_FIELDS

TOPOLET_FIELDS_OF(placement::LedgerEntry)
  field("key", &T::key), field("qos", &T::qos), field("placement", &T::placement), field("demand", &T::demand),
  field("within", &T::within), field("bound", &T::bound), field("settings", &T::settings), field("name", &T::name),
  field("used_devices", &T::used_devices), field("tags", &T::tags), field("pod_name", &T::pod_name),
  field("pod_namespace", &T::pod_namespace), field("runtime_handler", &T::runtime_handler),
  field("labels", &T::pod_labels), field("pod_annotations", &T::pod_annotations),
  field("annotations", &T::annotations), field("devices", &T::devices), field("cdi_devices", &T::cdi_devices),
  field("container_id", &T::container_id), field("pending", &T::pending), field("started", &T::started),
  field("adopted", &T::adopted)
TOPOLET_END_OF_FIELDS

TOPOLET_FIELDS_OF(placement::Candidate)
  field("kind", &T::kind), field("is_domain", &T::is_domain), field("nodes", &T::nodes), field("cpus", &T::cpus),
  field("distance", &T::distance)
TOPOLET_END_OF_FIELDS

TOPOLET_FIELDS_OF(placement::PlacementRules)
  field("exclusive", &T::exclusive), field("when_full", &T::when_full), field("isolated", &T::isolated),
  field("min_shared_cpus", &T::min_shared_cpus), field("reserved_namespaces", &T::reserved_namespaces),
  field("exclusive_namespaces", &T::exclusive_namespaces), field("annotations", &T::annotations),
  field("node_name", &T::node_name), field("crash_hold", &T::crash_hold),
  field("memory_migrate", &T::memory_migrate), field("heal", &T::heal), field("make_room", &T::make_room),
  field("move_memory_bytes", &T::move_memory_bytes), field("drop_exclusive_quota", &T::drop_exclusive_quota)
TOPOLET_END_OF_FIELDS

TOPOLET_FIELDS_OF(placement::Had)
  field("cpus", &T::cpus), field("withheld", &T::withheld), field("mems", &T::mems)
TOPOLET_END_OF_FIELDS

/// The fields that are recorded of each request as they are: all but machine, ledger, workload and candidates, and what
/// decide() knows by its votes.
TOPOLET_FIELDS_OF(load::ContainerLoad)
  field("cpu_milli", &T::cpu_milli), field("psi_some_permille", &T::psi_some_permille), field("age_ms", &T::age),
  field("is_throttled", &T::is_throttled), field("memory_bytes", &T::memory_bytes),
  field("memory_psi_permille", &T::memory_psi_permille), field("io_psi_permille", &T::io_psi_permille)
TOPOLET_END_OF_FIELDS

TOPOLET_FIELDS_OF(load::NodeLoad)
  field("effective_milli", &T::effective_milli), field("age_ms", &T::age), field("used_milli", &T::used_milli)
TOPOLET_END_OF_FIELDS

TOPOLET_FIELDS_OF(load::CpuLoad)
  field("effective_milli", &T::effective_milli), field("age_ms", &T::age), field("used_milli", &T::used_milli)
TOPOLET_END_OF_FIELDS

TOPOLET_FIELDS_OF(placement::PolicyRequest)
  field("container_id", &T::container_id), field("occasion", &T::occasion), field("had", &T::had),
  field("min_shared_cpus", &T::min_shared_cpus), field("largest_exclusive_cpus", &T::largest_exclusive_cpus),
  field("rdt_classes", &T::rdt_classes), field("any_rdt_class", &T::any_rdt_class),
  field("settable", &T::settable),
  field("candidates_are_cut", &T::candidates_are_cut),
  field("exclusive", &T::exclusive), field("exclusive_cpus", &T::exclusive_cpus),
  field("awaited_cpus", &T::awaited_cpus),
  field("why_not_exclusive", &T::why_not_exclusive), field("shared_mode", &T::shared_mode),
  field("kubelet_hands_out_cpusets", &T::kubelet_hands_out_cpusets),
  field("excluded_node_sets", &T::excluded_node_sets), field("whole_pool", &T::whole_pool), field("from", &T::from),
  field("zone_is_of_pool", &T::zone_is_of_pool), field("keep", &T::keep),
  field("retained_withheld", &T::retained_withheld), field("keep_nodes", &T::keep_nodes),
  field("must_retain", &T::must_retain), field("stay_near", &T::stay_near)
TOPOLET_END_OF_FIELDS

TOPOLET_FIELDS_OF(placement::CandidateOpinions::Opinion)
  field("policy", &T::policy), field("says", &T::kind), field("score", &T::score), field("reason", &T::reason)
TOPOLET_END_OF_FIELDS

TOPOLET_FIELDS_OF(placement::CandidateOpinions)
  field("nodes", &T::nodes), field("score", &T::score), field("rejected", &T::rejected), field("words", &T::opinions)
TOPOLET_END_OF_FIELDS

TOPOLET_FIELDS_OF(placement::Verdicts)
  field("candidates", &T::candidates), field("best", &T::best), field("rejected", &T::rejected),
  field("lost_votes", &T::lost_votes), field("dropped", &T::dropped), field("codes", &T::codes)
TOPOLET_END_OF_FIELDS

TOPOLET_FIELDS_OF(placement::WishedReplacement)
  field("key", &T::key), field("move_nodes", &T::move_nodes), field("why", &T::why)
TOPOLET_END_OF_FIELDS

/// The fields that must be the same when the decision is made again: all but times and configuration number.
TOPOLET_FIELDS_OF(placement::Decision)
  field("denied", &T::denied), field("unpinned", &T::unpinned), field("conflict", &T::conflict),
  field("shared_because_full", &T::shared_because_full), field("soft_home", &T::soft_home), field("placement", &T::placement),
  field("within", &T::within), field("nodes", &T::nodes), field("cpus_of_candidate", &T::cpus_of_candidate),
  field("used_devices", &T::used_devices), field("tags", &T::tags), field("unified", &T::unified),
  field("reason", &T::reason), field("reason_code", &T::reason_code), field("verdicts", &T::verdicts),
  field("replace", &T::replace)
TOPOLET_END_OF_FIELDS

TOPOLET_FIELDS_OF(plugin::ContainerEvent)
  field("what", &T::kind), field("workload", &T::workload), field("placement", &T::placement),
  field("sequence", &T::sequence), field("container_id", &T::container_id), field("reason", &T::reason),
  field("exit_code", &T::exit_code), field("adopted", &T::adopted)
TOPOLET_END_OF_FIELDS

TOPOLET_FIELDS_OF(plugin::MoveRequest)
  field("policy", &T::plugin), field("key", &T::key), field("move_nodes", &T::move_nodes), field("reason", &T::reason),
  field("now", &T::now)
TOPOLET_END_OF_FIELDS
// clang-format on

#undef TOPOLET_FIELDS_OF
#undef TOPOLET_END_OF_FIELDS

}  // namespace topolet::replay
