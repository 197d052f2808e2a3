#include <fmt/format.h>

#include <boost/program_options.hpp>

#include "core/cli/command.hpp"
#include "core/cli/options.hpp"
#include "core/cli/state_database.hpp"

namespace topolet::cli {
namespace {

namespace po = boost::program_options;

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

}  // namespace

void declare_audit(Options& options) {
  declare_database(options);
  declare_format(options);
  options.add_options()("pod", po::value<std::string>()->value_name("NAME"), "Only this pod.")(
      "limit", po::value<int>()->value_name("NUMBER")->default_value(50), "How many entries to show, the newest ones.");
}

Status show_audit(const Invocation& invocation) {
  const auto limit = number_of(invocation, "limit", 1);
  if (!limit) return limit.error();
  const auto format = format_of(invocation);
  if (!format) return format.error();
  const auto database = StateDatabase::open(invocation);
  if (!database) return database.error();
  const bool for_people = *format == Format::kTable;
  const std::string newest = fmt::format(
      "SELECT time, event, namespace, pod, container, attempt, {}, {}, decision FROM (SELECT *, {} AS step FROM audit "
      "{} ORDER BY at_ms DESC, decision DESC, step DESC LIMIT ?1) AS newest ORDER BY at_ms, decision, step",
      for_people ? kWhatForPeople : "what", for_people ? kReasonForPeople : "reason", kStep,
      invocation.has("pod") ? "WHERE pod = ?2" : "");
  const auto entries = static_cast<std::int64_t>(*limit);
  if (!invocation.has("pod")) return (*database)->print("nothing is recorded yet", newest, entries);
  const std::string pod = invocation.text("pod");
  return (*database)->print(fmt::format("nothing is recorded about pod '{}'", pod), newest, entries, pod);
}

}  // namespace topolet::cli
