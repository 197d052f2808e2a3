#include <fmt/format.h>

#include <algorithm>

#include "core/cli/command.hpp"
#include "core/cli/options.hpp"
#include "core/cli/state_database.hpp"
#include "core/placement/workload.hpp"

namespace topolet::cli {
namespace {

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

Result<Explanation> explanation_of(const StateDatabase& database, const std::string& name) {
  const Result<Table> matches = database.table(kMatches, name);
  if (!matches) return matches.error();
  const Result<std::size_t> chosen = choose(*matches, name);
  if (!chosen) return chosen.error();
  const std::int64_t decision = std::stoll(text(*matches, *chosen, "decision"));
  const Result<Table> judged = database.table(kDecisionWithVerdicts, decision);
  if (!judged) return judged.error();
  const std::string with_verdicts = text(*judged, 0, "decision");
  const std::int64_t judged_in = with_verdicts.empty() ? decision : std::stoll(with_verdicts);
  Result<Table> decision_row = database.table(kDecision, decision);
  if (!decision_row) return decision_row.error();
  Result<Table> verdicts = database.table(
      "SELECT decision, rank, nodes, sum, rejected, policy, kind AS says, score, reason "
      "FROM verdict WHERE decision = ?1 ORDER BY rank, policy",
      judged_in);
  if (!verdicts) return verdicts.error();
  Result<Table> notes =
      database.table("SELECT kind, note, candidates FROM verdict_note WHERE decision = ?1", judged_in);
  if (!notes) return notes.error();
  return Explanation{*std::move(decision_row), *std::move(verdicts), *std::move(notes)};
}

}  // namespace

void declare_explain(Options& options) {
  declare_database(options);
  declare_json(options);
}

Status explain(const Invocation& invocation) {
  const auto database = StateDatabase::open(invocation);
  if (!database) return database.error();
  const auto explanation = explanation_of(**database, invocation.arguments[0]);
  if (!explanation) return explanation.error();
  if (invocation.has("json")) {
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
