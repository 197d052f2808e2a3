#include "core/audit/node_usage.hpp"

#include <algorithm>

namespace topolet::audit {
namespace {

NodeSet nodes_of(const MachineRecord& machine, const CpuSet& cpus) {
  NodeSet nodes;
  for (const MachineRecord::Node& node : machine.nodes) {
    if (!node.memory_only && node.cpus.intersects(cpus)) nodes.insert(node.node);
  }
  return nodes;
}

void add(NodeUsage& usage, const MachineRecord& machine, const State& state, const Record& record) {
  const CpuSet cpus = state.cpus_of(record);
  const CpuSet here = cpus & usage.cpus;
  if (!here.empty()) ++usage.containers;
  if (record.mode == placement::Mode::kExclusive) {
    usage.exclusive |= here;
  } else if (!here.empty()) {
    usage.shared_request_milli +=
        record.cpu_request_milli * static_cast<std::int64_t>(here.size()) / static_cast<std::int64_t>(cpus.size());
  }
  usage.withheld |= state.withheld_of(record) & usage.cpus;
  const NodeSet memory = record.mems.empty() ? nodes_of(machine, cpus) : record.mems;
  if (memory.contains(usage.node)) {
    usage.memory_request_bytes += record.memory_request_bytes / static_cast<std::int64_t>(memory.size());
  }
}

}  // namespace

std::size_t largest_exclusive(const CpuSet& node_cpus, const CpuSet& pool, std::size_t min_shared_cpus) {
  const std::size_t spare = pool.size() > min_shared_cpus ? pool.size() - min_shared_cpus : 0;
  return std::min((node_cpus & pool).size(), spare);
}

std::vector<NodeUsage> usage_by_node(const MachineRecord& machine, const State& state, std::size_t min_shared_cpus) {
  const PoolRecord free = state.pool().value_or(PoolRecord());
  std::vector<NodeUsage> all;
  for (const MachineRecord::Node& node : machine.nodes) {
    NodeUsage& usage = all.emplace_back();
    usage.node = node.node;
    usage.memory_only = node.memory_only;
    usage.memory_bytes = node.memory_bytes;
    if (!node.memory_only) usage.cpus = node.cpus & machine.allowed;
    usage.reserved = usage.cpus & machine.reserved;
    usage.pool = usage.cpus & free.pool;
    usage.isolated = usage.cpus & free.free_isolated;
    usage.largest_exclusive = largest_exclusive(usage.cpus, free.pool, min_shared_cpus);
    for (const auto& [decision, record] : state.held()) add(usage, machine, state, record);
  }
  return all;
}

}  // namespace topolet::audit
