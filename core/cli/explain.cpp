#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/audit/judged.hpp"
#include "core/base/text.hpp"
#include "core/cli/command.hpp"
#include "core/cli/find_decision.hpp"
#include "core/cli/options.hpp"
#include "core/cli/output.hpp"
#include "core/cli/state_database.hpp"
#include "core/placement/workload.hpp"

namespace topolet::cli {
namespace {

namespace po = boost::program_options;

std::string text(const Table& table, std::size_t row, const char* column) {
  const auto found = std::find(table.columns.begin(), table.columns.end(), column);
  if (found == table.columns.end()) return {};
  const auto& cell = table.rows[row][static_cast<std::size_t>(found - table.columns.begin())];
  return cell.is_string() ? cell.get<std::string>() : cell.is_null() ? std::string() : cell.dump();
}

std::string name_in(const Table& table, std::size_t row) {
  return placement::display_name(text(table, row, "namespace"), text(table, row, "pod"), text(table, row, "container"));
}

/// The CPUs that the container of a decision has now, unless a later decision took the place of this one.
constexpr const char* kNow = R"sql(
SELECT a.* FROM decided d CROSS JOIN allocation a USING (pod_uid, container)
WHERE d.decision = ?1 AND a.decision <= d.decision AND NOT EXISTS (SELECT 1 FROM ended WHERE decision = d.decision))sql";

/// The events that were only recorded of the container since a decision, the newest first.
constexpr const char* kRecordedSince = R"sql(
SELECT strftime('%Y-%m-%dT%H:%M:%fZ', j.at_ms / 1000.0, 'unixepoch') AS time, j.event, j.reason, j.decision
FROM decided d CROSS JOIN decided j USING (pod_uid, container)
WHERE d.decision = ?1 AND j.decision > d.decision AND j.attempt = d.attempt AND NOT j.holds AND j.event <> 'denied'
ORDER BY j.decision DESC LIMIT ?2)sql";

/// The warnings about the annotations of a decision's pod, as long as the pod exists.
constexpr const char* kWarned = R"sql(
SELECT DISTINCT w.value AS warning FROM decided d CROSS JOIN pod p USING (pod_uid) CROSS JOIN json_each(p.warned) w
WHERE d.decision = ?1 AND json_valid(p.warned) ORDER BY 1)sql";

constexpr const char* kDecision = R"sql(
SELECT decision, time, event, namespace, pod, container, attempt, container_id, mode, cpus, withheld, mems, nodes,
       reason, outcome, ended_time, ended_cause, repeats FROM decision WHERE decision = ?1)sql";

/// What plugins noted of a decision's container: of one that holds something now, as it is now. And the memory that the
/// container left behind with that decision, and the measurements that it was made by.
constexpr const char* kNoted = R"sql(
SELECT coalesce((SELECT a.tags FROM allocation a WHERE a.decision = d.decision), d.tags) AS tags, d.devices, d.memory_cost,
       (SELECT l.sample FROM decided_load l WHERE l.decision = d.decision) AS load_sample
FROM decided d WHERE d.decision = ?1)sql";

/// The causes of an end are single words in the database: "pod-stopped".
std::string in_words(std::string cause) {
  std::replace(cause.begin(), cause.end(), '-', ' ');
  return cause;
}

/// The text for events that place nothing, such as a drift or an overlap.
constexpr const char* kWhenRecorded = "when recorded";
/// The number of events recorded since a decision that are shown at most.
constexpr std::size_t kMostRecorded = 5;

/// Returns the moment for which a reason was true: it is not updated, whatever happened since.
std::string moment_of(const std::string& event) {
  for (const char* placing : {"placed", "unpinned", "re-placed", "adopted", "foreign"}) {
    if (event == placing) return "when placed";
  }
  for (const char* happening : {"denied", "resized", "squeezed", "widened", "narrowed"}) {
    if (event == happening) return "when " + event;
  }
  return kWhenRecorded;
}

/// The CPUs that a squeezed container was put on, and where it belongs.
struct Squeezed {
  std::string into;  ///< as allocation.squeezed says
  std::string mode;  ///< which it should have
  std::string cpus;  ///< the same; of a shared container, those it may use while they are in the pool

  bool has_none() const { return into == "left-to-kernel"; }
};

