#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <string>
#include <vector>

#include "core/base/suggestion.hpp"
#include "core/cli/command.hpp"
#include "core/cli/options.hpp"
#include "core/cli/state_database.hpp"
#include "core/placement/move_kind.hpp"

namespace topolet::cli {
namespace {

/// {0}: columns for people, {1}: those for programs, which come last, as programs may read by position.
constexpr const char* kMoves = R"sql(
SELECT at AS time, namespace, pod, container, from_cpus AS "from", to_cpus AS "to",{0}
       CASE kind WHEN 'pool' THEN 'it follows the pool' ELSE reason END AS reason,
       CASE
         WHEN kind <> 'pool' THEN '' WHEN cause = 'left' THEN 'has left CPUs: '
         WHEN cause = 'machine' THEN 'the machine changed' WHEN cause = 'started' THEN 'topoletd started'
         WHEN caused_by IS NULL THEN '' ELSE cause || ' '
       END || coalesce(caused_by_container, '') AS "because of", caused_by, decision{1}
FROM moves(?1, ?2) WHERE ?3 = '' OR kind = ?3)sql";

/// Only what has changed. Pages of memory are where they were first used, so it is said of moves between nodes only.
constexpr const char* kEffectsForPeople = R"sql(
       kind, rtrim(CASE WHEN nodes_before <> nodes_after THEN printf('nodes %d -> %d, ', nodes_before, nodes_after) ELSE '' END ||
             CASE WHEN l3s_before <> l3s_after THEN printf('L3s %d -> %d, ', l3s_before, l3s_after) ELSE '' END ||
             CASE WHEN remote_cpus_before <> remote_cpus_after
                  THEN printf('far from devices %d -> %d', remote_cpus_before, remote_cpus_after) ELSE '' END, ', ') AS gain,
       printf('%d CPU%s', moved_cpus, CASE moved_cpus WHEN 1 THEN '' ELSE 's' END) ||
       CASE WHEN memory_left_bytes IS NULL THEN ', memory not known' WHEN memory_left_bytes = 0 THEN ''
            ELSE printf(', %.1f MiB stay behind', memory_left_bytes / 1048576.0) END AS cost,)sql";
constexpr const char* kEffectsForPrograms =
    ", kind, nodes_before, nodes_after, l3s_before, l3s_after, remote_cpus_before, remote_cpus_after, moved_cpus, "
    "memory_left_bytes";

/// Returns --kind; empty: any.
Result<std::string> kind_of(const Invocation& invocation) {
  if (!invocation.has("kind")) return std::string();
  std::string kind = invocation.text("kind");
  const std::vector<std::string> kinds = placement::move_kinds();
  if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) return kind;
  return Error{Code::kInvalidArgument,
               fmt::format("--kind: '{}' is none of {}{}", kind, fmt::join(kinds, ", "), suggestion(kind, kinds))};
}

}  // namespace

void declare_moves(Options& options) {
  declare_database(options);
  declare_format(options);
  declare_time_range(options, "1h");
  options.add_options()(
      "kind", boost::program_options::value<std::string>()->value_name("KIND"),
      fmt::format(
          "Only moves of one kind. One of: {}. `room` made room for another container, `pool` followed the CPUs "
          "that containers share, `decision` is any other.",
          fmt::join(placement::move_kinds(), ", "))
          .c_str());
}

Status show_moves(const Invocation& invocation) {
  const auto range = time_range(invocation);
  if (!range) return range.error();
  const auto kind = kind_of(invocation);
  if (!kind) return kind.error();
  const auto format = format_of(invocation);
  if (!format) return format.error();
  const auto database = StateDatabase::open(invocation);
  if (!database) return database.error();
  if (Status ready = (*database)->require_newest_schema(); !ready) return ready;
  const bool is_for_people = *format == Format::kTable;
  const std::string query =
      fmt::format(kMoves, is_for_people ? kEffectsForPeople : "", is_for_people ? "" : kEffectsForPrograms);
  return (*database)->print("no container was moved in that time", query, range->since_ms, range->until_ms, *kind);
}

}  // namespace topolet::cli
