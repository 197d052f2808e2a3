// The stored fields of an allocation, a pod and a reported capacity: one line for each column and its field. A field
// that is added here is stored and read back; the schema of the store must have its column.
#pragma once

#include "core/engine/state/allocation.hpp"
#include "core/engine/state/reported_capacity.hpp"

namespace topolet::engine {

/// Calls `field(column, value)` for each. `Of` is Allocation or const Allocation; so for the pod.
template <class Of, class Field>
void for_each_field_of_allocation(Of& allocation, Field field) {
  auto& workload = allocation.workload;
  field("pod_uid", workload.key.pod_uid);
  field("container", workload.key.name);
  field("attempt", workload.key.attempt);
  field("sandbox_id", workload.key.sandbox_id);
  field("pod_namespace", workload.pod_namespace);
  field("pod_name", workload.pod_name);
  field("runtime_handler", workload.runtime_handler);
  field("qos", workload.qos);
  field("cpu_request_milli", workload.demand.cpu_request_milli);
  field("cpu_request_certainty", workload.demand.cpu_request_certainty);
  field("cpu_limit_milli", workload.demand.cpu_limit_milli);
  field("cpu_period_us", workload.demand.cpu_period_us);
  field("memory_request_bytes", workload.demand.memory_request_bytes);
  field("memory_request_estimated", workload.demand.memory_request_estimated);
  field("memory_limit_bytes", workload.demand.memory_limit_bytes);
  field("oom_score_adj", workload.demand.oom_score_adj);
  field("hugepages", workload.demand.hugepage_limit_bytes);
  field("kubelet_cpus", workload.kubelet_cpus);
  field("kubelet_mems", workload.kubelet_mems);
  field("kubelet_unified", workload.kubelet_unified);
  field("devices", workload.devices);
  field("cdi_devices", workload.cdi_devices);
  field("pod_labels", workload.pod_labels);
  field("pod_annotations", workload.pod_annotations);
  field("annotations", workload.annotations);
  field("settings", workload.settings);
  field("pod_demand", workload.pod_demand);
  field("pod_nodes", workload.pod_nodes);
  field("used_devices", workload.used_devices);
  field("tags", workload.tags);
  field("mode", allocation.placement.mode);
  field("cpus", allocation.placement.cpus);
  field("withheld", allocation.placement.withheld);
  field("mems", allocation.placement.mems);
  field("added", allocation.placement.added);
  field("within", allocation.within);
  field("vacating", allocation.vacating);
  field("vacating_alone", allocation.vacating_alone);
  field("conflict", allocation.conflict);
  field("phase", allocation.phase);
  field("phase_since_ms", allocation.phase_since);
  field("doubt_since_ms", allocation.doubt_since);
  field("stopping", allocation.stopping);
  field("container_id", allocation.container_id);
  field("generation", allocation.generation);
  field("reason", allocation.reason);
  field("preferred", allocation.preferred);
  field("arrived_cpus", allocation.arrived_cpus);
  field("evaluated_cpus", allocation.evaluated_cpus);
  field("restricted", allocation.restricted);
  field("nodes", allocation.nodes);
  field("squeezed", allocation.squeeze);
  field("seen_on", allocation.seen_on);
  field("overlapped", allocation.overlapped);
  field("overruled", allocation.overruled);
  field("hand", allocation.hand);
  field("stuck", allocation.stuck);
  field("quota", allocation.quota);
  field("unified", allocation.unified);
  field("adopted", allocation.adopted);
  field("shares_pool_row", allocation.shares_pool_row);
  field("mems_to_keep", allocation.mems_to_keep);
  field("last_move", allocation.last_move);
  field("widening", allocation.widening);
  field("moved_from", allocation.moved_from);
  field("narrowed_to", allocation.narrowed_to);
  field("memory_high", allocation.memory_high);
}

template <class Of, class Field>
void for_each_field_of_pod(Of& pod, Field field) {
  field("sandbox_id", pod.sandbox.id);
  field("pod_uid", pod.sandbox.pod_uid);
  field("pod_namespace", pod.sandbox.pod_namespace);
  field("pod_name", pod.sandbox.pod_name);
  field("runtime_handler", pod.sandbox.runtime_handler);
  field("ready", pod.sandbox.ready);
  field("annotations", pod.sandbox.annotations);
  field("nodes", pod.nodes);
  field("former", pod.former);
  field("denied", pod.denied);
  field("waiting", pod.waiting);
  field("warned", pod.warned);
  field("confined", pod.confined);
  field("made", pod.made);
  field("dropped_quota", pod.dropped_quota);
}

/// But for the node, which is the row's key.
template <class Of, class Field>
void for_each_field_of_capacity(Of& capacity, Field field) {
  field("milli", capacity.milli);
  field("until_ms", capacity.until);
  field("source", capacity.source);
  field("below_since_ms", capacity.below_since);
  field("lowers", capacity.lowers);
}

}  // namespace topolet::engine
