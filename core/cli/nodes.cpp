#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <chrono>
#include <optional>
#include <utility>

#include "core/cli/command.hpp"
#include "core/cli/daemon_client.hpp"
#include "core/cli/measured.hpp"
#include "core/cli/options.hpp"
#include "core/cli/output.hpp"
#include "core/cli/state_database.hpp"

namespace topolet::cli {
namespace {

/// For people, in GiB and CPUs.
constexpr const char* kForPeople = R"sql(
SELECT node, cpus, exclusive - lost_exclusive AS exclusive{1}, withheld, reserved, pool, isolated AS "free isolated",
       possible AS "exclusive possible", printf('%.2f', shared_request_milli / 1000.0) AS "shared requests",
       containers{4}{0}, CASE memory_bytes WHEN 0 THEN '' ELSE printf('%.1f GiB', memory_bytes / 1073741824.0) END AS memory,
       printf('%.1f GiB', memory_request_bytes / 1073741824.0) AS "memory requests"
FROM {2} LEFT JOIN {3} ON told_node = node ORDER BY node)sql";

/// The use of nodes now: with the number of exclusive CPUs that were seen last not to be so, and less the CPUs on which
/// containers stay whatever they are told. Nothing was seen of the past.
constexpr const char* kUsageNow = R"sql(
(SELECT n.*, (SELECT coalesce(sum(cpu_count(cpus_common(p.cpus, n.cpus))), 0) FROM current_placements p
              WHERE p.mode IN ('overruled', 'drifted', 'overlapped')) AS lost_exclusive,
        max(0, min(n.largest_exclusive, n.pool - coalesce(cpu_count(cpus_common(n.cpus, (
          SELECT group_concat(list, ',') FROM (
            SELECT json_extract(nullif(stuck, ''), '$.cpus') AS list FROM allocation
            UNION ALL SELECT json_extract(nullif(overruled, ''), '$.cpus') FROM allocation
            UNION ALL SELECT seen_on FROM allocation WHERE overruled <> '')
          WHERE list <> ''))), 0))) AS possible
 FROM node_usage_at(?1, ?2) n))sql";
constexpr const char* kUsage =
    "(SELECT n.*, 0 AS lost_exclusive, n.largest_exclusive AS possible FROM node_usage_at(?1, ?2) n)";
constexpr const char* kLostForPeople = ", lost_exclusive AS \"exclusive lost\"";
constexpr const char* kNarrowerForPeople = ", could_be_narrower AS \"could be narrower\"";

/// The capacities that are reported of nodes now; those of the past are in the audit.
constexpr const char* kReported =
    "(SELECT node AS told_node, milli AS told_milli, until_ms AS told_until_ms, source AS told_source "
    "FROM reported_capacity WHERE until_ms > ?1)";
constexpr const char* kNothingReported =
    "(SELECT NULL AS told_node, NULL AS told_milli, NULL AS told_until_ms, NULL AS told_source)";
constexpr const char* kToldForPeople =
    R"sql(, told_milli / 1000.0 AS "CPUs told",
       strftime('%Y-%m-%dT%H:%M:%SZ', told_until_ms / 1000.0, 'unixepoch') AS "told until")sql";

/// Its last column is JSON.
constexpr const char* kForPrograms = R"sql(
WITH device AS MATERIALIZED (
  SELECT name, address, kind, nodes,
         json_group_array(namespace || '/' || pod || '/' || container) FILTER (WHERE decision IS NOT NULL) AS containers
  FROM devices_at(?1) GROUP BY address, name)
SELECT node, cpus, exclusive - lost_exclusive AS exclusive, withheld, reserved, pool, isolated, possible AS largest_exclusive,
       shared_request_milli, containers, memory_bytes, memory_request_bytes, told_milli, told_until_ms, told_source,
       lost_exclusive, could_be_narrower,
       (SELECT json_group_array(json_object('name', name, 'address', address, 'kind', kind, 'nodes', nodes,
                                            'containers', json(device.containers)))
        FROM device WHERE cpus_overlap(nodes, CAST(node AS TEXT))) AS devices
FROM {} LEFT JOIN {} ON told_node = node ORDER BY node)sql";

/// One PCI device may have several names.
constexpr const char* kDevicesForPeople = R"sql(
SELECT nodes AS node, address AS "PCI address", replace(group_concat(DISTINCT kind), ',', ', ') AS kind,
       replace(group_concat(DISTINCT nullif(name, address)), ',', ', ') AS devices,
       replace(group_concat(DISTINCT namespace || '/' || pod || '/' || container), ',', ', ') AS "named by"
FROM devices_at(?1) GROUP BY CASE address WHEN '' THEN name ELSE address END
ORDER BY CAST(nodes AS INTEGER), nodes, address, name)sql";

/// The SQL that the tables of nodes are made of.
struct Sources {
  const char* usage;
  const char* reported;
};

using control::v1::LoadResponse;

/// Behind the other columns; the first one is the node's number. Null: nothing is added.
void add_node_load(const LoadResponse* load, bool is_for_people, Table& nodes) {
  if (load == nullptr) return;
  const auto append = [](auto& row, const auto& more) { row.insert(row.end(), more.begin(), more.end()); };
  append(nodes.columns, node_load_columns(is_for_people));
  for (Row& row : nodes.rows) {
    const control::v1::NodeLoad* measured = nullptr;
    for (const control::v1::NodeLoad& node : load->nodes()) {
      if (node.node() == row.front().get<std::uint32_t>()) measured = &node;
    }
    append(row, node_load_cells(measured, is_for_people));
  }
}

