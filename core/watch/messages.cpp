#include "core/watch/messages.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "core/engine/state/audit_event.hpp"

namespace topolet::watch {
namespace {

void add_devices(const topology::Topology& topology, v1::Machine& machine) {
  for (const topology::OsDevice& device : topology.os_devices) {
    v1::Device& told = *machine.add_devices();
    told.set_name(device.name);
    if (device.pci_device != topology::kNoPosition) told.set_address(topology.pci_devices[device.pci_device].address);
    told.set_kind(std::string(to_string(device.kind)));
    told.set_nodes(device.nodes.to_string());
    told.set_cpus(device.cpus.to_string());
  }
}

v1::Event event_of(const engine::AuditEntry& audit, std::int64_t decision, const placement::Workload* subject) {
  v1::Event event;
  event.set_event(std::string(to_string(audit.event)));
  event.set_decision(decision);
  event.set_reason(audit.reason);
  event.set_reason_code(audit.reason_code);
  event.set_nodes(audit.nodes.to_string());
  if (subject != nullptr) {
    *event.mutable_key() = key_of(subject->key);
    event.set_pod_name(subject->pod_name);
    event.set_pod_namespace(subject->pod_namespace);
    event.set_qos(std::string(to_string(subject->qos)));
  }
  if (!audit.verdicts) return event;
  for (const placement::CandidateOpinions& row : audit.verdicts->best) {
    v1::Candidate& candidate = *event.add_candidates();
    candidate.set_nodes(row.nodes);
    candidate.set_score(row.score);
    candidate.set_rejected(row.rejected);
    for (const placement::CandidateOpinions::Opinion& said : row.opinions) {
      v1::Opinion& opinion = *candidate.add_opinions();
      opinion.set_policy(said.policy);
      opinion.set_kind(said.kind);
      opinion.set_score(said.score);
      opinion.set_reason(said.reason);
    }
  }
  return event;
}

Result<placement::Qos> qos_from(const v1::PendingContainer& pending) {
  for (const placement::Qos qos :
       {placement::Qos::kGuaranteed, placement::Qos::kBurstable, placement::Qos::kBestEffort}) {
    if (to_string(qos) == pending.qos()) return qos;
  }
  return Error{Code::kInvalidArgument,
               fmt::format("the pending container {} of pod {} has the QoS class '{}'; it is one of guaranteed, "
                           "burstable, besteffort",
                           pending.name(), pending.pod_uid(), pending.qos())};
}

}  // namespace

v1::ContainerKey key_of(const placement::ContainerKey& key) {
  v1::ContainerKey told;
  told.set_pod_uid(key.pod_uid);
  told.set_name(key.name);
  told.set_attempt(key.attempt);
  told.set_sandbox_id(key.sandbox_id);
  return told;
}

v1::Container container_of(const engine::Allocation& allocation) {
  const placement::Workload& workload = allocation.workload;
  const placement::Demand& demand = workload.demand;
  v1::Container told;
  *told.mutable_key() = key_of(workload.key);
  told.set_pod_name(workload.pod_name);
  told.set_pod_namespace(workload.pod_namespace);
  told.set_container_id(allocation.container_id);
  told.set_qos(std::string(to_string(workload.qos)));
  told.set_phase(std::string(to_string(allocation.phase)));
  told.set_phase_since_ms(allocation.phase_since.count());
  told.set_mode(std::string(seen_mode(allocation)));
  told.set_cpus(allocation.placement.cpus.to_string());
  told.set_withheld(allocation.effective_withheld().to_string());
  told.set_mems(allocation.placement.mems.to_string());
  told.set_nodes(allocation.nodes.to_string());
  told.set_conflict(allocation.conflict);
  told.set_squeeze(std::string(to_string(allocation.squeeze)));
  told.set_cpu_request_milli(demand.cpu_request_milli);
  told.set_cpu_request_certainty(std::string(to_string(demand.cpu_request_certainty)));
  told.set_cpu_limit_milli(demand.cpu_limit_milli);
  told.set_memory_request_bytes(demand.memory_request_bytes);
  told.set_memory_request_estimated(demand.memory_request_estimated);
  told.set_memory_limit_bytes(demand.memory_limit_bytes);
  for (const auto& [page, bytes] : demand.hugepage_limit_bytes) (*told.mutable_hugepage_limit_bytes())[page] = bytes;
  for (const std::string& device : workload.used_devices) told.add_used_devices(device);
  told.set_generation(allocation.generation);
  told.set_decision(allocation.decision);
  told.set_reason(allocation.reason);
  told.set_seen_on(allocation.seen_on.to_string());
  told.set_overlapped(allocation.overlapped.to_string());
  if (allocation.stuck) told.set_stuck_on(allocation.stuck->cpus.to_string());
  if (allocation.overruled) told.set_overruled_since_ms(allocation.overruled->since.count());
  return told;
}

v1::Machine machine_of(const topology::Topology& topology) {
  v1::Machine machine;
  machine.set_generation(topology.generation);
  for (const CpuSet& package : topology.packages) machine.add_packages(package.to_string());
  for (const CpuSet& l3 : topology.l3s) machine.add_l3s(l3.to_string());
  for (const CpuSet& core : topology.cores) machine.add_cores(core.to_string());
  for (const topology::Node& node : topology.nodes) {
    v1::Node& told = *machine.add_nodes();
    told.set_os_index(node.os_index);
    told.set_cpus(node.cpus.to_string());
    told.set_memory_only(node.memory_only);
    told.set_memory_bytes(node.memory_bytes);
    for (const topology::HugePages& pages : node.huge_pages)
      (*told.mutable_huge_pages())[pages.page_bytes] = pages.count;
    told.set_subtype(node.subtype);
  }
  for (const std::uint32_t distance : topology.distances) machine.add_distances(distance);
  machine.set_distances_known(topology.distances_known);
  add_devices(topology, machine);
  machine.set_online(topology.online.to_string());
  machine.set_present(topology.present.to_string());
  return machine;
}

v1::Cpus cpus_of(const engine::CpuInventory& inventory, const CpuSet& pool, const CpuSet& free_isolated) {
  v1::Cpus cpus;
  cpus.set_allowed(inventory.allowed.to_string());
  cpus.set_reserved(inventory.reserved.to_string());
  cpus.set_isolated(free_isolated.to_string());
  cpus.set_pool(pool.to_string());
  cpus.set_all_isolated(((inventory.isolated & inventory.allowed) - inventory.reserved).to_string());
  return cpus;
}

v1::Capacity capacity_of(const engine::ReportedCapacity& told) {
  v1::Capacity capacity;
  capacity.set_node(told.node);
  capacity.set_effective_cpu_milli(told.milli);
  capacity.set_until_ms(told.until.count());
  capacity.set_source(told.source);
  capacity.set_below_since_ms(told.below_since.count());
  capacity.set_lowers(told.lowers);
  return capacity;
}

v1::Delta delta_of(const engine::Transition& transition, const engine::CpuInventory& inventory) {
  v1::Delta delta;
  delta.set_generation(transition.generation);
  delta.set_time_ms(transition.wall_time.count());
  for (const engine::Change& change : transition.changes) {
    if (change.after) {
      *delta.add_changed() = container_of(*change.after);
    } else if (change.before) {
      *delta.add_ended() = key_of(change.before->workload.key);
    }
    if (!change.audit) continue;
    const engine::Allocation* subject = change.after ? &*change.after : change.before ? &*change.before : nullptr;
    if (subject != nullptr) *delta.add_events() = event_of(*change.audit, subject->decision, &subject->workload);
  }
  for (const engine::RecordedEvent& recorded : transition.recorded_events) {
    *delta.add_events() =
        event_of(recorded.audit, recorded.decision, recorded.subject ? &recorded.subject->workload : nullptr);
  }
  if (transition.inventory || transition.writes_pool || transition.pool != transition.pool_before) {
    *delta.mutable_cpus() = cpus_of(inventory, transition.pool, transition.free_isolated);
  }
  if (transition.topology) *delta.mutable_machine() = machine_of(*transition.topology);
  for (const engine::CapacityChange& change : transition.capacities) {
    if (change.after) {
      *delta.add_capacities() = capacity_of(*change.after);
    } else {
      delta.add_capacities_ended(change.node);
    }
  }
  return delta;
}

Result<placement::Workload> workload_of(const v1::PendingContainer& pending) {
  if (pending.pod_uid().empty() || pending.name().empty()) {
    return Error{Code::kInvalidArgument, "a pending container needs pod_uid and name"};
  }
  const Result<placement::Qos> qos = qos_from(pending);
  if (!qos) return qos.error();
  placement::Workload workload;
  workload.key.pod_uid = pending.pod_uid();
  workload.key.name = pending.name();
  workload.pod_name = pending.pod_name();
  workload.pod_namespace = pending.pod_namespace();
  workload.qos = *qos;
  workload.demand.cpu_request_milli = pending.cpu_request_milli();
  workload.demand.cpu_limit_milli = pending.cpu_limit_milli();
  workload.demand.memory_request_bytes = pending.memory_request_bytes();
  workload.demand.memory_limit_bytes = pending.memory_limit_bytes();
  for (const auto& [page, bytes] : pending.hugepage_limit_bytes()) workload.demand.hugepage_limit_bytes[page] = bytes;
  if (pending.has_pod_cpu_request_milli()) {
    placement::Demand& of_pod = workload.pod_demand.emplace();
    of_pod.cpu_request_milli = pending.pod_cpu_request_milli();
    of_pod.memory_limit_bytes = pending.pod_memory_bytes();
    if (workload.qos == placement::Qos::kGuaranteed) of_pod.memory_request_bytes = pending.pod_memory_bytes();
  }
  workload.pod_annotations = SharedStringMap::Map(pending.annotations().begin(), pending.annotations().end());
  return workload;
}

Result<std::vector<engine::PendingContainer>> pending_of(const v1::FitsRequest& request) {
  if (request.pending_size() > kMaxPendingContainers) {
    return Error{Code::kResourceExhausted,
                 fmt::format("{} pending containers are too many to be placed for one answer; "
                             "at most {} may be named",
                             request.pending_size(), kMaxPendingContainers)};
  }
  std::vector<engine::PendingContainer> pending;
  for (const v1::PendingContainer& container : request.pending()) {
    Result<placement::Workload> workload = workload_of(container);
    if (!workload) return workload.error();
    pending.emplace_back(*std::move(workload),
                         std::vector<std::string>(container.after().begin(), container.after().end()));
    Result<NodeSet> near = NodeSet::parse(container.device_nodes());
    if (!near)
      return Error{Code::kInvalidArgument, fmt::format("the nodes of the devices of the pending container {}: {}",
                                                       container.name(), near.error().message)};
    pending.back().device_nodes = *std::move(near);
    pending.back().grows = container.grows();
  }
  return pending;
}

Error nobody_waits() { return {Code::kCancelled, "nobody waits for the answer any more"}; }

Result<v1::FitsResponse> answer_of(const engine::Fits& fits) {
  if (fits.lost_votes) {
    return Error{Code::kUnavailable, "a policy did not answer, so that it is not known what fits; try again"};
  }
  v1::FitsResponse response;
  response.set_generation(fits.generation);
  response.set_gives_exclusive_cpus(fits.gives_exclusive_cpus);
  response.set_kubelet_hands_out_cpus(fits.kubelet_hands_out_cpus);
  response.set_node_name(fits.node_name);
  response.set_ignores_zones(fits.ignores_zones);
  response.set_isolated(std::string(to_string(fits.isolated)));
  for (const std::string& name : fits.reserved_namespaces) response.add_reserved_namespaces(name);
  for (const std::string& pattern : fits.exclusive_namespaces) response.add_exclusive_namespaces(pattern);
  for (const engine::NodeFit& node : fits.nodes) {
    v1::NodeFit& told = *response.add_nodes();
    told.set_os_index(node.node);
    told.set_exclusive_cpus(node.exclusive_cpus);
    told.set_booked_memory_bytes(node.booked_memory_bytes);
    told.set_shared_cpus(node.shared_cpus);
    told.set_pool_cpus(node.pool_cpus);
    told.set_isolated_cpus(node.isolated_cpus);
    for (const auto& [size, bytes] : node.booked_huge_page_bytes)
      (*told.mutable_booked_huge_page_bytes())[size] = bytes;
  }
  for (const engine::UnplacedContainer& container : fits.unplaced) {
    v1::Unplaced& told = *response.add_unplaced();
    told.set_pod_uid(container.key.pod_uid);
    told.set_name(container.key.name);
    told.set_reason(container.reason);
  }
  return response;
}

}  // namespace topolet::watch
