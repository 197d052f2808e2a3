#include "core/cli/command.hpp"
#include "core/cli/options.hpp"
#include "core/cli/state_database.hpp"

namespace topolet::cli {
namespace {

constexpr const char* kMoves = R"sql(
SELECT at AS time, namespace, pod, container, from_cpus AS "from", to_cpus AS "to",
       CASE kind WHEN 'pool' THEN 'it follows the pool' ELSE reason END AS reason,
       CASE
         WHEN kind = 'decision' THEN '' WHEN cause = 'left' THEN 'has left CPUs: '
         WHEN cause = 'machine' THEN 'the machine changed' WHEN cause = 'started' THEN 'topoletd started'
         WHEN caused_by IS NULL THEN '' ELSE cause || ' '
       END || coalesce(caused_by_container, '') AS "because of", caused_by, decision
FROM moves(?1, ?2))sql";

}  // namespace

void declare_moves(Options& options) {
  declare_database(options);
  declare_format(options);
  declare_time_range(options, "1h");
}

Status show_moves(const Invocation& invocation) {
  const auto range = time_range(invocation);
  if (!range) return range.error();
  const auto database = StateDatabase::open(invocation);
  if (!database) return database.error();
  if (Status ready = (*database)->require_newest_schema(); !ready) return ready;
  return (*database)->print("nobody was moved in that time", kMoves, range->since_ms, range->until_ms);
}

}  // namespace topolet::cli
