#include "core/cli/simulate.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "core/base/escape.hpp"
#include "core/base/exit_status.hpp"
#include "core/base/file_exists.hpp"
#include "core/base/standard_streams.hpp"
#include "core/base/text.hpp"
#include "core/cli/command.hpp"
#include "core/cli/machine_map.hpp"
#include "core/cli/simulate_activity.hpp"
#include "core/cli/simulate_options.hpp"
#include "core/cli/simulate_record.hpp"
#include "core/cli/table.hpp"
#include "core/plugin/call/kept_page.hpp"
#include "core/plugin/guard/crash_mark.hpp"
#include "core/replay/replay.hpp"
#include "core/simulate/simulation.hpp"

namespace topolet::cli {
namespace {

namespace po = boost::program_options;
using nlohmann::ordered_json;
using simulate::OperationResult;

constexpr const char* kProgram = "topolet simulate";

Result<simulate::SimulatedFront> find_front(const std::string& name) {
  if (name == "cri") return simulate::SimulatedFront::kCri;
  if (name == "in-answer") return simulate::SimulatedFront::kInAnswer;
  if (name == "nri") return simulate::SimulatedFront::kNri;
  return Error{Code::kInvalidArgument,
               fmt::format("--front: there is no front end '{}'; give 'cri', 'nri' or 'in-answer'", name)};
}

bool is_daemon_option(const std::string& argument) {
  const std::string name = argument.substr(0, argument.find('='));
  return name.rfind("--", 0) == 0 && name.find('.') != std::string::npos && argument.find('=') != std::string::npos;
}

/// Where plugins are if the configuration does not say: installed, or beside this program in a build.
std::string plugin_dir(const config::RawConfig& raw) {
  for (const config::ConfigEntry& entry : raw.entries) {
    if (entry.section == "daemon" && entry.key == "plugin-dir") return {};
  }
  std::error_code ignored;
  const auto program = std::filesystem::canonical("/proc/self/exe", ignored).parent_path();
  for (const std::filesystem::path& dir : {std::filesystem::path(TOPOLET_PLUGIN_DIR), program / "../../plugins"}) {
    if (file_exists(dir)) return std::filesystem::canonical(dir, ignored).string();
  }
  return {};
}

Result<std::vector<std::uint32_t>> read_distances(const std::string& file) {
  std::ifstream in(file);
  if (!in) {
    return Error{Code::kInvalidArgument, fmt::format("--distances: cannot read {}: {}", file, std::strerror(errno))};
  }
  std::vector<std::uint32_t> distances;
  std::string word;
  while (in >> word) {
    const bool digits = !word.empty() && word.size() < 7 && word.find_first_not_of("0123456789") == std::string::npos;
    if (!digits)
      return Error{Code::kInvalidArgument, fmt::format("--distances: {}: '{}' is not a distance", file, word)};
    distances.push_back(static_cast<std::uint32_t>(std::stoul(word)));
  }
  if (distances.empty()) return Error{Code::kInvalidArgument, fmt::format("--distances: {} is empty", file)};
  return distances;
}

Result<topology::DiscoverOptions> machine_of(const SimulateOptions& options) {
  topology::DiscoverOptions machine;
  if (file_exists(options.topology)) {
    machine.xml_file = options.topology;
  } else {
    machine.synthetic = options.topology;
  }
  if (!options.isolated.empty()) {
    const auto cpus = CpuSet::parse(options.isolated);
    if (!cpus) return Error{Code::kInvalidArgument, "--isolated-cpus: " + cpus.error().message};
    machine.isolated = *cpus;
  }
  if (!options.distances.empty()) {
    auto distances = read_distances(options.distances);
    if (!distances) return distances.error();
    machine.distances = *std::move(distances);
  }
  return machine;
}

ordered_json verdicts_json(const placement::Verdicts& verdicts) {
  ordered_json json{{"candidates", verdicts.candidates}, {"best", ordered_json::array()}};
  for (const placement::CandidateOpinions& candidate : verdicts.best) {
    ordered_json opinions = ordered_json::array();
    for (const placement::CandidateOpinions::Opinion& opinion : candidate.opinions) {
      opinions.push_back(
          {{"policy", opinion.policy}, {"says", opinion.kind}, {"score", opinion.score}, {"reason", opinion.reason}});
    }
    json["best"].push_back({{"nodes", candidate.nodes},
                            {"score", candidate.score},
                            {"rejected", candidate.rejected},
                            {"words", std::move(opinions)}});
  }
  json["rejected"] = verdicts.rejected;
  json["lost_votes"] = verdicts.lost_votes;
  json["dropped"] = verdicts.dropped;
  return json;
}

/// A line of the workload with its outcome, to be shown.
struct Line {
  std::size_t number = 0;
  std::string op;
  std::string pod;
  std::string container;
  std::string cpus;  ///< that the operation names
  OperationResult outcome;
};

ordered_json to_json(const Line& line, bool explain) {
  const OperationResult& outcome = line.outcome;
  ordered_json json{{"op", line.op},
                    {"pod", line.pod},
                    {"container", line.container},
                    {"outcome", outcome.outcome},
                    {"mode", outcome.mode},
                    {"cpus", outcome.cpus.to_string()},
                    {"withheld", outcome.withheld.to_string()},
                    {"mems", outcome.mems.to_string()},
                    {"reason", outcome.reason},
                    {"changed", ordered_json::array()}};
  for (const simulate::MovedContainer& moved : outcome.changed) {
    json["changed"].push_back({{"pod", moved.pod},
                               {"container", moved.container},
                               {"mode", moved.mode},
                               {"cpus", moved.cpus.to_string()},
                               {"withheld", moved.withheld.to_string()},
                               {"mems", moved.mems.to_string()},
                               {"reason", moved.reason},
                               {"reason_code", moved.reason_code}});
  }
  if (!outcome.lost_votes.empty()) json["lost_votes"] = outcome.lost_votes;
  if (outcome.is_invalid_line) json["line"] = line.number;
  if (explain && outcome.verdicts) json["verdicts"] = verdicts_json(*outcome.verdicts);
  if (explain) json["plugins"] = activity_json(outcome.plugins);
  return json;
}

std::string explanation(const placement::Verdicts& verdicts) {
  std::string text = fmt::format("      {}, the winner first\n", counted(verdicts.candidates, "candidate"));
  for (const placement::CandidateOpinions& candidate : verdicts.best) {
    text += fmt::format("      nodes {:<8} {}\n", candidate.nodes.empty() ? "none" : escaped(candidate.nodes),
                        candidate.rejected ? "rejected" : fmt::format("{:+}", candidate.score));
    for (const placement::CandidateOpinions::Opinion& opinion : candidate.opinions) {
      text += fmt::format("        {} {}: {}\n", opinion.policy,
                          opinion.kind == "score" ? fmt::format("{:+}", opinion.score) : opinion.kind,
                          escaped(opinion.reason));
    }
  }
  for (const auto& [reason, count] : verdicts.rejected)
    text += fmt::format("      rejected {}: {}\n", counted(count, "candidate"), escaped(reason));
  for (const std::string& lost : verdicts.lost_votes) text += fmt::format("      lost vote: {}\n", escaped(lost));
  for (const std::string& dropped : verdicts.dropped) text += fmt::format("      dropped: {}\n", escaped(dropped));
  return text;
}

std::string format_text(const std::vector<Line>& lines, bool explain) {
  Table table{{"line", "op", "of", "outcome", "mode", "cpus", "withheld", "mems", "reason"}, {}};
  for (const Line& line : lines) {
    const OperationResult& outcome = line.outcome;
    std::string reason = outcome.reason;
    for (const simulate::MovedContainer& moved : outcome.changed) {
      reason += fmt::format("{}{}/{} moves to {}", reason.empty() ? "" : "; ", moved.pod, moved.container,
                            moved.cpus.to_string());
      if (!moved.withheld.empty()) reason += ", withheld " + moved.withheld.to_string();
      if (!moved.reason.empty()) reason += " (" + moved.reason + ")";
    }
    const std::string of = line.container.empty() ? line.pod + line.cpus : line.pod + "/" + line.container;
    table.rows.push_back({line.number, line.op, of, outcome.outcome, outcome.mode, outcome.cpus.to_string(),
                          outcome.withheld.to_string(), outcome.mems.to_string(), reason});
  }
  if (!explain) return table.format_text();
  std::istringstream rows(table.format_text());
  std::string row;
  std::string text;
  std::getline(rows, row);
  text += row + '\n';
  for (const Line& line : lines) {
    std::getline(rows, row);
    text += row + '\n';
    if (line.outcome.verdicts) text += explanation(*line.outcome.verdicts);
    text += activity_text(line.outcome.plugins);
  }
  return text;
}

MachineMap map_of(const simulate::Snapshot& snapshot) {
  const topology::Topology& topology = *snapshot.topology;
  MachineMap map;
  map.cores = topology.cores;
  map.online = topology.online;
  map.offline = snapshot.offline;
  map.allowed = snapshot.rules.allowed;
  map.reserved = snapshot.rules.reserved;
  map.isolated = snapshot.rules.isolated;
  map.occupied = snapshot.rules.occupied;
  for (const topology::Node& node : topology.nodes) {
    if (node.memory_only) {
      map.memory_only.insert(node.os_index);
    } else {
      map.nodes.push_back({node.os_index, node.cpus});
    }
  }
  for (const placement::LedgerEntry& entry : snapshot.ledger.entries) {
    const placement::Placement& placement = entry.placement;
    const bool is_exclusive = placement.mode == placement::Mode::kExclusive;
    if (!is_exclusive && placement.withheld.empty()) continue;
    map.holders.push_back({entry.key.pod_uid + "/" + entry.key.name, is_exclusive, placement.cpus, placement.withheld});
  }
  return map;
}

Line apply(simulate::Simulation& simulation, std::size_t number, const std::string& text) {
  Line line;
  line.number = number;
  const auto operation = simulate::parse_operation(text);
  if (!operation) {
    line.outcome.outcome = "error";
    line.outcome.is_invalid_line = true;
    line.outcome.reason = operation.error().message;
    return line;
  }
  line.op = to_string(operation->kind);
  line.pod = operation->pod;
  line.container = operation->container;
  line.cpus = operation->cpus.to_string() + operation->path;
  line.outcome = simulation.apply(*operation);
  return line;
}

int run_lines(simulate::Simulation& simulation, std::istream& in, const SimulateOptions& options) {
  std::vector<Line> lines;
  std::string text;
  std::size_t bad = 0;
  for (std::size_t number = 1; std::getline(in, text); ++number) {
    if (trimmed(text).empty()) continue;
    Line line = apply(simulation, number, text);
    if (line.outcome.is_invalid_line) {
      ++bad;
      print_error_line(fmt::format("{}: line {}: {}", kProgram, number, line.outcome.reason));
    }
    if (options.json) {
      ordered_json json = to_json(line, options.explain);
      if (!options.watch.empty()) json["generation"] = simulation.generation();
      fmt::print(own_output(), "{}\n", dump(json));
      // Whoever writes the lines one by one waits for the answers.
      if (options.workload == "-") std::fflush(own_output());
    } else {
      lines.push_back(std::move(line));
    }
  }
  if (!options.json) {
    fmt::print(own_output(), "{}\n{}", format_text(lines, options.explain), draw(map_of(simulation.snapshot())));
  }
  if (in.bad()) {
    print_error_line(fmt::format("{}: cannot read all of {}", kProgram, options.workload));
    return kExitFailure;
  }
  if (bad == 0) return kExitSuccess;
  print_error_line(
      fmt::format("{}: {} not valid", kProgram, bad == 1 ? "1 line was" : fmt::format("{} lines were", bad)));
  return kExitUsage;
}

/// Whoever reads the output may have gone; the simulation is to end properly nevertheless.
int run_lines_reporting(simulate::Simulation& simulation, std::istream& in, const SimulateOptions& options) {
  try {
    return run_lines(simulation, in, options);
  } catch (const std::exception& error) {
    if (const auto lost = report_lost_output(kProgram, error)) return *lost;
    throw;
  }
}

/// Reports differences that depend on the speed of this machine, so that nobody expects them of another.
void report_slow_plugins(const simulate::Simulation& simulation, const config::PlacementOptions& placement) {
  std::string slow;
  for (const auto& [plugin, lost] : simulation.lost_votes()) {
    if (lost.late + lost.out_of_time == 0) continue;
    slow += fmt::format("{}{} ({} late, {} not asked)", slow.empty() ? "" : ", ", plugin, lost.late,
                        lost.not_asked + lost.out_of_time);
  }
  if (slow.empty()) return;
  print_error_line(fmt::format(
      "{}: votes were lost because plugins took too long: {}; on another machine, or when this one has less to do, "
      "containers may be placed differently; raise placement.deadline-ms ({}) and placement.decision-ms ({}) to wait "
      "longer",
      kProgram, slow, placement.deadline.count(), placement.decision_time.count()));
}

/// Whoever watches what a file led to may do so until the program is told to end. Made before there are threads, so
/// that none of them gets the signal.
class EndSignal {
 public:
  EndSignal() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGTERM);
    sigaddset(&signals_, SIGINT);
    ::pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }
  void wait() const {
    int received = 0;
    ::sigwait(&signals_, &received);
  }

