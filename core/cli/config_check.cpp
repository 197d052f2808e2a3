#include <fmt/format.h>

#include "core/cli/command.hpp"
#include "core/cli/table.hpp"
#include "core/daemon/setup.hpp"

namespace topolet::cli {

Status check_config(const Request& request) {
  const std::string file = request.arguments.empty() ? kDefaultConfigFile : request.arguments[0];
  const std::vector<std::string> mistakes = make_setup(read_raw({"--config", file})).mistakes();
  if (request.json) fmt::print("{}", to_text({{"file", file}, {"mistakes", mistakes}}));
  if (mistakes.empty()) {
    if (!request.json) fmt::print("{} is fine\n", file);
    return {};
  }
  return Error{Code::kFailedPrecondition,
               request.json ? "" : fmt::format("{} is not right:\n{}", file, fmt::join(mistakes, "\n"))};
}

}  // namespace topolet::cli
