#include "core/cli/simulate_record.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/escape.hpp"
#include "core/base/exit_status.hpp"
#include "core/base/standard_streams.hpp"
#include "core/base/text.hpp"
#include "core/cli/command.hpp"
#include "core/cli/table.hpp"
#include "core/replay/replay.hpp"

namespace topolet::cli {
namespace {

constexpr const char* kReplayProgram = "topolet simulate";
/// Options that are for other workloads.
constexpr std::array<const char*, 8> kRefused = {"topology", "distances", "isolated-cpus", "state-dir",
                                                 "watch",    "front",     "explain",       "plugin"};

void print_result(const replay::ReplayResult& result) {
  fmt::print(own_output(), "{} made again, and {}; {}, {} lost again; {} of topoletd\n",
             counted(result.decisions, "decision"),
             result.different == 0 ? "all as before" : fmt::format("{} not as before", result.different),
             counted(result.ticks, "tick"), counted(result.lost_votes, "vote"), counted(result.begins, "start"));
  if (!result.first) return;
  const replay::Difference& first = *result.first;
  fmt::print(own_output(), "the first that is another: line {}: {}: {}\n", first.line, escaped(first.container),
             escaped(first.what));
}

nlohmann::ordered_json result_json(const replay::ReplayResult& result) {
  nlohmann::ordered_json json{{"decisions", result.decisions},   {"different", result.different},
                              {"ticks", result.ticks},           {"events", result.events},
                              {"operations", result.operations}, {"lost_votes", result.lost_votes},
                              {"starts", result.begins},         {"torn_lines", result.torn_lines}};
  if (result.first) {
    json["first"] = {{"line", result.first->line},
                     {"container", result.first->container},
                     {"policy", result.first->policy},
                     {"what", result.first->what}};
  }
  return json;
}

}  // namespace

int replay_record(std::istream& record, const RecordOptions& options) {
  for (const char* refused : kRefused) {
    if (std::find(options.given.begin(), options.given.end(), refused) == options.given.end()) continue;
    return usage_error(
        kReplayProgram,
        fmt::format(
            "{} is a record, which has its own machine and state, and no operation is carried out: it cannot be run "
            "with --{}",
            options.workload, refused));
  }
  std::vector<std::string> arguments = {"--config", options.config.empty() ? "/dev/null" : options.config};
  arguments.insert(arguments.end(), options.flags.begin(), options.flags.end());
  const config::RawConfig raw = config::read_raw(arguments);
  if (!raw.mistakes.empty()) {
    std::vector<std::string> mistakes;
    for (const config::ConfigMistake& mistake : raw.mistakes) mistakes.push_back(mistake.to_string());
    listed_error(Code::kInvalidArgument, "the configuration has mistakes:", mistakes);
    return kExitUsage;
  }
  replay::ReplayOptions replayed{.plugin_dir = options.plugin_dir};
  if (options.config.empty()) {
    replayed.overrides = entries_in_force(raw);
  } else {
    replayed.configuration = entries_in_force(raw);
    for (config::ConfigEntry& entry : *replayed.configuration) entry.file.clear();
  }
  const auto result = replay::replay(record, replayed);
  if (!result) {
    print_error_line(fmt::format("{}: {}: {}", kReplayProgram, options.workload, result.error().message));
    return result.error().code == Code::kInvalidArgument ? kExitUsage : kExitFailure;
  }
  if (options.json) {
    fmt::print(own_output(), "{}\n", dump(result_json(*result)));
  } else {
    print_result(*result);
  }
  const int status = result->different == 0 ? kExitSuccess : kExitFailure;
  // The destructors of a library must not run at the end of the process under a call that is inside it.
  if (result->has_abandoned_calls) ::_exit(finish_output(kReplayProgram, status));
  return status;
}

}  // namespace topolet::cli
