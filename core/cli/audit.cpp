#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/audit/machine_record.hpp"
#include "core/base/clock.hpp"
#include "core/base/suggestion.hpp"
#include "core/cli/command.hpp"
#include "core/cli/options.hpp"
#include "core/cli/output.hpp"
#include "core/cli/state_database.hpp"
#include "core/engine/state/audit_event.hpp"

namespace topolet::cli {
namespace {

namespace po = boost::program_options;

constexpr std::int64_t kDayMs = 86'400'000;
constexpr std::int64_t kAnyNumber = std::numeric_limits<std::int64_t>::max();

/// The rows that are asked for; empty texts ask for anything.
struct Filter {
  std::int64_t since_ms = 0;
  std::int64_t until_ms = 0;
  std::int64_t limit = 0;
  std::string pod;
  std::string pod_namespace;
  std::string event;
  std::string reason;
  std::string cpus;  ///< any of them
  std::string plugin;
  bool for_people = false;

  /// A plugin's code is asked for, "ID/CODE", not one of topolet's own.
  bool is_by_code_of_plugin() const { return reason.find('/') != std::string::npos; }
  /// All rows of the event are asked for.
  bool is_by_event_only() const {
    return pod.empty() && pod_namespace.empty() && reason.empty() && cpus.empty() && plugin.empty();
  }
  /// No index finds what is asked for, but the one by time.
  bool is_found_by_time_only() const {
    return pod.empty() && event.empty() && !(reason.empty() && cpus.empty() && plugin.empty());
  }
};

/// One kind of rows of the audit: those of `decided`, of `outcome` or of `ended`.
struct Part {
  const char* columns;
  const char* tables;
  const char* at_ms;
  const char* decision;
  const char* event;
  const char* reason_code;
  const char* has_code_of_plugin;  ///< a plugin has named ?7 in it
};

// `step` is what comes first of the rows of one decision in one millisecond.
constexpr Part kDecided{
    R"sql(d.event AS event, ltrim(d.mode || CASE d.cpus WHEN '' THEN '' ELSE ', CPUs ' || d.cpus END
       || CASE d.withheld WHEN '' THEN '' ELSE ', withheld ' || d.withheld END
       || CASE d.mems WHEN '' THEN '' ELSE ', memory nodes ' || d.mems END
       || CASE WHEN d.supersedes IS NULL THEN '' ELSE ', in place of ' || d.supersedes END, ', ') AS what,
       d.reason AS reason, d.reason_code AS code, d.caused_by AS caused_by, 0 AS step)sql",
    "decided d",
    "d.at_ms",
    "d.decision",
    "d.event",
    "d.reason_code",
    "(instr(d.verdicts, '\"codes\":') > 0 AND EXISTS (SELECT 1 FROM json_each(d.verdicts, '$.codes') WHERE value = "
    "?7))"};
constexpr Part kOutcome{
    R"sql(o.state AS event, ltrim(CASE o.container_id WHEN '' THEN '' ELSE 'container ' || o.container_id END
       || CASE o.code WHEN 0 THEN '' ELSE ', status code ' || o.code END, ', ') AS what,
       o.message AS reason, '' AS code, NULL AS caused_by, 1 AS step)sql",
    "outcome o CROSS JOIN decided d USING (decision)",
    "o.at_ms",
    "o.decision",
    "o.state",
    "''",
    "0"};
constexpr const char* kEndedTables = "ended e CROSS JOIN decided d USING (decision)";
constexpr Part kEnded{"'ended' AS event, '' AS what, e.cause AS reason, e.cause AS code, NULL AS caused_by, 2 AS step",
                      kEndedTables,
                      "e.at_ms",
                      "e.decision",
                      "'ended'",
                      "e.cause",
                      "0"};
