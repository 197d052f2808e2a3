#include "core/cli/command.hpp"
#include "core/cli/options.hpp"
#include "core/cli/state_database.hpp"

namespace topolet::cli {

void declare_at(Options& options) {
  declare_database(options);
  declare_format(options);
}

Status show_held(const Invocation& invocation) {
  const auto at = moment(invocation.arguments[0]);
  if (!at) return at.error();
  const auto database = StateDatabase::open(invocation);
  if (!database) return database.error();
  if (Status ready = (*database)->require_newest_schema(); !ready) return ready;
  return (*database)->print("nothing was held then, as far as the database tells",
                            "SELECT namespace, pod, container, attempt, substr(container_id, 1, 12) AS id, mode, cpus, "
                            "withheld, mems, since, reason, decision FROM held_at(?1) "
                            "ORDER BY namespace, pod, container, attempt",
                            *at);
}

}  // namespace topolet::cli
