#include "core/audit/node_usage.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/placement/fewest_nodes.hpp"
#include "core/placement/shared_estimates.hpp"

namespace topolet::audit {
namespace {

NodeSet nodes_of(const MachineRecord& machine, const CpuSet& cpus) {
  NodeSet nodes;
  for (const MachineRecord::Node& node : machine.nodes) {
    if (!node.memory_only && node.cpus.intersects(cpus)) nodes.insert(node.node);
  }
  return nodes;
}

/// Counts the memory that containers request, by decision: those of a pod whose requests are one estimate have it once.
/// A container that has ended and is kept has none, and its part of the estimate is the others'.
std::map<std::int64_t, std::int64_t> booked_memory(const State& state) {
  std::map<std::string, std::vector<std::pair<std::int64_t, placement::Workload>>> pods;
  std::map<std::int64_t, std::int64_t> booked;
  for (const auto& [decision, record] : state.held()) {
    booked[decision] = record.memory_request_bytes;
    if (!record.memory_request_estimated || record.pod_uid.empty() || record.is_kept) continue;
    placement::Workload workload;
    workload.demand.memory_request_bytes = record.memory_request_bytes;
    workload.demand.memory_request_estimated = true;
    workload.demand.memory_limit_bytes = record.memory_limit_bytes;
    workload.demand.oom_score_adj = record.oom_score_adj;
    pods[record.pod_uid].emplace_back(decision, std::move(workload));
  }
  for (const auto& [uid, containers] : pods) {
    std::vector<const placement::Workload*> workloads;
    for (const auto& [decision, workload] : containers) workloads.push_back(&workload);
    const std::vector<placement::Demand> demands = placement::booked_demands(workloads);
    for (std::size_t i = 0; i < demands.size(); ++i) booked[containers[i].first] = demands[i].memory_request_bytes;
  }
  return booked;
}

/// Finds the CPUs that are kept for the next attempt of a container, which yield to others and so count as free.
CpuSet kept_cpus(const MachineRecord& machine, const State& state) {
  CpuSet kept;
  for (const auto& [decision, record] : state.held()) {
    if (record.is_kept) kept |= record.cpus | state.withheld_of(record);
  }
  return (kept & machine.allowed) - machine.reserved;
}

/// Whether fewer nodes have as many CPUs as it has alone; nobody else counts.
bool could_be_narrower(const MachineRecord& machine, const Record& record) {
  if (record.mode != placement::Mode::kExclusive) return false;
  const std::size_t nodes = nodes_of(machine, record.cpus).size();
  if (nodes < 2) return false;
  const CpuSet usable = record.cpus.intersects(machine.isolated)
                            ? machine.allowed & machine.isolated
                            : machine.allowed - machine.reserved - machine.isolated;
  std::vector<std::size_t> sizes;
  for (const MachineRecord::Node& node : machine.nodes) {
    if (!node.memory_only) sizes.push_back((node.cpus & usable).size());
  }
  return placement::fewest_nodes(std::move(sizes), record.cpus.size()) < nodes;
}

void add(NodeUsage& usage, const MachineRecord& machine, const State& state, const Record& record,
         std::int64_t memory_bytes) {
  const CpuSet cpus = state.cpus_of(record);
  const CpuSet here = cpus & usage.cpus;
  if (!here.empty()) ++usage.containers;
  if (!here.empty() && could_be_narrower(machine, record)) ++usage.could_be_narrower;
  if (record.mode == placement::Mode::kExclusive) {
    usage.exclusive |= here;
  } else if (!here.empty()) {
    usage.shared_request_milli +=
        record.cpu_request_milli * static_cast<std::int64_t>(here.size()) / static_cast<std::int64_t>(cpus.size());
  }
  usage.withheld |= state.withheld_of(record) & usage.cpus;
  const NodeSet memory = record.mems.empty() ? nodes_of(machine, cpus) : record.mems;
  if (memory.contains(usage.node)) {
    usage.memory_request_bytes += memory_bytes / static_cast<std::int64_t>(memory.size());
  }
}

}  // namespace

std::size_t largest_exclusive(const CpuSet& node_cpus, const CpuSet& pool, std::size_t min_shared_cpus) {
  const std::size_t spare = pool.size() > min_shared_cpus ? pool.size() - min_shared_cpus : 0;
  return std::min((node_cpus & pool).size(), spare);
}

std::vector<NodeUsage> usage_by_node(const MachineRecord& machine, const State& state, std::size_t min_shared_cpus) {
  const PoolRecord free = state.pool().value_or(PoolRecord());
  const CpuSet kept = kept_cpus(machine, state);
  const CpuSet pool = free.pool | (kept - machine.isolated);
  const std::map<std::int64_t, std::int64_t> memory = booked_memory(state);
  std::vector<NodeUsage> all;
  for (const MachineRecord::Node& node : machine.nodes) {
    NodeUsage& usage = all.emplace_back();
    usage.node = node.node;
    usage.memory_only = node.memory_only;
    usage.memory_bytes = node.memory_bytes;
    if (!node.memory_only) usage.cpus = node.cpus & machine.allowed;
    usage.reserved = usage.cpus & machine.reserved;
    usage.pool = usage.cpus & pool;
    usage.isolated = usage.cpus & (free.free_isolated | (kept & machine.isolated));
    usage.largest_exclusive = largest_exclusive(usage.cpus, pool, min_shared_cpus);
    for (const auto& [decision, record] : state.held()) {
      if (!record.is_kept) add(usage, machine, state, record, memory.at(decision));
    }
  }
  return all;
}

}  // namespace topolet::audit
