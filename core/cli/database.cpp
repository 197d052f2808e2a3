#include "store/database.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/file_exists.hpp"
#include "core/cli/command.hpp"
#include "core/cli/table.hpp"
#include "core/placement/workload.hpp"

namespace topolet::cli {
namespace {

Result<store::Database> open(const Invocation& invocation) {
  const std::filesystem::path file = std::filesystem::path(invocation.state_dir) / "state.db";
  if (!file_exists(file)) {
    return Error{
        Code::kNotFound,
        fmt::format("there is no state database {}; topoletd creates it at its first start. If its state directory "
                    "(daemon.state-dir of its configuration) is another one, name it with --state-dir",
                    file.string())};
  }
  return store::Database::open(file, store::Database::Access::kReadOnly);
}

nlohmann::ordered_json cell_of(const store::Statement& statement, int column) {
  if (statement.is_null(column)) return nullptr;
  if (statement.is_integer(column)) return statement.integer(column);
  if (statement.is_real(column)) return statement.real(column);
  return statement.text(column);
}

/// All rows of a statement with its parameters.
template <class... Values>
Result<Table> rows_of(const store::Database& database, const std::string& sql, const Values&... values) {
  auto statement = database.prepare(sql, "run the query");
  if (!statement) return statement.error();
  if (Status bound = statement->bind(values...); !bound) return bound.error();
  Table table{statement->columns(), {}};
  while (true) {
    const Result<bool> more = statement->next();
    if (!more) return more.error();
    if (!*more) return table;
    auto& row = table.rows.emplace_back();
    for (int i = 0; i < static_cast<int>(table.columns.size()); ++i) row.push_back(cell_of(*statement, i));
  }
}

/// An empty table is no result: `nothing` says so to people.
Status show(const Invocation& invocation, const Result<Table>& table, const std::string& nothing) {
  if (!table) return table.error();
  if (invocation.json) fmt::print("{}", to_text(table->format_json()));
  if (table->rows.empty()) return Error{Code::kNotFound, invocation.json ? "" : nothing};
  if (!invocation.json) fmt::print("{}", table->format_text());
  return {};
}

std::string text(const Table& table, std::size_t row, const char* column) {
  const auto found = std::find(table.columns.begin(), table.columns.end(), column);
  const auto& cell = table.rows[row][static_cast<std::size_t>(found - table.columns.begin())];
  return cell.is_string() ? cell.get<std::string>() : cell.is_null() ? std::string() : cell.dump();
}

std::string name_in(const Table& table, std::size_t row) {
  return placement::display_name(text(table, row, "namespace"), text(table, row, "pod"), text(table, row, "container"));
}

/// The newest decision of every container that `name` fits, those that hold something first.
constexpr const char* kMatches = R"sql(
SELECT d.namespace, d.pod, d.container, d.container_id, max(d.decision) AS decision,
       max(d.decision IN (SELECT decision FROM live)) AS is_current
FROM decision d
WHERE d.container = ?1 OR d.pod || '/' || d.container = ?1 OR d.namespace || '/' || d.pod || '/' || d.container = ?1
   OR (length(?1) >= 3 AND substr(d.container_id, 1, length(?1)) = ?1)
GROUP BY d.pod_uid, d.container
ORDER BY is_current DESC, decision DESC)sql";

/// The newest decision of the same container up to this one that has verdicts: a resize or a drift has none.
constexpr const char* kDecisionWithVerdicts = R"sql(
SELECT max(j.decision) AS decision FROM decided d JOIN decided j USING (pod_uid, container)
WHERE d.decision = ?1 AND j.decision <= d.decision AND j.verdicts IS NOT NULL)sql";

constexpr const char* kDecision = R"sql(
SELECT decision, time, event, namespace, pod, container, attempt, container_id, mode, cpus, withheld, mems, nodes,
       reason, outcome, ended_time, ended_cause, repeats FROM decision WHERE decision = ?1)sql";

/// What comes first of the events of one decision in one millisecond.
constexpr const char* kStep =
    "CASE WHEN event = 'ended' THEN 2 WHEN event IN ('bound', 'refused', 'in_doubt', 'timed_out', 'crashed') THEN 1 "
    "ELSE 0 END";

/// What the audit shows people of the end of a decision; `newest` are rows of the view `audit`.
constexpr const char* kWhatForPeople =
    "CASE WHEN event = 'ended' AND reason <> 'superseded' THEN coalesce((SELECT 'released CPUs ' || d.cpus "
    "FROM decided d WHERE d.decision = newest.decision AND d.mode = 'exclusive'), what) ELSE what END AS what";
constexpr const char* kReasonForPeople =
    "CASE WHEN event = 'ended' THEN replace(reason, '-', ' ') ELSE reason END AS reason";

/// Which row of kMatches is meant.
Result<std::size_t> choose(const Table& matches, const std::string& name) {
  if (matches.rows.empty()) {
    return Error{Code::kNotFound, fmt::format("no container '{}' is known; `topolet ps` lists the current ones", name)};
  }
  std::size_t current = 0;
  while (current < matches.rows.size() && text(matches, current, "is_current") == "1") ++current;
  if (current == 1 || (current == 0 && matches.rows.size() == 1)) return std::size_t{0};
  std::string list;
  for (std::size_t i = 0; i < (current > 0 ? current : matches.rows.size()); ++i) {
    list += fmt::format("\n  {}  {}", name_in(matches, i), text(matches, i, "container_id"));
  }
  return Error{Code::kInvalidArgument,
               fmt::format("'{}' matches several containers; name one of these:{}", name, list)};
}

/// The causes of an end are single words in the database: "pod-stopped".
std::string in_words(std::string cause) {
  std::replace(cause.begin(), cause.end(), '-', ' ');
  return cause;
}