constexpr Part kEndedForPeople{
    R"sql('ended' AS event,
       CASE WHEN d.mode = 'exclusive' AND e.cause <> 'superseded' THEN 'released CPUs ' || d.cpus ELSE '' END AS what,
       replace(e.cause, '-', ' ') AS reason, e.cause AS code, NULL AS caused_by, 2 AS step)sql",
    kEndedTables,
    "e.at_ms",
    "e.decision",
    "'ended'",
    "e.cause",
    "0"};

/// Writes the conditions on the decisions that are found by pod or by event.
std::string found_by_index(const Filter& filter, const Part& part) {
  std::string conditions;
  if (!filter.pod.empty()) {
    conditions += fmt::format(" AND {} IN (SELECT decision FROM pod_history WHERE pod_name = ?4)", part.decision);
  }
  const bool has_history = filter.event != "placed" && filter.event != "bound" && filter.event != "ended";
  if (!filter.event.empty() && has_history) {
    conditions += fmt::format(
        " AND {} IN (SELECT decision FROM event_history WHERE event = ?6 AND at_ms >= ?1 AND at_ms <= ?2 {})",
        part.decision, filter.is_by_event_only() ? "ORDER BY at_ms DESC, decision DESC LIMIT ?3" : "");
  }
  return conditions;
}

/// The newest rows of one part.
std::string rows_of(const Filter& filter, const Part& part) {
  const std::string found = found_by_index(filter, part);
  // With a list of decisions to look at, reading by time would only be longer.
  std::string conditions = fmt::format("{0}{1} >= ?1 AND {0}{1} <= ?2{2}", found.empty() ? "" : "+", part.at_ms, found);
  if (!filter.pod_namespace.empty()) conditions += " AND d.pod_namespace = ?5";
  if (!filter.event.empty()) conditions += fmt::format(" AND {} = ?6", part.event);
  if (filter.is_by_code_of_plugin()) {
    conditions += fmt::format(" AND {}", part.has_code_of_plugin);
  } else if (!filter.reason.empty()) {
    conditions += fmt::format(" AND {} = ?7", part.reason_code);
  }
  if (!filter.cpus.empty()) conditions += " AND (cpus_overlap(d.cpus, ?8) OR cpus_overlap(d.withheld, ?8))";
  if (!filter.plugin.empty()) {
    conditions +=
        " AND (instr(d.verdicts, '\"' || ?9 || '\"') > 0 OR instr(d.verdicts, '\"' || ?9 || ': ') > 0 OR "
        "(d.event LIKE 'quarantine%' AND instr(d.reason, ?9) > 0))";
  }
  return fmt::format(
      "SELECT * FROM (SELECT {0} AS at_ms, {1} AS decision, {2}, d.pod_namespace AS namespace, d.pod_name AS pod, "
      "d.container AS container, d.attempt AS attempt FROM {3} WHERE {4} ORDER BY {0} DESC, {1} DESC LIMIT ?3)",
      part.at_ms, part.decision, part.columns, part.tables, conditions);
}

/// The newest rows of all parts, the oldest first.
std::string query_of(const Filter& filter) {
  return fmt::format(
      "WITH given AS (SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9), newest AS (SELECT * FROM ({} UNION ALL {} UNION ALL "
      "{}) "
      "ORDER BY at_ms DESC, decision DESC, step DESC LIMIT ?3) "
      "SELECT strftime('%Y-%m-%dT%H:%M:%fZ', at_ms / 1000.0, 'unixepoch') AS time, event, namespace, pod, container, "
      "attempt, what, reason, code, caused_by, decision FROM newest ORDER BY at_ms, decision, step",
      rows_of(filter, kDecided), rows_of(filter, kOutcome),
      rows_of(filter, filter.for_people ? kEndedForPeople : kEnded));
}

Status bind(store::Statement& statement, const Filter& filter) {
  return statement.bind(filter.since_ms, filter.until_ms, filter.limit, filter.pod, filter.pod_namespace, filter.event,
                        filter.reason, filter.cpus, filter.plugin);
}

