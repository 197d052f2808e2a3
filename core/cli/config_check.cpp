#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/base/escape.hpp"
#include "core/cli/command.hpp"
#include "core/cli/options.hpp"
#include "core/cli/output.hpp"
#include "core/cli/table.hpp"
#include "core/preflight/preflight.hpp"

namespace topolet::cli {

namespace {

std::vector<std::string> to_lines(const std::vector<config::ConfigMistake>& findings) {
  std::vector<std::string> lines;
  for (const config::ConfigMistake& finding : findings) lines.push_back(finding.to_string());
  return lines;
}

}  // namespace

void declare_config_check(Options& options) { declare_json(options); }

Status check_config(const Invocation& invocation) {
  const std::string file = invocation.arguments.empty() ? config::kDefaultConfigFile : invocation.arguments[0];
  const config::RawConfig raw = config::read_raw({"--config", file});
  const preflight::Findings found = preflight::check(raw);
  const std::vector<std::string> mistakes = to_lines(found.mistakes);
  const std::vector<std::string> warnings = to_lines(found.warnings);
  if (invocation.has("json")) {
    fmt::print("{}", to_text({{"file", file}, {"files", raw.files}, {"mistakes", mistakes}, {"warnings", warnings}}));
    return mistakes.empty() ? Status() : Status(Error{Code::kFailedPrecondition, ""});
  }
  for (const std::string& warning : warnings) print_error_line("warning: " + warning);
  if (!mistakes.empty()) return listed_error(Code::kFailedPrecondition, file + " has mistakes:", mistakes);
  print_line(fmt::format("{} is valid{}", file, raw.files != std::vector<std::string>{file} ? ", with its parts" : ""));
  return {};
}

}  // namespace topolet::cli