/// The last observation of a container that has CPUs now.
struct Seen {
  std::string mode;             ///< which it should have
  std::string elsewhere;        ///< where it runs instead; empty: where it should
  std::string overlapped;       ///< those of its own CPUs on which others run
  std::string overruled_since;  ///< when something else began to set its CPUs; empty: nothing does
  std::string overruled_by;     ///< the NRI plugin that does; empty: it is not known who does
  std::string stuck_on;         ///< CPUs that it does not leave
  std::string stuck_why;        ///< the runtime's words
};

/// CPUs beside its home on which a container that shares CPUs may run now.
struct Widened {
  std::string by;    ///< those CPUs; empty: none
  std::string home;  ///< where it belongs
  std::string since;
};

struct Explanation {
  FoundDecision found;
  Table decision;
  std::optional<std::string> cpus_now;  ///< if it holds something now
  std::optional<Squeezed> squeezed;     ///< if it is, now
  Seen seen;
  Widened widened;
  nlohmann::ordered_json tags;        ///< that plugins noted, by "ID/KEY"
  nlohmann::ordered_json devices;     ///< as in the table `decided`
  nlohmann::ordered_json memory;      ///< as `memory_cost` there
  Cell load_sample;                   ///< its number; null: it was made by no measurements
  std::vector<std::string> warnings;  ///< about the pod's annotations
  Table recorded_since;               ///< the newest first
  Table verdicts;
  Table notes;
};

std::string describe_older(const std::vector<std::string>& uids) {
  if (uids.empty()) return {};
  const std::size_t listed = std::min<std::size_t>(uids.size(), 5);
  const auto end = uids.begin() + static_cast<std::ptrdiff_t>(listed);
  return fmt::format("{} with a container of this name: --uid {}{}", counted(uids.size(), "older pod"),
                     fmt::join(uids.begin(), end, ", --uid "), listed < uids.size() ? ", …" : "");
}

/// Describes the CPUs that it should have.
std::string describe_wanted(const Squeezed& squeezed) {
  if (squeezed.mode == "exclusive") return "exclusive CPUs " + squeezed.cpus;
  const char* const of = squeezed.mode == "shared" ? "in the shared pool" : "reserved or in the shared pool";
  return fmt::format("those of CPUs {} that are {}", squeezed.cpus, of);
}

/// In lines: how it is, and the way out.
std::vector<std::string> describe_squeezed(const Squeezed& squeezed) {
  const char* const now =
      squeezed.has_none() ? "squeezed now: no CPU is left that it may use, so it may run on the CPUs of others"
                          : "squeezed now: CPUs are offline or must not be used, and no place as it should be is free";
  return {now,
          fmt::format("it should have {}; bring CPUs online, or stop a container that has some, and topoletd moves "
                      "it by itself",
                      describe_wanted(squeezed))};
}

/// In lines; none where all is as it should be.
std::vector<std::string> describe_seen(const Seen& seen) {
  std::vector<std::string> lines;
  const std::string lost = seen.mode == "exclusive" ? "; it is not exclusive now" : "";
  if (!seen.overruled_since.empty())
    lines.push_back("overruled since " + seen.overruled_since + ": " +
                    (seen.overruled_by.empty() ? "something else than topolet" : "NRI plugin " + seen.overruled_by) +
                    " sets its CPUs" + lost);
  if (!seen.stuck_on.empty())
    lines.push_back("does not leave CPUs " + seen.stuck_on + ", which nobody else is given alone: " + seen.stuck_why);
  if (!seen.elsewhere.empty()) lines.push_back("seen on CPUs " + seen.elsewhere + ", where it should not be" + lost);
  if (!seen.overlapped.empty()) lines.push_back("others were seen on CPUs " + seen.overlapped + lost);
  return lines;
}

/// "on CPUs 1 now (0-1 when decided)"
std::string describe_cpus(const std::string& decided, const Explanation& explanation) {
  const auto or_dash = [](const std::string& cpus) { return cpus.empty() ? "-" : cpus; };
  const std::optional<std::string>& now = explanation.cpus_now;
  if (explanation.squeezed && explanation.squeezed->has_none())
    return "where the kernel lets it run, not on CPUs " + or_dash(now.value_or(""));
  if (!now || *now == decided) return "on CPUs " + or_dash(decided);
  return fmt::format("on CPUs {} now ({} when decided)", or_dash(*now), or_dash(decided));
}