/// The CPUs that --cpu or --node names; none if neither is given.
Result<std::string> wanted_cpus(const Invocation& invocation, const store::Database& database, std::int64_t at_ms) {
  if (invocation.has("cpu") && invocation.has("node"))
    return Error{Code::kInvalidArgument, "--cpu and --node cannot be given together"};
  if (invocation.has("cpu")) {
    auto cpus = CpuSet::parse(invocation.text("cpu"));
    if (!cpus) return Error{Code::kInvalidArgument, "--cpu: " + cpus.error().message};
    return cpus->to_string();
  }
  if (!invocation.has("node")) return std::string();
  const auto node = number_of(invocation, "node", 0);
  if (!node) return node.error();
  return audit::cpus_of_node(database, static_cast<std::uint32_t>(*node), at_ms);
}

/// All but the CPUs.
Result<Filter> filter_of(const Invocation& invocation) {
  Filter filter;
  const auto format = format_of(invocation);
  if (!format) return format.error();
  filter.for_people = *format == Format::kTable;
  const auto limit = number_of(invocation, "limit", 1);
  if (!limit) return limit.error();
  filter.limit = *limit;
  filter.pod = invocation.text("pod");
  filter.pod_namespace = invocation.text("namespace");
  filter.event = invocation.text("event");
  filter.reason = invocation.text("reason");
  filter.plugin = invocation.text("plugin");
  if (!invocation.has("since")) {
    const auto until = moment(invocation.text("until"));
    if (!until) return until.error();
    filter.until_ms = *until;
    return filter;
  }
  const auto range = time_range(invocation);
  if (!range) return range.error();
  filter.since_ms = range->since_ms;
  filter.until_ms = range->until_ms;
  // All of that time, unless less is asked for.
  if (invocation.values["limit"].defaulted()) filter.limit = kAnyNumber;
  return filter;
}

Status add_cpus(const Invocation& invocation, const store::Database& database, Filter& filter) {
  auto cpus = wanted_cpus(invocation, database, filter.until_ms);
  if (!cpus) return cpus.error();
  filter.cpus = *std::move(cpus);
  if (!invocation.has("since") && filter.is_found_by_time_only()) filter.since_ms = filter.until_ms - kDayMs;
  // The clock may have been set back since.
  if (invocation.values["until"].defaulted()) filter.until_ms = kAnyNumber;
  return {};
}

/// Nothing of an event that there is, or that is like none.
std::string suggested_event(const std::string& event) {
  std::vector<std::string> known = engine::audit_event_words();
  known.insert(known.end(), {"bound", "refused", "in_doubt", "timed_out", "crashed", "kept", "ended"});
  return std::find(known.begin(), known.end(), event) == known.end() ? suggestion(event, known) : std::string();
}

std::string nothing_text(const Filter& filter) {
  if (!filter.pod.empty()) return fmt::format("nothing is recorded about pod '{}'", filter.pod);
  if (!filter.event.empty() && filter.is_by_event_only()) {
    return fmt::format("no event '{}' is recorded{}{}", filter.event, filter.since_ms == 0 ? "" : " of that time",
                       suggested_event(filter.event));
  }
  if (filter.since_ms == 0) return "nothing is recorded yet";
  return filter.is_found_by_time_only()
             ? "nothing like that is recorded of that time; without --since, it is the last day"
             : "nothing is recorded of that time";
}

Result<Table> read(const StateDatabase& database, const Filter& filter) {
  return database.table(query_of(filter), filter.since_ms, filter.until_ms, filter.limit, filter.pod,
                        filter.pod_namespace, filter.event, filter.reason, filter.cpus, filter.plugin);
}

/// Prints rows as they come: aligned like the first ones, or an object per line.
class LivePrinter {
 public:
  LivePrinter(Format format, const Table& first)
      : format_(format), columns_(first.columns), layout_(first.columns, first.rows) {
    if (format_ == Format::kTable) fmt::print("{}", layout_.heading());
  }

  Status print(const Row& row) {
    std::string line;
    if (format_ == Format::kTable) {
      line = layout_.line(row);
    } else {
      nlohmann::ordered_json object = nlohmann::ordered_json::object();
      for (std::size_t i = 0; i < row.size(); ++i) object[columns_[i]] = row[i];
      line = dump(object) + '\n';
    }
    return write_at_once(line);
  }

