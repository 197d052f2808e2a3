#include <fmt/format.h>

#include <array>
#include <boost/program_options.hpp>
#include <string>

#include "core/cli/command.hpp"
#include "core/cli/options.hpp"
#include "core/cli/state_database.hpp"

namespace topolet::cli {
namespace {

namespace po = boost::program_options;

/// Denials that were first made, or repeated last, in the time asked for.
constexpr const char* kInTime = R"sql(
WITH recent AS (
  SELECT d.decision, d.at_ms, coalesce(r.last_ms, d.at_ms) AS last_ms, 1 + coalesce(r.count, 0) AS times,
         d.pod_namespace, d.pod_name, d.container, d.attempt, d.reason_code, d.reason, d.verdicts
  FROM decided d LEFT JOIN repeat r USING (decision)
  WHERE d.event = 'denied' AND d.at_ms <= ?2 AND coalesce(r.last_ms, d.at_ms) >= ?1
))sql";

constexpr const char* kTime = "strftime('%Y-%m-%dT%H:%M:%fZ', {} / 1000.0, 'unixepoch')";

struct Grouping {
  const char* name;
  const char* column;  ///< as SQL
  const char* heading;
  const char* from;
};
constexpr std::array<Grouping, 4> kGroupings{{
    {"reason", "CASE reason_code WHEN '' THEN 'not recorded' ELSE reason_code END", "reason", "recent"},
    {"namespace", "pod_namespace", "namespace", "recent"},
    {"pod", "pod_namespace || '/' || pod_name", "pod", "recent"},
    // A plugin may have rejected the candidates of one container for several reasons.
    {"plugin", "plugin", "plugin",
     "(SELECT DISTINCT recent.decision, times, last_ms, substr(n.key, 1, instr(n.key, ': ') - 1) AS plugin "
     "FROM recent JOIN json_each(recent.verdicts, '$.rejected') n)"},
}};

std::string time_of(const char* column) { return fmt::format(fmt::runtime(kTime), column); }

}  // namespace

void declare_denials(Options& options) {
  declare_database(options);
  declare_format(options);
  declare_time_range(options, "1d");
  options.add_options()("by", po::value<std::string>()->value_name("WHAT"),
                        "Count them by reason, namespace, pod, or plugin (that rejected candidates).");
}

Status show_denials(const Invocation& invocation) {
  const auto range = time_range(invocation);
  if (!range) return range.error();
  std::string sql = fmt::format(
      "{} SELECT {} AS first, {} AS last, times, pod_namespace AS namespace, pod_name AS pod, container, attempt, "
      "reason_code AS code, reason, decision FROM recent ORDER BY at_ms, decision",
      kInTime, time_of("at_ms"), time_of("last_ms"));
  if (invocation.has("by")) {
    const std::string by = invocation.text("by");
    const Grouping* chosen = nullptr;
    for (const Grouping& grouping : kGroupings) {
      if (by == grouping.name) chosen = &grouping;
    }
    if (chosen == nullptr) {
      return Error{Code::kInvalidArgument, fmt::format("--by must be reason, namespace, pod or plugin, not '{}'", by)};
    }
    sql = fmt::format(
        "{} SELECT {} AS {}, count(*) AS containers, sum(times) AS times, {} AS last FROM {} GROUP BY 1 "
        "ORDER BY containers DESC, times DESC, 1",
        kInTime, chosen->column, chosen->heading, time_of("max(last_ms)"), chosen->from);
  }
  const auto database = StateDatabase::open(invocation);
  if (!database) return database.error();
  if (Status ready = (*database)->require_newest_schema(); !ready) return ready;
  return (*database)->print("nothing was denied in that time", sql, range->since_ms, range->until_ms);
}

}  // namespace topolet::cli
