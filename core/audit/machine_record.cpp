#include "core/audit/machine_record.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "core/audit/rows.hpp"

namespace topolet::audit {
namespace {

std::optional<std::uint32_t> index(const store::Statement& row, int column) {
  if (row.is_null(column)) return std::nullopt;
  return static_cast<std::uint32_t>(row.integer(column));
}

Status read_cpus(const store::Database& database, std::int64_t topology, MachineRecord& machine) {
  return for_each_row(
      database, "SELECT cpu, node, core, l3, package FROM topology_cpu WHERE topology = ?1 ORDER BY cpu",
      [&](const store::Statement& row) -> Status {
        const auto cpu = static_cast<std::uint32_t>(row.integer(0));
        machine.cpus.push_back({cpu, index(row, 1), index(row, 2).value_or(cpu), index(row, 3), index(row, 4)});
        return {};
      },
      topology);
}

Status read_nodes(const store::Database& database, std::int64_t topology, MachineRecord& machine) {
  return for_each_row(
      database, "SELECT node, cpus, memory_bytes, memory_only FROM topology_node WHERE topology = ?1 ORDER BY node",
      [&](const store::Statement& row) -> Status {
        MachineRecord::Node node{static_cast<std::uint32_t>(row.integer(0)), {}, row.integer(2), row.integer(3) != 0};
        if (Status parsed = parse_into(row.text(1), node.cpus); !parsed) return parsed;
        machine.nodes.push_back(std::move(node));
        return {};
      },
      topology);
}

/// Before version 6 of the schema there were none.
Status read_devices(const store::Database& database, std::int64_t topology, MachineRecord& machine) {
  const auto has_table =
      database.integer("SELECT count(*) FROM sqlite_schema WHERE name = 'topology_device'", "read the schema");
  if (!has_table) return has_table.error();
  if (*has_table == 0) return {};
  return for_each_row(
      database, "SELECT name, address, kind, nodes FROM topology_device WHERE topology = ?1 ORDER BY address, name",
      [&](const store::Statement& row) -> Status {
        MachineRecord::Device device{row.text(0), row.text(1), row.text(2), {}};
        if (Status parsed = parse_into(row.text(3), device.nodes); !parsed) return parsed;
        machine.devices.push_back(std::move(device));
        return {};
      },
      topology);
}

}  // namespace

Result<std::optional<MachineRecord>> machine_at(const store::Database& database, std::int64_t at_ms) {
  std::optional<std::int64_t> topology;
  MachineRecord machine;
  Status read = for_each_row(
      database,
      "SELECT topology, at_ms, allowed, reserved, isolated FROM topology "
      "ORDER BY at_ms <= ?1 DESC, CASE WHEN at_ms <= ?1 THEN -topology ELSE topology END LIMIT 1",
      [&](const store::Statement& row) -> Status {
        topology = row.integer(0);
        machine.at_ms = row.integer(1);
        if (Status parsed = parse_into(row.text(2), machine.allowed); !parsed) return parsed;
        if (Status parsed = parse_into(row.text(3), machine.reserved); !parsed) return parsed;
        return parse_into(row.text(4), machine.isolated);
      },
      at_ms);
  if (!read) return read.error();
  if (!topology) return std::optional<MachineRecord>();
  if (Status cpus = read_cpus(database, *topology, machine); !cpus) return cpus.error();
  if (Status nodes = read_nodes(database, *topology, machine); !nodes) return nodes.error();
  if (Status devices = read_devices(database, *topology, machine); !devices) return devices.error();
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