/// What a reason was true of: it is not looked at again, whatever happened since.
std::string moment_of(const std::string& event) {
  for (const char* placing : {"placed", "unpinned", "re-placed", "adopted", "foreign"}) {
    if (event == placing) return "when placed";
  }
  return event == "denied" || event == "resized" ? "when " + event : "when recorded";
}

std::string describe_decision(const Table& decision) {
  const auto of = [&](const char* column) { return text(decision, 0, column); };
  const auto or_dash = [&](const char* column) { return of(column).empty() ? "-" : of(column); };
  std::string description =
      fmt::format("{}  attempt {}  {}\n", name_in(decision, 0), of("attempt"), of("container_id"));
  description += fmt::format("{} {}, decision {}{}\n", of("event"), of("time"), of("decision"),
                             of("outcome").empty() ? "" : ", " + of("outcome"));
  if (!of("ended_cause").empty()) {
    const bool released = of("mode") == "exclusive" && of("ended_cause") != "superseded";
    description += fmt::format("{} ({}) {}\n", released ? "released CPUs " + of("cpus") : "ended",
                               in_words(of("ended_cause")), of("ended_time"));
  }
  if (!of("mode").empty()) {
    description += fmt::format("{} on CPUs {}, withheld {}, memory nodes {}; the winner was nodes {}\n", of("mode"),
                               or_dash("cpus"), or_dash("withheld"), or_dash("mems"), or_dash("nodes"));
  }
  return description + fmt::format("reason {}: {}\n", moment_of(of("event")), of("reason"));
}

struct Explanation {
  Table decision;
  Table verdicts;
  Table notes;
};

Result<Explanation> explanation_of(const store::Database& database, const std::string& name) {
  const Result<Table> matches = rows_of(database, kMatches, name);
  if (!matches) return matches.error();
  const Result<std::size_t> chosen = choose(*matches, name);
  if (!chosen) return chosen.error();
  const std::int64_t decision = std::stoll(text(*matches, *chosen, "decision"));
  const Result<Table> judged = rows_of(database, kDecisionWithVerdicts, decision);
  if (!judged) return judged.error();
  const std::string with_verdicts = text(*judged, 0, "decision");
  const std::int64_t judged_in = with_verdicts.empty() ? decision : std::stoll(with_verdicts);
  Result<Table> decision_row = rows_of(database, kDecision, decision);
  if (!decision_row) return decision_row.error();
  Result<Table> verdicts = rows_of(database,
                                   "SELECT decision, rank, nodes, sum, rejected, policy, kind AS says, score, reason "
                                   "FROM verdict WHERE decision = ?1 ORDER BY rank, policy",
                                   judged_in);
  if (!verdicts) return verdicts.error();
  Result<Table> notes =
      rows_of(database, "SELECT kind, note, candidates FROM verdict_note WHERE decision = ?1", judged_in);
  if (!notes) return notes.error();
  return Explanation{*std::move(decision_row), *std::move(verdicts), *std::move(notes)};
}

}  // namespace

Status run_query(const Invocation& invocation) {
  const auto database = open(invocation);
  if (!database) return database.error();
  if (const auto prepared = database->prepare(invocation.arguments[0], "run the query"); !prepared) {
    return Error{Code::kInvalidArgument, prepared.error().message};
  }
  return show(invocation, rows_of(*database, invocation.arguments[0]), "no rows");
}

Status show_placements(const Invocation& invocation) {
  const auto database = open(invocation);
  if (!database) return database.error();
  return show(
      invocation,
      rows_of(*database,
              fmt::format("SELECT namespace, pod, container, substr(container_id, 1, 12) AS id, state, mode, cpus, "
                          "withheld, mems, since, reason AS \"{}\" FROM current_placements",
                          invocation.json ? "reason" : "reason when placed")),
      "no container is placed");
}

Status show_audit(const Invocation& invocation) {
  const auto database = open(invocation);
  if (!database) return database.error();
  const std::string newest = fmt::format(
      "SELECT time, event, namespace, pod, container, attempt, {}, {}, decision FROM (SELECT *, {} AS step FROM audit "
      "{} "
      "ORDER BY at_ms DESC, decision DESC, step DESC LIMIT ?1) AS newest ORDER BY at_ms, decision, step",
      invocation.json ? "what" : kWhatForPeople, invocation.json ? "reason" : kReasonForPeople, kStep,
      invocation.pod.empty() ? "" : "WHERE pod = ?2");
  const auto limit = static_cast<std::int64_t>(invocation.limit);
  if (invocation.pod.empty()) return show(invocation, rows_of(*database, newest, limit), "nothing is recorded yet");
  return show(invocation, rows_of(*database, newest, limit, invocation.pod),
              fmt::format("nothing is recorded about pod '{}'", invocation.pod));
}

Status explain(const Invocation& invocation) {
  const auto database = open(invocation);
  if (!database) return database.error();
  const auto explanation = explanation_of(*database, invocation.arguments[0]);
  if (!explanation) return explanation.error();
  if (invocation.json) {
    nlohmann::ordered_json json = explanation->decision.format_json()[0];
    json["verdicts"] = explanation->verdicts.format_json();
    json["notes"] = explanation->notes.format_json();
    fmt::print("{}", to_text(json));
    return {};
  }
  fmt::print("{}", describe_decision(explanation->decision));
  if (!explanation->verdicts.rows.empty()) {
    fmt::print("\nCandidates at that time, the {} first\n{}",
               text(explanation->decision, 0, "event") == "denied" ? "best" : "winner",
               explanation->verdicts.format_text());
  }
  if (!explanation->notes.rows.empty()) fmt::print("\nAlso recorded\n{}", explanation->notes.format_text());
  return {};
}

}  // namespace topolet::cli