 private:
  sigset_t signals_{};
};

Result<std::vector<plugin::PluginLibrary>> load_files(const std::vector<std::string>& files) {
  std::vector<plugin::PluginLibrary> loaded;
  for (const std::string& file : files) {
    auto library = plugin::PluginLibrary::load_file(file);
    if (!library) return Error{library.error().code, "--plugin: " + library.error().message};
    loaded.push_back(*std::move(library));
  }
  return loaded;
}

/// The flags to add to `flags`, so that `added` are enabled beside what `raw` enables: a flag takes the place of what
/// the file enables.
std::vector<std::string> enabling_flags(const config::RawConfig& raw, const std::vector<std::string>& flags,
                                        const std::vector<plugin::PluginLibrary>& added) {
  const auto enables = [](const std::string& flag) { return flag.starts_with("--plugins.enable="); };
  const std::vector<std::string> enabled = config::enabled_plugins(raw).enabled;
  std::vector<std::string> names;
  if (!added.empty() && std::none_of(flags.begin(), flags.end(), enables)) names = enabled;
  for (const plugin::PluginLibrary& library : added) {
    if (std::find(enabled.begin(), enabled.end(), library.id()) == enabled.end()) names.push_back(library.id());
  }
  for (std::string& name : names) name.insert(0, "--plugins.enable=");
  return names;
}

