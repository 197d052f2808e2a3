#include <fmt/format.h>

#include <boost/program_options.hpp>

#include "core/audit/machine_record.hpp"
#include "core/base/clock.hpp"
#include "core/cli/command.hpp"
#include "core/cli/options.hpp"
#include "core/cli/state_database.hpp"

namespace topolet::cli {
namespace {

/// The CPUs of a NUMA node as a list; empty if none is asked for.
Result<std::string> cpus_of_node(const Invocation& invocation, const StateDatabase& database) {
  if (!invocation.has("node")) return std::string();
  if (Status ready = database.require_history(); !ready) return ready.error();
  const auto node = number_of(invocation, "node", 0);
  if (!node) return node.error();
  return audit::cpus_of_node(database.connection(), static_cast<std::uint32_t>(*node), Clock().wall().count());
}

/// For people, what allocation.squeezed says.
constexpr const char* kSqueezedInWords =
    "CASE a.squeezed WHEN 'placed' THEN 'yes' WHEN 'left-to-kernel' THEN 'no CPU left' ELSE a.squeezed END";

/// The columns that show where the kernel has it instead, and since when something else sets its CPUs.
constexpr const char* kSeenColumns = ", p.seen_on, p.overlapped, p.overruled_since";
constexpr const char* kNoColumnsSeen = ", '' AS seen_on, '' AS overlapped, '' AS overruled_since";
/// CPUs that it does not leave.
constexpr const char* kStuckColumn = ", p.stuck_on";
constexpr const char* kNoColumnStuck = ", '' AS stuck_on";
constexpr const char* kShownStuck = "p.stuck_on AS \"stuck on\", ";
constexpr const char* kShownSeen =
    "CASE p.overruled_since WHEN '' THEN '' ELSE 'yes' END AS overruled, p.seen_on AS \"seen on\", ";

/// With "{}" for the CPU request.
constexpr const char* kWideColumns =
    ", p.attempt, a.qos, {}, a.cpu_limit_milli, a.memory_request_bytes, a.memory_limit_bytes, a.phase, a.pod_uid, "
    "p.container_id, p.decision";

/// Where nobody tells it, the database has what is counted for it.
std::string request_column(bool knows_certainty, bool is_table) {
  if (!knows_certainty) return "a.cpu_request_milli";
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
      "wide", "Also show what each asks for, its pod's uid and its decision.");
}

Status show_placements(const Invocation& invocation) {
  const auto format = format_of(invocation);
  if (!format) return format.error();
  const auto database = StateDatabase::open(invocation);
  if (!database) return database.error();
  const auto cpus = cpus_of_node(invocation, **database);
  if (!cpus) return cpus.error();
  const bool is_table = *format == Format::kTable;
  const auto knows_squeezed = (*database)->has_column("allocation", "squeezed");
  if (!knows_squeezed) return knows_squeezed.error();
  const char* const squeezed = !*knows_squeezed ? "''" : is_table ? kSqueezedInWords : "a.squeezed";
  const auto knows_seen = (*database)->has_column("allocation", "seen_on");
  if (!knows_seen) return knows_seen.error();
  const char* const seen = *knows_seen ? kSeenColumns : kNoColumnsSeen;
  const auto knows_certainty = (*database)->has_column("allocation", "cpu_request_certainty");
  if (!knows_certainty) return knows_certainty.error();
  const auto knows_stuck = (*database)->has_column("allocation", "stuck");
  if (!knows_stuck) return knows_stuck.error();
  const bool needs_allocation = *knows_squeezed || invocation.has("wide");
  const std::string sql = fmt::format(
      "SELECT p.namespace, p.pod, p.container, substr(p.container_id, 1, 12) AS id, p.state, p.mode, p.cpus, "
      "p.withheld, p.mems, {}p.since, p.reason AS \"{}\"{}{}{}{} FROM current_placements p {} "
      "WHERE (?1 = '' OR cpus_overlap(p.cpus, ?1) OR cpus_overlap(p.withheld, ?1)) AND (?2 = '' OR p.namespace = ?2) "
      "ORDER BY p.namespace, p.pod, p.container, p.attempt",
      is_table ? fmt::format("{} AS squeezed, {}{}", squeezed, *knows_seen ? kShownSeen : "",
                             *knows_stuck ? kShownStuck : "")
               : "",
      is_table ? "reason when placed" : "reason",
      invocation.has("wide") ? fmt::format(kWideColumns, request_column(*knows_certainty, is_table)) : "",
      is_table ? "" : fmt::format(", {} AS squeezed", squeezed), is_table ? "" : seen,
      is_table       ? ""
      : *knows_stuck ? kStuckColumn
                     : kNoColumnStuck,
      needs_allocation ? "JOIN allocation a USING (decision)" : "");
  const bool is_filtered = invocation.has("node") || invocation.has("namespace");
  return (*database)->print(is_filtered ? "no container is placed there" : "no container is placed", sql, *cpus,
                            invocation.text("namespace"));
}

}  // namespace topolet::cli
