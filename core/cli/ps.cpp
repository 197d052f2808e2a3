#include <fmt/format.h>

#include "core/cli/command.hpp"
#include "core/cli/options.hpp"
#include "core/cli/state_database.hpp"

namespace topolet::cli {

void declare_ps(Options& options) {
  declare_database(options);
  declare_format(options);
}

Status show_placements(const Invocation& invocation) {
  const auto format = format_of(invocation);
  if (!format) return format.error();
  const auto database = StateDatabase::open(invocation);
  if (!database) return database.error();
  return (*database)->print(
      "no container is placed",
      fmt::format("SELECT namespace, pod, container, substr(container_id, 1, 12) AS id, state, mode, cpus, "
                  "withheld, mems, since, reason AS \"{}\" FROM current_placements",
                  *format == Format::kTable ? "reason when placed" : "reason"));
}

}  // namespace topolet::cli
