#include <fmt/format.h>

#include "core/cli/command.hpp"
#include "core/cli/options.hpp"
#include "core/cli/table.hpp"
#include "core/plugin/host/loaded_config.hpp"

namespace topolet::cli {

void declare_config_check(Options& options) { declare_json(options); }

Status check_config(const Invocation& invocation) {
  const std::string file = invocation.arguments.empty() ? config::kDefaultConfigFile : invocation.arguments[0];
  const std::vector<std::string> mistakes = plugin::load_config(config::read_raw({"--config", file})).mistakes();
  if (invocation.has("json")) fmt::print("{}", to_text({{"file", file}, {"mistakes", mistakes}}));
  if (mistakes.empty()) {
    if (!invocation.has("json")) fmt::print("{} is valid\n", file);
    return {};
  }
  return Error{Code::kFailedPrecondition,
               invocation.has("json") ? "" : fmt::format("{} has mistakes:\n{}", file, fmt::join(mistakes, "\n"))};
}

}  // namespace topolet::cli
