#include "core/cli/simulate.hpp"

#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "core/cli/command.hpp"
#include "core/cli/machine_map.hpp"
#include "core/cli/table.hpp"
#include "core/simulate/simulation.hpp"

namespace topolet::cli {
namespace {

namespace po = boost::program_options;
using nlohmann::ordered_json;
using simulate::Outcome;

constexpr int kFine = 0;
constexpr int kNo = 1;
constexpr int kWrongUse = 2;

constexpr const char* kUsage =
    "Runs a workload through the daemon's own decisions, on any machine and without a runtime.\n\n"
    "Usage: topolet simulate --topology (FILE.xml | \"SYNTHETIC\") --workload FILE.jsonl [OPTION]...\n"
    "Example: topolet simulate --topology \"pack:2 numa:1 core:4 pu:2\" --config topolet.conf --workload pods.jsonl\n\n"
    "Any option of topoletd may be given too, such as --numa.policy=restricted; it comes before the file's.\n";

struct Wanted {
  std::string topology;
  std::string distances;
  std::string isolated;
  std::string config;
  std::string workload;
  bool json = false;
  bool explain = false;
};

po::options_description described(Wanted& wanted) {
  po::options_description options("Options", 100, 50);
  options.add_options()("topology", po::value(&wanted.topology)->value_name("MACHINE"),
                        "A machine that hwloc recorded (lstopo FILE.xml), or hwloc's description of one.")(
      "distances", po::value(&wanted.distances)->value_name("FILE"),
      "SLIT distances instead of the machine's: a row of numbers for each NUMA node.")(
      "isolated-cpus", po::value(&wanted.isolated)->value_name("CPUS"), "CPUs taken for isolcpus.")(
      "config", po::value(&wanted.config)->value_name("FILE"),
      "topoletd's configuration; without it, all defaults and no plugin.")(
      "workload", po::value(&wanted.workload)->value_name("FILE"),
      "One JSON object a line: what happens. '-' reads from standard input.")("json", po::bool_switch(&wanted.json),
                                                                              "Answers with one JSON object a line.")(
      "explain", po::bool_switch(&wanted.explain), "Also tells each decision's candidates, and what plugins said.")(
      "help", "Explain, and end.");
  return options;
}

bool is_daemon_option(const std::string& argument) {
  const std::string name = argument.substr(0, argument.find('='));
  return name.rfind("--", 0) == 0 && name.find('.') != std::string::npos && argument.find('=') != std::string::npos;
}

bool is_there(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

/// Where plugins are if the configuration does not say: installed, or beside this program in a build.
std::string plugin_dir(const RawConfig& raw) {
  for (const Setting& setting : raw.settings) {
    if (setting.section == "daemon" && setting.key == "plugin-dir") return {};
  }
  std::error_code ignored;
  const auto program = std::filesystem::canonical("/proc/self/exe", ignored).parent_path();
  for (const std::filesystem::path& dir : {std::filesystem::path(TOPOLET_PLUGIN_DIR), program / "../../plugins"}) {
    if (is_there(dir)) return std::filesystem::canonical(dir, ignored).string();
  }
  return {};
}

Result<std::vector<std::uint32_t>> read_distances(const std::string& file) {
  std::ifstream in(file);
  if (!in) return Error{Code::kInvalidArgument, fmt::format("--distances: cannot read {}", file)};
  std::vector<std::uint32_t> distances;
  std::string word;
  while (in >> word) {
    const bool digits = !word.empty() && word.size() < 7 && word.find_first_not_of("0123456789") == std::string::npos;
    if (!digits) return Error{Code::kInvalidArgument, fmt::format("--distances: {}: '{}' is no distance", file, word)};
    distances.push_back(static_cast<std::uint32_t>(std::stoul(word)));
  }
  if (distances.empty()) return Error{Code::kInvalidArgument, fmt::format("--distances: {} is empty", file)};
  return distances;
}

Result<DiscoverOptions> machine_of(const Wanted& wanted) {
  DiscoverOptions options;
  if (is_there(wanted.topology)) {
    options.xml_file = wanted.topology;
  } else {
    options.synthetic = wanted.topology;
  }
  if (!wanted.isolated.empty()) {
    const auto cpus = CpuSet::parse(wanted.isolated);
    if (!cpus) return Error{Code::kInvalidArgument, "--isolated-cpus: " + cpus.error().message};
    options.isolated = *cpus;
  }
  if (!wanted.distances.empty()) {
    auto distances = read_distances(wanted.distances);
    if (!distances) return distances.error();
    options.distances = *std::move(distances);
  }
  return options;
}

ordered_json verdicts_json(const VerdictsRow& verdicts) {
  ordered_json json{{"candidates", verdicts.candidates}, {"best", ordered_json::array()}};
  for (const VerdictRow& row : verdicts.best) {
    ordered_json words = ordered_json::array();
    for (const VerdictRow::Word& word : row.words) {
      words.push_back({{"policy", word.policy}, {"says", word.kind}, {"score", word.score}, {"reason", word.reason}});
    }
    json["best"].push_back(
        {{"nodes", row.nodes}, {"score", row.score}, {"rejected", row.rejected}, {"words", std::move(words)}});
  }
  json["rejected"] = verdicts.rejected;
  json["lost_votes"] = verdicts.lost_votes;
  json["dropped"] = verdicts.dropped;
  return json;
}

/// What a line's outcome is shown as.
struct Line {
  std::size_t number = 0;
  std::string op;
  std::string pod;
  std::string container;
  std::string cpus;  ///< that the operation names
  Outcome outcome;
};

ordered_json to_json(const Line& line, bool explain) {
  const Outcome& outcome = line.outcome;
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
  for (const simulate::Moved& moved : outcome.changed) {
    json["changed"].push_back({{"pod", moved.pod},
                               {"container", moved.container},
                               {"mode", moved.mode},
                               {"cpus", moved.cpus.to_string()},
                               {"withheld", moved.withheld.to_string()},
                               {"mems", moved.mems.to_string()},
                               {"reason", moved.reason}});
  }
  if (outcome.is_bad_line) json["line"] = line.number;
  if (explain && outcome.verdicts) json["verdicts"] = verdicts_json(*outcome.verdicts);
  return json;
}

std::string explanation(const VerdictsRow& verdicts) {
  std::string text = fmt::format("      {} candidates, the winner first\n", verdicts.candidates);
  for (const VerdictRow& row : verdicts.best) {
    text += fmt::format("      nodes {:<8} {}\n", row.nodes.empty() ? "none" : row.nodes,
                        row.rejected ? "rejected" : fmt::format("{:+}", row.score));
    for (const VerdictRow::Word& word : row.words) {
      text += fmt::format("        {} {}: {}\n", word.policy,
                          word.kind == "score" ? fmt::format("{:+}", word.score) : word.kind, word.reason);
    }
  }
  for (const auto& [reason, count] : verdicts.rejected) text += fmt::format("      rejected {} x {}\n", count, reason);
  for (const std::string& lost : verdicts.lost_votes) text += fmt::format("      lost vote: {}\n", lost);
  for (const std::string& dropped : verdicts.dropped) text += fmt::format("      dropped: {}\n", dropped);
  return text;
}

std::string for_people(const std::vector<Line>& lines, bool explain) {
  Table table{{"line", "op", "of", "outcome", "mode", "cpus", "withheld", "mems", "reason"}, {}};
  for (const Line& line : lines) {
    const Outcome& outcome = line.outcome;
    std::string reason = outcome.reason;
    for (const simulate::Moved& moved : outcome.changed) {
      reason += fmt::format("{}{}/{} moves to {}", reason.empty() ? "" : "; ", moved.pod, moved.container,
                            moved.cpus.to_string());
      if (!moved.withheld.empty()) reason += ", withheld " + moved.withheld.to_string();
      if (!moved.reason.empty()) reason += " (" + moved.reason + ")";
    }
    const std::string of = line.container.empty() ? line.pod + line.cpus : line.pod + "/" + line.container;
    table.rows.push_back({line.number, line.op, of, outcome.outcome, outcome.mode, outcome.cpus.to_string(),
                          outcome.withheld.to_string(), outcome.mems.to_string(), reason});
  }
  if (!explain) return table.for_people();
  std::istringstream rows(table.for_people());
  std::string row;
  std::string text;
  std::getline(rows, row);
  text += row + '\n';
  for (const Line& line : lines) {
    std::getline(rows, row);
    text += row + '\n';
    if (line.outcome.verdicts) text += explanation(*line.outcome.verdicts);
  }
  return text;
}

Line apply(simulate::Simulation& simulation, std::size_t number, const std::string& text) {
  Line line;
  line.number = number;
  const auto operation = simulate::parse_operation(text);
  if (!operation) {
    line.outcome.outcome = "error";
    line.outcome.is_bad_line = true;
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

int run_lines(simulate::Simulation& simulation, std::istream& in, const Wanted& wanted) {
  std::vector<Line> lines;
  std::string text;
  std::size_t bad = 0;
  for (std::size_t number = 1; std::getline(in, text); ++number) {
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    Line line = apply(simulation, number, text);
    if (line.outcome.is_bad_line) ++bad;
    if (wanted.json) {
      fmt::print("{}\n", to_json(line, wanted.explain).dump(-1, ' ', false, ordered_json::error_handler_t::replace));
    } else {
      lines.push_back(std::move(line));
    }
  }
  if (!wanted.json) fmt::print("{}\n{}", for_people(lines, wanted.explain), machine_map(simulation.picture()));
  if (bad == 0) return kFine;
  fmt::print(stderr, "topolet simulate: {} bad line{}\n", bad, bad == 1 ? "" : "s");
  return kWrongUse;
}

int misused(const std::string& why) {
  fmt::print(stderr, "topolet simulate: {}\n", why);
  return kWrongUse;
}

Setup setup_of(const Wanted& wanted, std::vector<std::string> flags) {
  std::vector<std::string> arguments = {"--config", wanted.config.empty() ? "/dev/null" : wanted.config};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  RawConfig raw = read_raw(arguments);
  if (const std::string dir = plugin_dir(raw); !dir.empty()) {
    arguments.push_back("--daemon.plugin-dir=" + dir);
    raw = read_raw(arguments);
  }
  return make_setup(std::move(raw));
}

int run(const std::vector<std::string>& arguments) {
  Wanted wanted;
  std::vector<std::string> own;
  std::vector<std::string> flags;
  for (const std::string& argument : arguments) (is_daemon_option(argument) ? flags : own).push_back(argument);
  const po::options_description options = described(wanted);
  po::variables_map given;
  po::store(po::command_line_parser(own)
                .options(options)
                .positional({})
                .style(po::command_line_style::unix_style & ~po::command_line_style::allow_guessing)
                .run(),
            given);
  po::notify(given);
  if (given.count("help") != 0) {
    std::cout << kUsage << '\n' << options;
    return kFine;
  }
  if (wanted.topology.empty()) return misused("which machine? name a file or a description with --topology");
  if (wanted.workload.empty()) return misused("which workload? name a file with --workload, or - for standard input");
  Setup setup = setup_of(wanted, flags);
  if (const std::vector<std::string> mistakes = setup.mistakes(); !mistakes.empty()) {
    return misused(fmt::format("the configuration is not right:\n{}", fmt::join(mistakes, "\n")));
  }
  std::ifstream file;
  if (wanted.workload != "-") {
    file.open(wanted.workload);
    if (!file) return misused(fmt::format("cannot read {}", wanted.workload));
  }
  const auto machine = machine_of(wanted);
  if (!machine) return misused(machine.error().message);
  const auto simulation = simulate::Simulation::make(*machine, std::move(setup));
  if (!simulation) return misused(simulation.error().message);
  return run_lines(**simulation, wanted.workload == "-" ? std::cin : file, wanted);
}

}  // namespace

Status simulate_workload(const Request& request) {
  if (simulate_command(request.arguments) == kFine) return {};
  return Error{Code::kFailedPrecondition, {}};
}

int simulate_command(const std::vector<std::string>& arguments) {
  try {
    return run(arguments);
  } catch (const po::error& error) {
    return misused(std::string(error.what()) + "; see `topolet simulate --help`");
  } catch (const std::exception& error) {
    fmt::print(stderr, "topolet simulate: {}\n", error.what());
    return kNo;
  }
}

}  // namespace topolet::cli
