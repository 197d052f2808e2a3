#include "store/database.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/cli/command.hpp"
#include "core/cli/table.hpp"

namespace topolet::cli {
namespace {

Result<Database> open(const Request& request) {
  const std::filesystem::path file = std::filesystem::path(request.state_dir) / "state.db";
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) {
    return Error{Code::kNotFound,
                 fmt::format("there is no database {}; topoletd makes it when it first runs, or name its directory "
                             "(daemon.state-dir of its configuration) with --state-dir",
                             file.string())};
  }
  return Database::open(file, Database::Access::kReadOnly);
}

nlohmann::ordered_json cell_of(const Statement& statement, int column) {
  if (statement.is_null(column)) return nullptr;
  if (statement.is_integer(column)) return statement.integer(column);
  if (statement.is_real(column)) return statement.real(column);
  return statement.text(column);
}

/// All rows of a statement with its parameters.
template <class... Values>
Result<Table> rows_of(const Database& database, const std::string& sql, const Values&... values) {
  auto statement = database.prepare(sql, "ask");
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

/// An empty table is a no: `nothing` says so to people.
Status show(const Request& request, const Result<Table>& table, const char* nothing) {
  if (!table) return table.error();
  if (request.json) fmt::print("{}", to_text(table->for_programs()));
  if (table->rows.empty()) return Error{Code::kNotFound, request.json ? "" : nothing};
  if (!request.json) fmt::print("{}", table->for_people());
  return {};
}

std::string text(const Table& table, std::size_t row, const char* column) {
  const auto found = std::find(table.columns.begin(), table.columns.end(), column);
  const auto& cell = table.rows[row][static_cast<std::size_t>(found - table.columns.begin())];
  return cell.is_string() ? cell.get<std::string>() : cell.is_null() ? std::string() : cell.dump();
}

/// The newest decision of every container that `name` fits, those that hold something first.
constexpr const char* kMatches = R"sql(
SELECT d.namespace, d.pod, d.container, d.container_id, max(d.decision) AS decision,
       max(d.decision IN (SELECT decision FROM live)) AS is_live
FROM decision d
WHERE d.container = ?1 OR d.pod || '/' || d.container = ?1 OR d.namespace || '/' || d.pod || '/' || d.container = ?1
   OR (length(?1) >= 3 AND substr(d.container_id, 1, length(?1)) = ?1)
GROUP BY d.pod_uid, d.container
ORDER BY is_live DESC, decision DESC)sql";

/// The newest decision of the same container up to this one that has verdicts: a resize or a drift has none.
constexpr const char* kJudged = R"sql(
SELECT max(j.decision) AS decision FROM decided d JOIN decided j USING (pod_uid, container)
WHERE d.decision = ?1 AND j.decision <= d.decision AND j.verdicts IS NOT NULL)sql";

constexpr const char* kDecision = R"sql(
SELECT decision, time, event, namespace, pod, container, attempt, container_id, mode, cpus, withheld, mems, nodes,
       reason, outcome, ended_time, ended_cause, repeats FROM decision WHERE decision = ?1)sql";

/// What comes first of the events of one decision in one millisecond.
constexpr const char* kStep =
    "CASE WHEN event = 'ended' THEN 2 WHEN event IN ('bound', 'refused', 'in_doubt', 'timed_out', 'crashed') THEN 1 "
    "ELSE 0 END";

/// Which row of kMatches is meant.
Result<std::size_t> choose(const Table& matches, const std::string& name) {
  if (matches.rows.empty()) {
    return Error{Code::kNotFound,
                 fmt::format("nothing is known of a container '{}'; `topolet ps` lists those that run", name)};
  }
  std::size_t live = 0;
  while (live < matches.rows.size() && text(matches, live, "is_live") == "1") ++live;
  if (live == 1 || (live == 0 && matches.rows.size() == 1)) return std::size_t{0};
  std::string list;
  for (std::size_t i = 0; i < (live > 0 ? live : matches.rows.size()); ++i) {
    list += fmt::format("\n  {}/{}/{}  {}", text(matches, i, "namespace"), text(matches, i, "pod"),
                        text(matches, i, "container"), text(matches, i, "container_id"));
  }
  return Error{Code::kInvalidArgument, fmt::format("'{}' fits several containers; name one of:{}", name, list)};
}

