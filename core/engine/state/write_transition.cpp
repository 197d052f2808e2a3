#include "core/engine/state/write_transition.hpp"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/state/codec.hpp"
#include "core/engine/state/device_rows.hpp"
#include "core/engine/state/load_json.hpp"
#include "core/engine/state/verdicts_json.hpp"

namespace topolet::engine {
namespace {

// JSON written by hand, as this is done for every create. Names of policies need no escapes.

/// Empty where nothing was measured.
std::string phases_of(const placement::DecisionTimes& times) {
  if (times.decide.count() == 0) return {};
  std::string policies;
  for (const auto& [policy, time] : times.policies) {
    policies += fmt::format("{}\"{}\":{}", policies.empty() ? ",\"plugins\":{" : ",", policy, time.count());
  }
  return fmt::format("{{\"queued_us\":{},\"decide_us\":{}{}{}}}", times.queued.count(), times.decide.count(), policies,
                     policies.empty() ? "" : "}");
}

std::string phases_of(const std::optional<CreateTimes>& times) {
  if (!times) return {};
  return fmt::format("{{\"write_us\":{},\"neighbours_us\":{},\"runtime_us\":{}}}", times->write.count(),
                     times->neighbours.count(), times->runtime.count());
}

/// The CPUs that belong to one container, which are found by CPU: those that shared containers run on are told by the
/// pool's versions.
std::vector<store::HeldCpus> held_cpus_of(const Allocation& allocation) {
  const placement::Mode mode = allocation.placement.mode;
  std::vector<store::HeldCpus> held;
  if (mode == placement::Mode::kExclusive || mode == placement::Mode::kReserved)
    held.push_back({std::string(to_string(mode)), allocation.placement.cpus});
  held.push_back({"withheld", allocation.effective_withheld()});
  return held;
}

store::DecidedRow row_of(const Transition& transition, const AuditEntry& audit) {
  store::DecidedRow row;
  row.at_ms = transition.wall_time.count();
  row.generation = transition.generation;
  row.event = to_string(audit.event);
  row.reason = audit.reason;
  row.nodes = audit.nodes.to_string();
  row.reason_code = audit.reason_code;
  row.caused_by = audit.caused_by;
  row.phases = phases_of(audit.times);
  if (audit.setup != 0) row.setup = audit.setup;
  if (audit.memory_cost) row.memory_cost = to_json(*audit.memory_cost);
  if (audit.load) row.load = to_json(*audit.load);
  if (audit.verdicts) row.verdicts = encode_verdicts(*audit.verdicts);
  return row;
}

void describe(const placement::Workload& workload, const Transition& transition, store::DecidedRow& row) {
  row.pod_uid = workload.key.pod_uid;
  row.pod_namespace = workload.pod_namespace;
  row.pod_name = workload.pod_name;
  row.container = workload.key.name;
  row.attempt = workload.key.attempt;
  row.sandbox_id = workload.key.sandbox_id;
  row.runtime_handler = workload.runtime_handler;
  row.qos = to_string(workload.qos);
  row.cpu_request_milli = workload.demand.cpu_request_milli;
  row.cpu_request_certainty = to_string(workload.demand.cpu_request_certainty);
  row.cpu_limit_milli = workload.demand.cpu_limit_milli;
  row.memory_request_bytes = workload.demand.memory_request_bytes;
  row.memory_limit_bytes = workload.demand.memory_limit_bytes;
  row.memory_request_estimated = workload.demand.memory_request_estimated;
  row.oom_score_adj = workload.demand.oom_score_adj;
  row.hugepage_limit_bytes = workload.demand.hugepage_limit_bytes;
  row.settings = workload.settings;
  row.kubelet_cpus = workload.kubelet_cpus;
  row.kubelet_mems = workload.kubelet_mems;
  row.devices = devices_json(workload, transition.machine.get());
  row.tags = workload.tags;
}

Status write_decided(store::Store& store, const Transition& transition, const Change& change) {
  const Allocation& after = *change.after;
  store::DecidedRow row = row_of(transition, *change.audit);
  row.decision = after.decision;
  row.supersedes = change.supersedes;
  describe(after.workload, transition, row);
  row.container_id = change.before ? change.before->container_id : after.container_id;
  row.mode = to_string(after.placement.mode);
  row.cpus = after.placement.cpus;
  row.within = after.reach();
  row.withheld = after.effective_withheld();
  row.mems = after.placement.mems;
  row.conflict = after.conflict;
  row.held_cpus = held_cpus_of(after);
  const auto added = store.add(row);
  if (!added) return added.error();
  return store.put_allocation(after.decision, encode(after));
}

Status write_outcome(store::Store& store, const Transition& transition, const Change& change) {
  const Allocation& about = change.after ? *change.after : *change.before;
  store::OutcomeRow row;
  row.decision = about.decision;
  row.at_ms = transition.wall_time.count();
  row.state = change.outcome->state;
  row.container_id = about.container_id;
  row.code = static_cast<int>(change.outcome->code);
  row.message = change.outcome->message;
  row.phases = phases_of(change.outcome->times);
  return store.add(row);
}

Status write_change(store::Store& store, const Transition& transition, const Change& change) {
  if (change.after && change.audit) {
    if (Status written = write_decided(store, transition, change); !written) return written;
  } else if (change.after) {
    const store::Columns columns = encode_changes(*change.before, *change.after);
    const Status written = columns.empty() ? Status() : store.update_allocation(change.after->decision, columns);
    if (!written) return written;
  }
  if (change.outcome) {
    if (Status written = write_outcome(store, transition, change); !written) return written;
  }
  if (change.after || change.cause.empty()) return {};
  return store.add(
      store::EndedRow{change.before->decision, transition.wall_time.count(), transition.generation, change.cause});
}

Status write_recorded_event(store::Store& store, const Transition& transition, const RecordedEvent& recorded) {
  store::DecidedRow row = row_of(transition, recorded.audit);
  row.decision = recorded.decision;
  row.holds = false;
  if (recorded.subject) {
    describe(recorded.subject->workload, transition, row);
    row.container_id = recorded.subject->container_id;
    if (!row.container_id.empty()) {
      row.mode = to_string(recorded.subject->placement.mode);
      row.cpus = recorded.subject->placement.cpus;
    }
  }
  const auto added = store.add(row);
  return added ? Status() : Status(added.error());
}

/// The lowest CPU of what the CPU belongs to: a name for it that no other has.
std::optional<std::uint32_t> first_of(const std::vector<CpuSet>& groups, std::uint32_t position) {
  if (position == topology::kNoPosition || groups[position].empty()) return std::nullopt;
  return *groups[position].begin();
}

store::TopologyRow topology_row(const Transition& transition) {
  const topology::Topology& topology = *transition.topology;
  const CpuInventory& inventory = transition.topology_inventory;
  store::TopologyRow row{transition.generation,
                         transition.wall_time.count(),
                         inventory.allowed,
                         inventory.reserved,
                         inventory.isolated,
                         {},
                         {}};
  for (const topology::Pu& pu : topology.pus) {
    store::TopologyRow::Cpu& cpu = row.cpus.emplace_back();
    cpu.cpu = pu.os_index;
    if (pu.node != topology::kNoPosition) cpu.node = topology.nodes[pu.node].os_index;
    cpu.core = first_of(topology.cores, pu.core).value_or(pu.os_index);
    cpu.l3 = first_of(topology.l3s, pu.l3);
    if (pu.package != topology::kNoPosition) cpu.package = pu.package;
  }
  for (const topology::Node& node : topology.nodes) {
    row.nodes.push_back({node.os_index, node.cpus, node.memory_bytes, node.memory_only});
  }
  row.devices = device_rows(topology);
  return row;
}

std::optional<store::WholePoolRow> whole_pool_row(const Transition& transition) {
  const bool changes = transition.writes_pool || transition.pool != transition.pool_before ||
                       transition.pool_vacating != transition.pool_vacating_before;
  if (!changes) return std::nullopt;
  return store::WholePoolRow{transition.pool, transition.pool_vacating, transition.generation};
}

}  // namespace

Status write(store::Store& store, const Transition& transition) {
  for (const RecordedEvent& recorded : transition.recorded_events) {
    if (Status written = write_recorded_event(store, transition, recorded); !written) return written;
  }
  for (const Change& change : transition.changes) {
    if (Status written = write_change(store, transition, change); !written) return written;
  }
  if (transition.writes_pool || transition.pool != transition.pool_before) {
    Status written = store.add(store::PoolRow{transition.generation, transition.wall_time.count(), transition.pool,
                                              transition.free_reserved, transition.free_isolated,
                                              transition.pool_cause.decision, transition.pool_cause.what});
    if (!written) return written;
  }
  if (const auto row = whole_pool_row(transition)) {
    if (Status written = store.put_whole_pool(*row); !written) return written;
  }
  if (transition.topology) {
    if (Status written = store.add(topology_row(transition)); !written) return written;
  }
  if (transition.setup) {
    const Setup& setup = *transition.setup;
    Status written = store.add(store::SetupRow{setup.number, transition.generation, transition.wall_time.count(),
                                               setup.version, setup.config_text, setup.plugins});
    if (!written) return written;
  }
  for (const PodChange& change : transition.pods) {
    Status written = change.after ? store.put_pod(encode(*change.after)) : store.remove_pod(change.sandbox_id);
    if (!written) return written;
  }
  for (const CapacityChange& change : transition.capacities) {
    Status written =
        change.after ? store.put_capacity(change.node, encode(*change.after)) : store.remove_capacity(change.node);
    if (!written) return written;
  }
  if (transition.recent_sizes) {
    if (Status written = store.put_recent_sizes(encode(*transition.recent_sizes)); !written) return written;
  }
  for (const RepeatedDenial& repeated : transition.repeated) {
    if (Status written = store.count_repeat(repeated.decision, transition.wall_time.count()); !written) return written;
  }
  return store.set_generation(transition.generation);
}

}  // namespace topolet::engine