/// Returns nothing for an event that has no winner.
std::string describe_winner(const std::string& event, const std::string& nodes) {
  if (!nodes.empty()) return "; the winner was nodes " + nodes;
  return moment_of(event) == kWhenRecorded ? "" : "; the winner was the CPUs outside any node";
}

/// Writes a line for each, the oldest first.
std::vector<std::string> describe_recorded(const Table& recorded, const std::string& pod) {
  std::vector<std::string> lines;
  for (std::size_t row = std::min(recorded.rows.size(), kMostRecorded); row > 0; --row) {
    const auto of = [&](const char* column) { return text(recorded, row - 1, column); };
    lines.push_back(fmt::format("since then: {} {}: {}", of("event"), of("time"), of("reason")));
  }
  if (recorded.rows.size() > kMostRecorded)
    lines.insert(lines.begin(), fmt::format("since then: more than is listed here, see `topolet audit --pod {}`", pod));
  return lines;
}

/// "memory: 1.5 GiB on node 0 stayed behind"
std::string describe_memory(const nlohmann::ordered_json& memory) {
  const nlohmann::ordered_json bytes = memory.value("bytes", nlohmann::ordered_json());
  const std::string amount =
      bytes.is_number() ? fmt::format("{:.1f} MiB", bytes.get<double>() / (1 << 20)) : "unknown how much";
  return fmt::format("memory: {} on nodes {} {}", amount, memory.value("nodes", ""),
                     memory.value("follows", false) ? "was to follow it (placement.memory-migrate)" : "stayed behind");
}

/// In lines.
std::vector<std::string> describe_decision(const Explanation& explanation) {
  const Table& decision = explanation.decision;
  const auto of = [&](const char* column) { return text(decision, 0, column); };
  const auto or_dash = [&](const char* column) { return of(column).empty() ? "-" : of(column); };
  std::vector<std::string> lines = {
      fmt::format("{}  attempt {}  {}", name_in(decision, 0), of("attempt"), of("container_id")),
      fmt::format("{} {}, decision {}{}", of("event"), of("time"), of("decision"),
                  of("outcome").empty() ? "" : ", " + of("outcome"))};
  if (!of("ended_cause").empty()) {
    const bool released = of("mode") == "exclusive" && of("ended_cause") != "superseded";
    lines.push_back(fmt::format("{} ({}) {}", released ? "released CPUs " + of("cpus") : "ended",
                                in_words(of("ended_cause")), of("ended_time")));
  }
  if (!of("mode").empty()) {
    lines.push_back(fmt::format("{} {}, withheld {}, memory nodes {}{}", of("mode"),
                                describe_cpus(of("cpus"), explanation), or_dash("withheld"), or_dash("mems"),
                                describe_winner(of("event"), of("nodes"))));
  }
  lines.push_back(fmt::format("reason {}: {}", moment_of(of("event")), of("reason")));
  if (!explanation.memory.empty()) lines.push_back(describe_memory(explanation.memory));
  if (!explanation.load_sample.is_null())
    lines.push_back(fmt::format("load: decided by sample {} of the table load_sample", explanation.load_sample.dump()));
  if (explanation.squeezed) {
    for (std::string& line : describe_squeezed(*explanation.squeezed)) lines.push_back(std::move(line));
  }
  for (std::string& line : describe_seen(explanation.seen)) lines.push_back(std::move(line));
  if (const Widened& widened = explanation.widened; !widened.by.empty()) {
    lines.push_back(fmt::format(
        "widened since {}: it may also run on CPUs {}, beside its home {}, until others need them or clearly "
        "less of its home is used",
        widened.since, widened.by, widened.home));
  }
  for (const auto& [key, value] : explanation.tags.items())
    lines.push_back(fmt::format("tag {} = {}", key, value.is_string() ? value.get<std::string>() : value.dump()));
  for (std::string& line : describe_recorded(explanation.recorded_since, of("pod"))) lines.push_back(std::move(line));
  for (const std::string& warning : explanation.warnings) {
    // The decision at the create says it in its reason, too.
    if (of("reason").find(warning) == std::string::npos) lines.push_back("of the pod's annotations: " + warning);
  }
  if (std::string older = describe_older(explanation.found.older_uids); !older.empty()) {
    lines.push_back(std::move(older));
  }
  return lines;
}

