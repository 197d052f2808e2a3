#include "core/audit/move_effects.hpp"

#include <set>
#include <utility>

#include "core/audit/rows.hpp"

namespace topolet::audit {

Result<Localities> Localities::between(const store::Database& database, std::int64_t since_ms, std::int64_t until_ms) {
  Localities localities;
  // The newest has the last word on a CPU; one that was offline then is known from an earlier one.
  Status read = for_each_row(
      database,
      "SELECT cpu, node, l3 FROM topology_cpu WHERE topology IN (SELECT topology FROM topology WHERE at_ms <= ?2 AND "
      "topology >= coalesce((SELECT max(topology) FROM topology WHERE at_ms <= ?1), 0)) ORDER BY topology",
      [&](const store::Statement& row) -> Status {
        Locality& of_cpu = localities.by_cpu_[static_cast<std::uint32_t>(row.integer(0))];
        of_cpu = {};
        if (!row.is_null(1)) of_cpu.node = static_cast<std::uint32_t>(row.integer(1));
        if (!row.is_null(2)) of_cpu.l3 = static_cast<std::uint32_t>(row.integer(2));
        return {};
      },
      since_ms, until_ms);
  if (!read) return read.error();
  return localities;
}

NodeSet Localities::nodes_of(const CpuSet& cpus) const {
  NodeSet nodes;
  for (const std::uint32_t cpu : cpus) {
    const auto known = by_cpu_.find(cpu);
    if (known != by_cpu_.end() && known->second.node) nodes.insert(*known->second.node);
  }
  return nodes;
}

Spread Localities::spread(const CpuSet& cpus, const NodeSet& device_nodes) const {
  Spread spread{nodes_of(cpus).size(), 0, std::nullopt};
  std::set<std::uint32_t> l3s;
  std::size_t beside = 0;
  for (const std::uint32_t cpu : cpus) {
    const auto known = by_cpu_.find(cpu);
    if (known == by_cpu_.end()) continue;
    if (known->second.l3) l3s.insert(*known->second.l3);
    beside += known->second.node && device_nodes.contains(*known->second.node) ? 1 : 0;
  }
  spread.l3s = l3s.size();
  if (!device_nodes.empty()) spread.remote_cpus = cpus.size() - beside;
  return spread;
}

MoveEffects Localities::effects(const Record& record, const CpuSet& from, const CpuSet& to, const NodeSet& device_nodes,
                                const NotedMemory& memory) const {
  MoveEffects effects{spread(from, device_nodes), spread(to, device_nodes), (to - from).size(), std::nullopt};
  const NodeSet before = nodes_of(from);
  const NodeSet left = before - nodes_of(to) - record.mems;
  // Bound to other nodes, the kernel has taken it along.
  if (left.empty() || !record.mems.empty() || memory.follows) {
    effects.memory_left_bytes = 0;
  } else if (memory.bytes) {
    effects.memory_left_bytes = memory.bytes;
  } else if (record.memory_request_bytes > 0) {
    const auto parts = static_cast<std::int64_t>(before.size());
    effects.memory_left_bytes = record.memory_request_bytes / parts * static_cast<std::int64_t>(left.size());
  }
  return effects;
}

Result<NotedMemory> noted_memory_of(const store::Database& database, std::int64_t decision) {
  NotedMemory noted;
  Status read = for_each_row(
      database,
      "SELECT json_extract(nullif(memory_cost, ''), '$.bytes'), "
      "coalesce(json_extract(nullif(memory_cost, ''), '$.follows'), 0) FROM decided WHERE decision = ?1",
      [&](const store::Statement& row) -> Status {
        if (!row.is_null(0)) noted.bytes = row.integer(0);
        noted.follows = row.integer(1) != 0;
        return {};
      },
      decision);
  if (!read) return read.error();
  return noted;
}

Result<NodeSet> device_nodes_of(const store::Database& database, std::int64_t decision) {
  NodeSet nodes;
  Status read = for_each_row(
      database, "SELECT coalesce(nodes, '') FROM container_device WHERE decision = ?1",
      [&](const store::Statement& row) -> Status {
        NodeSet of_device;
        if (Status parsed = parse_into(row.text(0), of_device); !parsed) return parsed;
        nodes |= of_device;
        return {};
      },
      decision);
  if (!read) return read.error();
  return nodes;
}

}  // namespace topolet::audit
