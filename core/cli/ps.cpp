#include <fmt/format.h>

#include <boost/program_options.hpp>

#include "core/audit/machine_record.hpp"
#include "core/base/clock.hpp"
#include "core/cli/command.hpp"
#include "core/cli/daemon_client.hpp"
#include "core/cli/measured.hpp"
#include "core/cli/options.hpp"
#include "core/cli/output.hpp"
#include "core/cli/state_database.hpp"

namespace topolet::cli {
namespace {

/// The CPUs of a NUMA node as a list; empty if none is asked for.
Result<std::string> cpus_of_node(const Invocation& invocation, const StateDatabase& database) {
  if (!invocation.has("node")) return std::string();
  const auto node = number_of(invocation, "node", 0);
  if (!node) return node.error();
  return audit::cpus_of_node(database.connection(), static_cast<std::uint32_t>(*node), Clock().wall().count());
}

/// Columns for people that come before the time; `squeezed` in words.
constexpr const char* kColumnsForPeople =
    "CASE a.squeezed WHEN 'placed' THEN 'yes' WHEN 'left-to-kernel' THEN 'no CPU left' ELSE a.squeezed END "
    "AS squeezed, CASE p.overruled_since WHEN '' THEN '' ELSE 'yes' END AS overruled, p.seen_on AS \"seen on\", "
    "p.stuck_on AS \"stuck on\", CASE a.widening WHEN '' THEN '' ELSE json_extract(a.widening, '$.cpus') END AS "
    "\"beside "
    "home\", ";

/// Columns for programs. They come last, as some read by position.
constexpr const char* kColumnsForPrograms =
    ", a.squeezed AS squeezed, p.seen_on, p.overlapped, p.overruled_since, p.stuck_on, CASE a.widening WHEN '' THEN '' "
    "ELSE json_extract(a.widening, '$.cpus') END AS widened_by";

/// With "{}" for the CPU request.
constexpr const char* kWideColumns =
    ", p.attempt, a.qos, {}, a.cpu_limit_milli, a.memory_request_bytes, a.memory_limit_bytes, a.phase, a.pod_uid, "
    "p.container_id, p.decision";

/// Shows no CPU request where nobody tells it: the database has an estimate that is counted for it.
std::string request_column(bool is_table) {
  return fmt::format(
      "CASE a.cpu_request_certainty WHEN 'unknown' THEN {} ELSE a.cpu_request_milli END AS cpu_request_milli, "
      "a.cpu_request_certainty",
      is_table ? "'unknown'" : "NULL");
}

}  // namespace

void declare_ps(Options& options) {
  declare_database(options);
  declare_format(options);
  options.add_options()("node", boost::program_options::value<int>()->value_name("NODE"),
                        "Only containers that run on CPUs of this NUMA node.")(
      "namespace", boost::program_options::value<std::string>()->value_name("NAME"), "Only pods of this namespace.")(
      "wide", "Also show what each asks for, its pod's uid and its decision.")(
      "load", "Also show what each uses and waits for, as topoletd measures it.");
}

namespace {

/// With the load of each container, by its id in the last column, in the place of that.
Status add_container_load(const Invocation& invocation, bool is_for_people, Table& table, std::string& notes) {
  auto daemon = DaemonClient::connect(invocation);
  if (!daemon) return daemon.error();
  const auto load = ask_load(*daemon);
  if (!load) return load.error();
  notes = load_notes(load->state());
  const auto measured = by_id(*load);
  const auto replace_last = [](auto& row, const auto& by) {
    row.pop_back();
    row.insert(row.end(), by.begin(), by.end());
  };
  replace_last(table.columns, load_columns(is_for_people));
  for (Row& row : table.rows) {
    const auto found = measured.find(row.back().get<std::string>());
    replace_last(row, load_cells(found == measured.end() ? nullptr : found->second, is_for_people));
  }
  return {};
}

}  // namespace

Status show_placements(const Invocation& invocation) {
  const auto format = format_of(invocation);
  if (!format) return format.error();
  const auto database = StateDatabase::open(invocation);
  if (!database) return database.error();
  if (Status ready = (*database)->require_newest_schema(); !ready) return ready;
  const auto cpus = cpus_of_node(invocation, **database);
  if (!cpus) return cpus.error();
  const bool is_table = *format == Format::kTable;
  const bool with_load = invocation.has("load");
  const std::string sql = fmt::format(
      "SELECT p.namespace, p.pod, p.container, substr(p.container_id, 1, 12) AS id, p.state, p.mode, p.cpus, "
      "p.withheld, p.mems, {}p.since, p.reason AS \"{}\"{}{}{} FROM current_placements p JOIN allocation a USING "
      "(decision) "
      "WHERE (?1 = '' OR cpus_overlap(p.cpus, ?1) OR cpus_overlap(p.withheld, ?1)) AND (?2 = '' OR p.namespace = ?2) "
      "ORDER BY p.namespace, p.pod, p.container, p.attempt",
      is_table ? kColumnsForPeople : "", is_table ? "reason when placed" : "reason",
      invocation.has("wide") ? fmt::format(kWideColumns, request_column(is_table)) : "",
      is_table ? "" : kColumnsForPrograms, with_load ? ", p.container_id AS load_of" : "");
  const bool is_filtered = invocation.has("node") || invocation.has("namespace");
  const std::string nothing = is_filtered ? "no container is placed there" : "no container is placed";
  if (!with_load) return (*database)->print(nothing, sql, *cpus, invocation.text("namespace"));
  auto table = (*database)->table(sql, *cpus, invocation.text("namespace"));
  if (!table) return table.error();
  std::string notes;
  if (Status added = add_container_load(invocation, is_table, *table, notes); !added) return added;
  if (is_table && !notes.empty()) {
    if (Status noted = write_at_once(notes); !noted) return noted;
  }
  return (*database)->print(nothing, *table);
}

}  // namespace topolet::cli
