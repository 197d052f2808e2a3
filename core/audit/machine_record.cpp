#include "core/audit/machine_record.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace topolet::audit {
namespace {

constexpr const char* kPurpose = "read the machine";

std::optional<std::uint32_t> index(const store::Statement& row, int column) {
  if (row.is_null(column)) return std::nullopt;
  return static_cast<std::uint32_t>(row.integer(column));
}

Status read_cpus(const store::Database& database, std::int64_t topology, MachineRecord& machine) {
  auto rows = database.prepare("SELECT cpu, node, core, l3, package FROM topology_cpu WHERE topology = ?1 ORDER BY cpu",
                               kPurpose);
  if (!rows) return rows.error();
  if (Status bound = rows->bind(topology); !bound) return bound;
  while (true) {
    const Result<bool> more = rows->next();
    if (!more) return more.error();
    if (!*more) return {};
    const auto cpu = static_cast<std::uint32_t>(rows->integer(0));
    machine.cpus.push_back({cpu, index(*rows, 1), index(*rows, 2).value_or(cpu), index(*rows, 3), index(*rows, 4)});
  }
}

Status read_nodes(const store::Database& database, std::int64_t topology, MachineRecord& machine) {
  auto rows = database.prepare(
      "SELECT node, cpus, memory_bytes, memory_only FROM topology_node WHERE topology = ?1 ORDER BY node", kPurpose);
  if (!rows) return rows.error();
  if (Status bound = rows->bind(topology); !bound) return bound;
  while (true) {
    const Result<bool> more = rows->next();
    if (!more) return more.error();
    if (!*more) return {};
    auto cpus = CpuSet::parse(rows->text(1));
    if (!cpus) return cpus.error();
    machine.nodes.push_back(
        {static_cast<std::uint32_t>(rows->integer(0)), *std::move(cpus), rows->integer(2), rows->integer(3) != 0});
  }
}

}  // namespace

Result<std::optional<MachineRecord>> machine_at(const store::Database& database, std::int64_t at_ms) {
  auto row = database.prepare(
      "SELECT topology, at_ms, allowed, reserved, isolated FROM topology "
      "ORDER BY at_ms <= ?1 DESC, CASE WHEN at_ms <= ?1 THEN -topology ELSE topology END LIMIT 1",
      kPurpose);
  if (!row) return row.error();
  if (Status bound = row->bind(at_ms); !bound) return bound.error();
  const Result<bool> found = row->next();
  if (!found) return found.error();
  if (!*found) return std::optional<MachineRecord>();
  MachineRecord machine;
  const std::int64_t topology = row->integer(0);
  machine.at_ms = row->integer(1);
  int column = 2;
  for (CpuSet* set : {&machine.allowed, &machine.reserved, &machine.isolated}) {
    auto parsed = CpuSet::parse(row->text(column++));
    if (!parsed) return parsed.error();
    *set = *std::move(parsed);
  }
  row->reset();
  if (Status read = read_cpus(database, topology, machine); !read) return read.error();
  if (Status read = read_nodes(database, topology, machine); !read) return read.error();
  return std::optional(std::move(machine));
}

Result<std::string> cpus_of_node(const store::Database& database, std::uint32_t node, std::int64_t at_ms) {
  const auto machine = machine_at(database, at_ms);
  if (!machine) return machine.error();
  if (*machine) {
    for (const MachineRecord::Node& known : (*machine)->nodes) {
      if (known.node == node) return known.cpus.to_string();
    }
  }
  return Error{Code::kInvalidArgument,
               fmt::format("the machine has no NUMA node {}; `topolet nodes` lists them", node)};
}

}  // namespace topolet::audit