 private:
  const Format format_;
  const std::vector<std::string> columns_;
  const TableLayout layout_;
};

/// Prints new rows until the program is stopped. Rows that are written late have an earlier time: it searches for them
/// as well.
Status follow(const Invocation& invocation, const StateDatabase& database, Filter filter) {
  constexpr std::int64_t kLateMs = 60'000;
  constexpr std::chrono::milliseconds kPause{500};
  const auto format = format_of(invocation);
  if (!format) return format.error();
  if (*format != Format::kTable && *format != Format::kNdjson)
    return Error{Code::kInvalidArgument, "--follow prints a table, or with --format ndjson an object per line"};
  // Before what is shown first, so that nothing falls between.
  Filter recent = filter;
  recent.since_ms = Clock().wall().count() - kLateMs;
  recent.limit = kAnyNumber;
  const auto known = read(database, recent);
  if (!known) return known.error();
  std::set<std::string> seen;
  const auto name_of = [](const Row& row) {
    return fmt::format("{} {} {}", row[0].dump(), row[1].dump(), row.back().dump());
  };
  for (const Row& row : known->rows) seen.insert(name_of(row));
  const auto first = read(database, filter);
  if (!first) return first.error();
  LivePrinter printer(*format, *first);
  for (const Row& row : first->rows) {
    seen.insert(name_of(row));
    if (Status printed = printer.print(row); !printed) return printed;
  }
  while (true) {
    std::this_thread::sleep_for(kPause);
    recent.since_ms = Clock().wall().count() - kLateMs;
    const auto rows = read(database, recent);
    if (!rows) return rows.error();
    std::set<std::string> still_recent;
    for (const Row& row : rows->rows) {
      std::string name = name_of(row);
      if (seen.count(name) == 0) {
        if (Status printed = printer.print(row); !printed) return printed;
      }
      still_recent.insert(std::move(name));
    }
    seen = std::move(still_recent);
  }
}

}  // namespace

void declare_audit(Options& options) {
  declare_database(options);
  declare_format(options);
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  options.add_options()("since", text("TIME"), "From when on: a time, or how long ago: 2h.")(
      "until", text("TIME")->default_value("now"), "Until when.")("pod", text("NAME"), "Only this pod.")(
      "namespace", text("NAME"), "Only pods of this namespace.")(
      "event", text("EVENT"),
      "Only this event: placed, denied, re-placed, squeezed, drift, overlap, gap, bound, refused, ended…")(
      "reason", text("CODE"), "Only this reason code, or cause of an end; of a plugin, ID/CODE.")(
      "cpu", text("CPUS"), "Only what is about one of these CPUs.")("node", po::value<int>()->value_name("NODE"),
                                                                    "Only what is about CPUs of this NUMA node.")(
      "plugin", text("NAME"), "Only decisions in which this plugin had a say, and its quarantines.")(
      "limit", po::value<int>()->value_name("NUMBER")->default_value(50),
      "How many entries to show, the newest ones. With --since, all of them unless this is given.")(
      "follow", "Go on with what comes, until stopped.");
}

Status show_audit(const Invocation& invocation) {
  auto filter = filter_of(invocation);
  if (!filter) return filter.error();
  const auto database = StateDatabase::open(invocation);
  if (!database) return database.error();
  if (Status ready = (*database)->require_newest_schema(); !ready) return ready;
  if (Status added = add_cpus(invocation, (*database)->connection(), *filter); !added) return added;
  if (invocation.has("follow")) return follow(invocation, **database, *filter);
  auto statement = (*database)->connection().prepare(query_of(*filter), StateDatabase::kPurpose);
  if (!statement) return statement.error();
  if (Status bound = bind(*statement, *filter); !bound) return bound;
  return (*database)->print(nothing_text(*filter), *statement);
}

}  // namespace topolet::cli