/// A topoletd that does not answer by then is not waited for: the table comes from the database.
constexpr std::chrono::milliseconds kPatienceWithLoad{1000};

/// What is measured anyway, if topoletd runs and something is.
std::optional<LoadResponse> load_if_known(const Invocation& invocation) {
  auto daemon = DaemonClient::connect(invocation);
  if (!daemon) return std::nullopt;
  control::v1::LoadRequest request;
  request.set_only_known(true);
  auto load = daemon->call(&control::v1::Control::Stub::Load, request, kPatienceWithLoad);
  if (!load || !load->state().is_measuring()) return std::nullopt;
  const auto is_known = [](const auto& node) { return node.has_used_milli(); };
  if (std::none_of(load->nodes().begin(), load->nodes().end(), is_known)) return std::nullopt;
  return *std::move(load);
}

/// Programs get the columns of load only if they ask for them, so that they are always the same.
Result<std::optional<LoadResponse>> load_if_wanted(const Invocation& invocation, Format format) {
  const bool is_now = invocation.values["at"].defaulted();
  if (!invocation.has("load"))
    return is_now && format == Format::kTable ? load_if_known(invocation) : std::optional<LoadResponse>();
  if (!is_now) return Error{Code::kInvalidArgument, "--load shows what is measured now; leave out --at"};
  auto daemon = DaemonClient::connect(invocation);
  if (!daemon) return daemon.error();
  auto load = ask_load(*daemon);
  if (!load) return load.error();
  return std::optional(*std::move(load));
}

Status show_to_people(const StateDatabase& database, const Sources& from, const LoadResponse* load,
                      const std::string& nothing, std::int64_t at, std::int64_t min_shared_cpus) {
  const auto some =
      database.table(fmt::format("SELECT ?1 FROM {} WHERE told_node IS NOT NULL LIMIT 1", from.reported), at);
  if (!some) return some.error();
  const auto lost =
      database.table(fmt::format("SELECT 1 FROM {} WHERE lost_exclusive > 0", from.usage), at, min_shared_cpus);
  if (!lost) return lost.error();
  const auto wide =
      database.table(fmt::format("SELECT 1 FROM {} WHERE could_be_narrower > 0", from.usage), at, min_shared_cpus);
  if (!wide) return wide.error();
  const std::string nodes =
      fmt::format(kForPeople, some->rows.empty() ? "" : kToldForPeople, lost->rows.empty() ? "" : kLostForPeople,
                  from.usage, from.reported, wide->rows.empty() ? "" : kNarrowerForPeople);
  auto usage = database.table(nodes, at, min_shared_cpus);
  if (!usage) return usage.error();
  add_node_load(load, true, *usage);
  if (Status noted = write_at_once(load == nullptr ? "" : load_notes(load->state())); !noted) return noted;
  if (Status shown = database.print(nothing, *usage); !shown) return shown;
  const auto devices = database.table(kDevicesForPeople, at);
  if (!devices) return devices.error();
  if (devices->rows.empty()) return {};
  if (Status parted = database.print_empty_line(); !parted) return parted;
  return database.print(nothing, *devices);
}

Status show_to_programs(const StateDatabase& database, const Sources& from, const LoadResponse* load, Format format,
                        const std::string& nothing, std::int64_t at, std::int64_t min_shared_cpus) {
  auto nodes = database.table(fmt::format(kForPrograms, from.usage, from.reported), at, min_shared_cpus);
  if (!nodes) return nodes.error();
  for (Row& row : nodes->rows) {
    if (format == Format::kCsv) continue;  // it has texts only
    constexpr bool kThrows = false;
    Cell devices = Cell::parse(row.back().get<std::string>(), nullptr, kThrows);
    // Names of pods may be no UTF-8: then it stays a text, in which such bytes are replaced.
    if (!devices.is_discarded()) row.back() = std::move(devices);
  }
  add_node_load(load, false, *nodes);
  return database.print(nothing, *nodes);
}

}  // namespace

void declare_nodes(Options& options) {
  declare_database(options);
  declare_format(options);
  options.add_options()("at", boost::program_options::value<std::string>()->value_name("TIME")->default_value("now"),
                        "When: as for `topolet cpu`.")(
      "load",
      "Also show how much of its CPUs each uses and can use, as topoletd measures it now. A table shows it without "
      "this, too, while it is measured anyway.");
}

Status show_nodes(const Invocation& invocation) {
  const auto at = moment(invocation.text("at"));
  if (!at) return at.error();
  const auto format = format_of(invocation);
  if (!format) return format.error();
  const auto config = configuration(invocation);
  if (!config) return config.error();
  const auto load = load_if_wanted(invocation, *format);
  if (!load) return load.error();
  const LoadResponse* const measured = *load ? &**load : nullptr;
  const auto database = StateDatabase::open(invocation);
  if (!database) return database.error();
  if (Status ready = (*database)->require_newest_schema(); !ready) return ready;
  const std::string nothing = "the database does not tell what machine this is; topoletd records it when it starts";
  const std::int64_t min_shared_cpus{config->placement.rules.min_shared_cpus};
  const bool is_now = invocation.text("at") == "now";
  const Sources from{is_now ? kUsageNow : kUsage, is_now ? kReported : kNothingReported};
  return *format == Format::kTable
             ? show_to_people(**database, from, measured, nothing, *at, min_shared_cpus)
             : show_to_programs(**database, from, measured, *format, nothing, *at, min_shared_cpus);
}

}  // namespace topolet::cli
