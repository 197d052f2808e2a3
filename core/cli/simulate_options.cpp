#include "core/cli/simulate_options.hpp"

#include <fmt/format.h>

#include <sstream>
#include <vector>

#include "core/base/exit_status.hpp"
#include "core/simulate/operation.hpp"

namespace topolet::cli {

namespace po = boost::program_options;

namespace {

constexpr const char* kSimulateUsage =
    "Runs a workload through the daemon's own engine and plugins, for any machine and without a runtime. Options of "
    "topoletd may be given too, such as --numa.policy=restricted; they override the configuration file.\n\n"
    "Usage: topolet simulate --topology MACHINE --workload FILE [OPTION]...\n"
    "Example: topolet simulate --topology \"pack:2 numa:1 core:4 pu:2\" --config topolet.conf --workload "
    "pods.jsonl\n\n";

/// Behind the options.
constexpr const char* kLines =
    "\nEach line of the workload is one JSON object, whose \"op\" says what happens; empty lines are skipped:\n"
    "  {\"op\":\"run_pod\",\"pod\":\"web\",\"qos\":\"guaranteed\"}\n"
    "  "
    "{\"op\":\"create\",\"pod\":\"web\",\"container\":\"main\",\"cpu_limit_milli\":2000,\"memory_limit\":1073741824}\n"
    "A line that is not valid is reported with its number, and the others are run. These are the operations,\n"
    "the fields that each needs, and in brackets those that it may have:\n";

constexpr const char* kEnd = "\n" TOPOLET_DOC_DIR
                             "/core/simulate/README.md describes the operations, their fields and the output.\n\nExit "
                             "status: 0 success; 1 failure, or a decision of a record differs; 2 usage error, or some "
                             "line of the workload is not valid.\n";

/// "  create      pod container [annotations attempt …]", at most as wide as the options above it.
std::string fields_text(const simulate::OperationFields& operation) {
  constexpr std::size_t kIndent = 14;
  constexpr std::size_t kMostColumns = 100;
  std::vector<std::string> words = operation.required;
  for (const std::string& field : operation.optional) words.push_back(field);
  if (!operation.optional.empty()) {
    words[operation.required.size()].insert(0, "[");
    words.back() += ']';
  }
  std::string text;
  std::string line = fmt::format("  {:{}}", operation.op, kIndent - 3);
  for (const std::string& word : words) {
    if (line.size() + 1 + word.size() > kMostColumns) {
      text += line + '\n';
      line.assign(kIndent - 1, ' ');
    }
    line += ' ' + word;
  }
  return text + line + '\n';
}

}  // namespace

po::options_description simulate_options(SimulateOptions& options) {
  po::options_description description("Options", 100, 50);
  description.add_options()("topology", po::value(&options.topology)->value_name("MACHINE"),
                            "The machine: a file that `lstopo FILE.xml` wrote, or an hwloc synthetic description.")(
      "distances", po::value(&options.distances)->value_name("FILE"),
      "NUMA distances to use instead of the machine's: a row of numbers for each node.")(
      "isolated-cpus", po::value(&options.isolated)->value_name("CPUS"),
      "CPUs to treat as isolated by the kernel (isolcpus).")(
      "config", po::value(&options.config)->value_name("FILE"),
      "topoletd's configuration file. Without it, every option has its default and no plugin is enabled.")(
      "plugin", po::value(&options.plugins)->value_name("FILE.so"),
      "Enable this plugin as well, wherever the file is and whoever may write it, in place of one of the same name. "
      "Its "
      "options are in the configuration file, or given like topoletd's. May be repeated.")(
      "workload", po::value(&options.workload)->value_name("FILE"),
      "What happens, as one JSON object per line; '-' reads standard input. Or a record (daemon.record), whose "
      "decisions are made again and compared.")("json", po::bool_switch(&options.json),
                                                "Print one JSON object per line.")(
      "state-dir", po::value(&options.state_dir)->value_name("DIR"),
      "Keep the state database in this directory, for `topolet at`, `topolet query` and the others. Its time begins at "
      "2026-01-01.")(
      "front", po::value(&options.front)->value_name("FRONT")->default_value("cri"),
      "How topoletd hears of containers: 'cri', by the kubelet's calls; 'nri', as a plugin of the runtime, which is "
      "told "
      "less, and has containers that must leave CPUs for a new one updated with the answer to its create; 'in-answer', "
      "the same way of updating, but told all that the kubelet says.")(
      "watch", po::value(&options.watch)->value_name("SOCKET"),
      "Serve topoletd's watch socket here, for topolet-agent. The simulated time begins at the present, and "
      "topolet ends when it is told to (SIGTERM, Ctrl-C), or at the end of standard input if the workload is "
      "read from there.")(
      "explain", po::bool_switch(&options.explain),
      "Also show each decision's candidates and what each plugin said about them, what plugins "
      "add to containers, the events that they are told, the state that they write, and their log.")("help,h",
                                                                                                     "Show this help.");
  return description;
}

int print_simulate_help() {
  SimulateOptions ignored;
  std::ostringstream options;
  options << simulate_options(ignored);
  std::string operations;
  for (const simulate::OperationFields& operation : simulate::operation_fields()) operations += fields_text(operation);
  fmt::print("{}{}{}{}{}", kSimulateUsage, options.str(), kLines, operations, kEnd);
  return kExitSuccess;
}

}  // namespace topolet::cli