Result<FoundDecision> decision_asked_for(const StateDatabase& database, const Invocation& invocation) {
  const std::string name = invocation.arguments.empty() ? "" : invocation.arguments[0];
  if (!invocation.has("decision")) return find_decision(database, name, invocation.text("uid"));
  return FoundDecision{.decision = invocation.value<std::int64_t>("decision")};
}

/// The warnings that were logged of the annotations of the pod that a decision is about.
Result<std::vector<std::string>> warnings_of(const StateDatabase& database, std::int64_t decision) {
  std::vector<std::string> warnings;
  const auto found = database.table(kWarned, decision);
  if (!found) return found.error();
  for (std::size_t row = 0; row < found->rows.size(); ++row) warnings.push_back(text(*found, row, "warning"));
  return warnings;
}

/// Tells into what a container is squeezed. `now`: the rest of its row in `allocation`.
std::optional<Squeezed> squeezed_of(const Table& now) {
  if (now.rows.empty() || text(now, 0, "squeezed").empty()) return std::nullopt;
  const std::string mode = text(now, 0, "mode");
  Squeezed squeezed{text(now, 0, "squeezed"), mode, text(now, 0, mode == "exclusive" ? "cpus" : "within")};
  const auto preferred = nlohmann::json::parse(text(now, 0, "preferred"), nullptr, false);
  if (!preferred.is_object()) return squeezed;
  squeezed.mode = preferred.value("mode", "");
  squeezed.cpus = preferred.value(squeezed.mode == "exclusive" ? "cpus" : "within", "");
  return squeezed;
}

std::string time_text(const StateDatabase& database, std::int64_t at_ms) {
  const auto time = database.table("SELECT strftime('%Y-%m-%dT%H:%M:%fZ', ?1 / 1000.0, 'unixepoch') AS time", at_ms);
  return time && !time->rows.empty() ? text(*time, 0, "time") : std::string();
}

/// As squeezed_of().
Seen seen_of(const StateDatabase& database, const Table& now) {
  if (now.rows.empty()) return {};
  Seen seen{text(now, 0, "mode"), text(now, 0, "seen_on"), text(now, 0, "overlapped"), {}, {}, {}, {}};
  if (const auto stuck = nlohmann::json::parse(text(now, 0, "stuck"), nullptr, false); stuck.is_object()) {
    seen.stuck_on = stuck.value("cpus", "");
    seen.stuck_why = stuck.value("why", "");
  }
  const auto overruled = nlohmann::json::parse(text(now, 0, "overruled"), nullptr, false);
  if (!overruled.is_object()) return seen;
  seen.overruled_by = overruled.value("plugin", "");
  seen.overruled_since = time_text(database, overruled.value("since_ms", std::int64_t{0}));
  return seen;
}

/// As squeezed_of().
Widened widened_of(const StateDatabase& database, const Table& now) {
  if (now.rows.empty()) return {};
  const auto widening = nlohmann::json::parse(text(now, 0, "widening"), nullptr, false);
  if (!widening.is_object() || widening.value("cpus", "").empty()) return {};
  return {widening.value("cpus", ""), text(now, 0, "within"),
          time_text(database, widening.value("at_ms", std::int64_t{0}))};
}

/// A column that is JSON, or empty.
nlohmann::ordered_json json_in(const Table& table, const char* column, nlohmann::ordered_json if_empty) {
  if (table.rows.empty()) return if_empty;
  auto json = nlohmann::ordered_json::parse(text(table, 0, column), nullptr, false);
  return json.type() == if_empty.type() ? json : if_empty;
}