plugin::LoadedConfig setup_of(const SimulateOptions& options, const std::vector<std::string>& flags,
                              const std::vector<plugin::PluginLibrary>& added) {
  std::vector<std::string> arguments = {"--config", options.config.empty() ? "/dev/null" : options.config};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  const config::RawConfig raw = config::read_raw(arguments);
  if (const std::string dir = plugin_dir(raw); !dir.empty()) arguments.push_back("--daemon.plugin-dir=" + dir);
  for (std::string& flag : enabling_flags(raw, flags, added)) arguments.push_back(std::move(flag));
  return plugin::load_config(config::read_raw(arguments), added);
}

RecordOptions record_options(const SimulateOptions& options, std::vector<std::string> flags,
                             const po::variables_map& given) {
  RecordOptions record{options.workload, options.config, std::move(flags), plugin_dir({}), {}, options.json};
  for (const auto& [name, value] : given) {
    if (!value.defaulted()) record.given.push_back(name);
  }
  return record;
}

int run(const std::vector<std::string>& arguments) {
  SimulateOptions options;
  std::vector<std::string> own;
  std::vector<std::string> flags;
  for (const std::string& argument : arguments) (is_daemon_option(argument) ? flags : own).push_back(argument);
  const po::options_description description = simulate_options(options);
  po::variables_map given;
  po::store(po::command_line_parser(own)
                .options(description)
                .positional({})
                .style(po::command_line_style::unix_style & ~po::command_line_style::allow_guessing)
                .run(),
            given);
  po::notify(given);
  if (given.count("help") != 0) return print_simulate_help();
  if (options.workload.empty())
    return usage_error(kProgram, "no workload given; name a file with --workload, or - for standard input; see --help");
  // A plugin that crashes is to be named, as topoletd names it.
  plugin::record_crashes_to(-1, kProgram);
  plugin::introduce_host_as("topolet simulate");
  // A line of a plugin is not to be taken for a result.
  if (!keep_output_apart()) {
    print_error_line(fmt::format("{}: no descriptor is left to keep the output apart from plugins", kProgram));
    return kExitFailure;
  }
  std::ifstream file;
  if (options.workload != "-") {
    file.open(options.workload);
    if (!file) return usage_error(kProgram, fmt::format("cannot read {}: {}", options.workload, std::strerror(errno)));
    if (replay::is_record(file)) return replay_record(file, record_options(options, flags, given));
  }
  if (options.topology.empty())
    return usage_error(kProgram, "no machine given; name a file or a description with --topology; see --help");
  const auto added = load_files(options.plugins);
  if (!added) return usage_error(kProgram, added.error().message);
  plugin::LoadedConfig setup = setup_of(options, flags, *added);
  if (const std::vector<std::string> mistakes = setup.mistakes(); !mistakes.empty()) {
    listed_error(Code::kInvalidArgument, "the configuration has mistakes:", mistakes);
    return kExitUsage;
  }
  const auto machine = machine_of(options);
  if (!machine) return usage_error(kProgram, machine.error().message);
  simulate::SimulationOptions simulated;
  const auto front = find_front(options.front);
  if (!front) return usage_error(kProgram, front.error().message);
  simulated.front = *front;
  if (!options.state_dir.empty()) simulated.state_dir = std::filesystem::absolute(options.state_dir);
  if (!options.watch.empty()) {
    const Result<std::string> socket = config::parse_socket(options.watch);
    if (!socket) return usage_error(kProgram, "--watch: " + socket.error().message);
    simulated.watch_socket = *socket;
  }
  std::optional<EndSignal> end;
  if (!options.watch.empty() && options.workload != "-") end.emplace();
  const config::PlacementOptions placement = setup.config.options.placement;
  auto simulation = simulate::Simulation::make(*machine, std::move(setup), simulated);
  if (!simulation) return usage_error(kProgram, simulation.error().message);
  const int status = run_lines_reporting(**simulation, options.workload == "-" ? std::cin : file, options);
  report_slow_plugins(**simulation, placement);
  if (end && status == kExitSuccess) {
    std::fflush(own_output());
    print_error_line(fmt::format("{}: serving the watch socket {}; Ctrl-C ends it", kProgram, simulated.watch_socket));
    end->wait();
  }
  const bool is_stuck = (*simulation)->has_abandoned_calls();
  simulation->reset();
  // Libraries' exit handlers must not run under a call that is still inside the library.
  if (is_stuck) ::_exit(finish_output(kProgram, status));
  return status;
}

}  // namespace

int simulate_command(const std::vector<std::string>& arguments) {
  try {
    return run(arguments);
  } catch (const po::error& error) {
    SimulateOptions ignored;
    return usage_error(kProgram, with_hint(option_error(error, simulate_options(ignored)),
                                           "`topolet simulate --help` lists the options"));
  }
}

}  // namespace topolet::cli
