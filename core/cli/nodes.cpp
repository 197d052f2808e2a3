#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <utility>

#include "core/cli/command.hpp"
#include "core/cli/options.hpp"
#include "core/cli/state_database.hpp"

namespace topolet::cli {
namespace {

/// For people, in GiB and CPUs.
constexpr const char* kForPeople = R"sql(
SELECT node, cpus, exclusive, withheld, reserved, pool, isolated AS "free isolated",
       largest_exclusive AS "exclusive possible", printf('%.2f', shared_request_milli / 1000.0) AS "shared requests",
       containers, CASE memory_bytes WHEN 0 THEN '' ELSE printf('%.1f GiB', memory_bytes / 1073741824.0) END AS memory,
       printf('%.1f GiB', memory_request_bytes / 1073741824.0) AS "memory requests"
FROM node_usage_at(?1, ?2) ORDER BY node)sql";

/// Its last column is JSON.
constexpr const char* kForPrograms = R"sql(
WITH device AS MATERIALIZED (
  SELECT name, address, kind, nodes,
         json_group_array(namespace || '/' || pod || '/' || container) FILTER (WHERE decision IS NOT NULL) AS containers
  FROM devices_at(?1) GROUP BY address, name)
SELECT node, cpus, exclusive, withheld, reserved, pool, isolated, largest_exclusive, shared_request_milli, containers,
       memory_bytes, memory_request_bytes,
       (SELECT json_group_array(json_object('name', name, 'address', address, 'kind', kind, 'nodes', nodes,
                                            'containers', json(device.containers)))
        FROM device WHERE cpus_overlap(nodes, CAST(node AS TEXT))) AS devices
FROM node_usage_at(?1, ?2) ORDER BY node)sql";

/// What is one PCI device may have several names.
constexpr const char* kDevicesForPeople = R"sql(
SELECT nodes AS node, address AS "PCI address", replace(group_concat(DISTINCT kind), ',', ', ') AS kind,
       replace(group_concat(DISTINCT nullif(name, address)), ',', ', ') AS devices,
       replace(group_concat(DISTINCT namespace || '/' || pod || '/' || container), ',', ', ') AS "named by"
FROM devices_at(?1) GROUP BY CASE address WHEN '' THEN name ELSE address END
ORDER BY CAST(nodes AS INTEGER), nodes, address, name)sql";

Status show_to_people(const StateDatabase& database, const std::string& nothing, std::int64_t at,
                      std::int64_t min_shared_cpus) {
  if (Status shown = database.print(nothing, kForPeople, at, min_shared_cpus); !shown) return shown;
  const auto devices = database.table(kDevicesForPeople, at);
  if (!devices) return devices.error();
  if (devices->rows.empty()) return {};
  if (Status parted = database.print_empty_line(); !parted) return parted;
  return database.print(nothing, *devices);
}

Status show_to_programs(const StateDatabase& database, Format format, const std::string& nothing, std::int64_t at,
                        std::int64_t min_shared_cpus) {
  auto nodes = database.table(kForPrograms, at, min_shared_cpus);
  if (!nodes) return nodes.error();
  for (Row& row : nodes->rows) {
    if (format == Format::kCsv) continue;  // it has texts only
    constexpr bool kThrows = false;
    Cell devices = Cell::parse(row.back().get<std::string>(), nullptr, kThrows);
    // Names of pods may be no UTF-8: then it stays a text, in which such bytes are replaced.
    if (!devices.is_discarded()) row.back() = std::move(devices);
  }
  return database.print(nothing, *nodes);
}

}  // namespace

void declare_nodes(Options& options) {
  declare_database(options);
  declare_format(options);
  options.add_options()("at", boost::program_options::value<std::string>()->value_name("TIME")->default_value("now"),
                        "When: as for `topolet cpu`.");
}

Status show_nodes(const Invocation& invocation) {
  const auto at = moment(invocation.text("at"));
  if (!at) return at.error();
  const auto format = format_of(invocation);
  if (!format) return format.error();
  const auto config = configuration(invocation);
  if (!config) return config.error();
  const auto database = StateDatabase::open(invocation);
  if (!database) return database.error();
  if (Status ready = (*database)->require_history(); !ready) return ready;
  const std::string nothing = "the database does not tell what machine this is; topoletd records it when it starts";
  const std::int64_t min_shared_cpus{config->placement.rules.min_shared_cpus};
  return *format == Format::kTable ? show_to_people(**database, nothing, *at, min_shared_cpus)
                                   : show_to_programs(**database, *format, nothing, *at, min_shared_cpus);
}

}  // namespace topolet::cli