Result<Explanation> explanation_of(const StateDatabase& database, FoundDecision found) {
  const std::int64_t number = found.decision;
  const auto decision = database.table(kDecision, number);
  if (!decision) return decision.error();
  if (decision->rows.empty()) return Error{Code::kNotFound, fmt::format("there is no decision {}", number)};
  const auto now = database.table(kNow, number);
  if (!now) return now.error();
  const auto judged = audit::judged_in(database.connection(), number);
  if (!judged) return judged.error();
  const std::int64_t judged_in = judged->value_or(number);
  auto verdicts = database.table(
      "SELECT decision, rank, nodes, sum, rejected, policy, kind AS says, score, reason "
      "FROM verdict WHERE decision = ?1 ORDER BY rank, policy",
      judged_in);
  if (!verdicts) return verdicts.error();
  auto notes = database.table("SELECT kind, note, candidates FROM verdict_note WHERE decision = ?1", judged_in);
  if (!notes) return notes.error();
  auto warnings = warnings_of(database, number);
  if (!warnings) return warnings.error();
  const auto noted = database.table(kNoted, number);
  if (!noted) return noted.error();
  auto recorded_since = database.table(kRecordedSince, number, static_cast<std::int64_t>(kMostRecorded) + 1);
  if (!recorded_since) return recorded_since.error();
  std::optional<std::string> cpus_now;
  if (!now->rows.empty()) cpus_now = text(*now, 0, "cpus");
  return Explanation{std::move(found),
                     *decision,
                     std::move(cpus_now),
                     squeezed_of(*now),
                     seen_of(database, *now),
                     widened_of(database, *now),
                     json_in(*noted, "tags", nlohmann::ordered_json::object()),
                     json_in(*noted, "devices", nlohmann::ordered_json::array()),
                     json_in(*noted, "memory_cost", nlohmann::ordered_json::object()),
                     noted->rows.empty() ? Cell() : noted->rows[0].back(),
                     *std::move(warnings),
                     *std::move(recorded_since),
                     *std::move(verdicts),
                     *std::move(notes)};
}

nlohmann::ordered_json format_json(const Explanation& explanation) {
  nlohmann::ordered_json json = explanation.decision.format_json()[0];
  json["cpus_now"] = nullptr;
  if (explanation.cpus_now) json["cpus_now"] = *explanation.cpus_now;
  json["squeezed"] = explanation.squeezed ? explanation.squeezed->into : "";
  json["should_have"] = nullptr;
  if (explanation.squeezed) {
    json["should_have"] = {{"mode", explanation.squeezed->mode}, {"cpus", explanation.squeezed->cpus}};
  }
  json["seen_on"] = explanation.seen.elsewhere;
  json["overlapped"] = explanation.seen.overlapped;
  json["overruled_since"] = explanation.seen.overruled_since;
  json["overruled_by"] = explanation.seen.overruled_by;
  json["stuck_on"] = explanation.seen.stuck_on;
  json["widened_by"] = explanation.widened.by;
  json["tags"] = explanation.tags;
  json["devices"] = explanation.devices;
  json["memory_cost"] = explanation.memory;
  json["load_sample"] = explanation.load_sample;
  json["recorded_since"] = explanation.recorded_since.format_json();
  json["warnings"] = explanation.warnings;
  json["older_uids"] = explanation.found.older_uids;
  json["verdicts"] = explanation.verdicts.format_json();
  json["notes"] = explanation.notes.format_json();
  return json;
}

}  // namespace

void declare_explain(Options& options) {
  declare_database(options);
  declare_json(options);
  options.add_options()("uid", po::value<std::string>()->value_name("UID"),
                        "Only the pod with this UID, if several had the same name.")(
      "decision", po::value<std::int64_t>()->value_name("NUMBER"), "This decision, instead of a container's newest.");
}

Status explain(const Invocation& invocation) {
  if (invocation.has("decision") ? !invocation.arguments.empty() || invocation.has("uid")
                                 : invocation.arguments.empty() && !invocation.has("uid")) {
    return Error{Code::kInvalidArgument,
                 "usage: topolet explain CONTAINER, or --uid UID for a pod's only container, or "
                 "--decision NUMBER without a container; example: topolet explain web/main"};
  }
  const auto database = StateDatabase::open(invocation);
  if (!database) return database.error();
  if (Status ready = (*database)->require_newest_schema(); !ready) return ready;
  const auto found = decision_asked_for(**database, invocation);
  if (!found) return found.error();
  const auto explanation = explanation_of(**database, *found);
  if (!explanation) return explanation.error();
  if (invocation.has("json")) {
    fmt::print("{}", to_text(format_json(*explanation)));
    return {};
  }
  for (const std::string& line : describe_decision(*explanation)) print_line(line);
  if (!explanation->verdicts.rows.empty()) {
    fmt::print("\nCandidates at that time, the {} first\n{}",
               text(explanation->decision, 0, "event") == "denied" ? "best" : "winner",
               explanation->verdicts.format_text());
  }
  if (!explanation->notes.rows.empty()) fmt::print("\nAlso recorded\n{}", explanation->notes.format_text());
  return {};
}

}  // namespace topolet::cli