std::string told(const Table& decision) {
  const auto of = [&](const char* column) { return text(decision, 0, column); };
  const auto or_dash = [&](const char* column) { return of(column).empty() ? "-" : of(column); };
  std::string said = fmt::format("{}/{}/{}  attempt {}  {}\n", of("namespace"), of("pod"), of("container"),
                                 of("attempt"), of("container_id"));
  said += fmt::format("{} {}, decision {}{}\n", of("event"), of("time"), of("decision"),
                      of("outcome").empty() ? "" : ", " + of("outcome"));
  if (!of("ended_cause").empty()) said += fmt::format("ended {}: {}\n", of("ended_time"), of("ended_cause"));
  if (!of("mode").empty()) {
    said += fmt::format("{} on CPUs {}, withheld {}, memory nodes {}, won: nodes {}\n", of("mode"), or_dash("cpus"),
                        or_dash("withheld"), or_dash("mems"), or_dash("nodes"));
  }
  return said + fmt::format("why: {}\n", of("reason"));
}

struct Explanation {
  Table decision;
  Table verdicts;
  Table notes;
};

Result<Explanation> explanation_of(const Database& database, const std::string& name) {
  const Result<Table> matches = rows_of(database, kMatches, name);
  if (!matches) return matches.error();
  const Result<std::size_t> chosen = choose(*matches, name);
  if (!chosen) return chosen.error();
  const std::int64_t decision = std::stoll(text(*matches, *chosen, "decision"));
  const Result<Table> judged = rows_of(database, kJudged, decision);
  if (!judged) return judged.error();
  const std::string with_verdicts = text(*judged, 0, "decision");
  const std::int64_t judged_in = with_verdicts.empty() ? decision : std::stoll(with_verdicts);
  Result<Table> told_of = rows_of(database, kDecision, decision);
  if (!told_of) return told_of.error();
  Result<Table> verdicts = rows_of(database,
                                   "SELECT decision, rank, nodes, sum, rejected, policy, kind AS says, score, reason "
                                   "FROM verdict WHERE decision = ?1 ORDER BY rank, policy",
                                   judged_in);
  if (!verdicts) return verdicts.error();
  Result<Table> notes =
      rows_of(database, "SELECT kind, note, candidates FROM verdict_note WHERE decision = ?1", judged_in);
  if (!notes) return notes.error();
  return Explanation{*std::move(told_of), *std::move(verdicts), *std::move(notes)};
}

}  // namespace

Status run_query(const Request& request) {
  const auto database = open(request);
  if (!database) return database.error();
  if (const auto prepared = database->prepare(request.arguments[0], "ask"); !prepared) {
    return Error{Code::kInvalidArgument, prepared.error().message};
  }
  return show(request, rows_of(*database, request.arguments[0]), "no rows");
}

Status show_placements(const Request& request) {
  const auto database = open(request);
  if (!database) return database.error();
  return show(
      request,
      rows_of(*database,
              "SELECT namespace, pod, container, substr(container_id, 1, 12) AS id, state, mode, cpus, withheld, "
              "mems, since, reason FROM current_placements"),
      "no container is placed");
}

Status show_audit(const Request& request) {
  const auto database = open(request);
  if (!database) return database.error();
  const std::string newest = fmt::format(
      "SELECT time, event, namespace, pod, container, attempt, what, reason, decision FROM (SELECT *, {} AS step FROM "
      "audit {} ORDER BY at_ms DESC, decision DESC, step DESC LIMIT ?1) ORDER BY at_ms, decision, step",
      kStep, request.pod.empty() ? "" : "WHERE pod = ?2");
  const auto limit = static_cast<std::int64_t>(request.limit);
  if (request.pod.empty()) return show(request, rows_of(*database, newest, limit), "nothing has happened yet");
  return show(request, rows_of(*database, newest, limit, request.pod), "nothing is known of such a pod");
}

Status explain(const Request& request) {
  const auto database = open(request);
  if (!database) return database.error();
  const auto explanation = explanation_of(*database, request.arguments[0]);
  if (!explanation) return explanation.error();
  if (request.json) {
    nlohmann::ordered_json json = explanation->decision.for_programs()[0];
    json["verdicts"] = explanation->verdicts.for_programs();
    json["notes"] = explanation->notes.for_programs();
    fmt::print("{}", to_text(json));
    return {};
  }
  fmt::print("{}", told(explanation->decision));
  if (!explanation->verdicts.rows.empty()) {
    fmt::print("\nCandidates, what won first\n{}", explanation->verdicts.for_people());
  }
  if (!explanation->notes.rows.empty()) fmt::print("\nBesides\n{}", explanation->notes.for_people());
  return {};
}

}  // namespace topolet::cli
