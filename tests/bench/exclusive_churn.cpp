// exclusive_churn: containers with CPUs of their own come and go through the whole of topoletd, in front of a runtime
// that carries updates out late and judges at every change who runs beside whom. Exit status 0 if nobody ever ran on a
// CPU that another container had alone (or it was left out), 1 if somebody did or something went wrong, 2 for wrong
// use.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <cstdio>
#include <deque>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/daemon_under_test.hpp"
#include "tests/bench/database_locks.hpp"
#include "tests/bench/exclusive_kubelet.hpp"
#include "tests/bench/kubelet_requests.hpp"
#include "tests/bench/made_up_machine.hpp"
#include "tests/bench/program.hpp"
#include "tests/bench/roles.hpp"

namespace topolet::bench {
namespace {

namespace po = boost::program_options;

constexpr char kMachine[] = "pack:1 numa:2(memory=1099511627776) core:8 pu:1";
/// Those of --matrix: with 2, 4, 16 and 64 CPUs.
const std::vector<std::string> kMachines = {"pack:1 numa:1(memory=1099511627776) core:2 pu:1",
                                            "pack:1 numa:2(memory=1099511627776) core:2 pu:1", kMachine,
                                            "pack:2 numa:2(memory=1099511627776) core:16 pu:1"};
const std::vector<unsigned> kUpdatesMs = {0, 2, 15, 60};  ///< those of --matrix

constexpr std::int64_t kMostCpus = 3;
constexpr std::int64_t kSharedMilli = 100;
constexpr std::size_t kShownLogLines = 20;

/// The settings in which the runs of a matrix differ.
struct Scene {
  std::string machine;
  unsigned update_ms = 0;
  bool locks_database = false;
};

struct ExclusiveChurnOptions {
  Topoletd topoletd;
  Scene scene;
  bool matrix = false;
  std::size_t cycles = 0;
  std::size_t clients = 0;
  std::size_t shared = 0;
  std::uint64_t seed = 0;
};

struct Outcome {
  SharedProgress::Counts counts = {};
  std::size_t locks = 0;
  std::string updates = {};
  std::size_t alone = 0;  ///< containers that began to run with their CPUs alone
  std::size_t overlaps = 0;
  std::string first_overlap = {};

  bool is_fine() const { return counts.failure.empty() && overlaps == 0 && alone >= counts.cycles; }
};

/// So many that several containers fit beside the shared CPUs.
std::int64_t cpus_of_each(const std::string& machine) {
  return std::clamp<std::int64_t>(number_of_cpus(machine) / 4, 1, kMostCpus);
}

std::string last_lines(const std::string& file) {
  std::ifstream in(file);
  std::deque<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    lines.push_back(line);
    if (lines.size() > kShownLogLines) lines.pop_front();
  }
  return fmt::format("{}", fmt::join(lines, "\n"));
}

/// Containers that only run, on the CPUs that nobody has alone.
void start_shared(LoadClient& client, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_burstable = i % 2 == 0;
    const PodSpec pod{.name = fmt::format("{}-{}", is_burstable ? "burstable" : "besteffort", i),
                      .kind = is_burstable ? Kind::kShared : Kind::kBestEffort,
                      .cpu_milli = is_burstable ? kSharedMilli : 0};
    const std::string sandbox_id = id_in(client.call(kServicePath + "RunPodSandbox", run_sandbox_request(pod)));
    const std::string created =
        client.call(kServicePath + "CreateContainer", create_request(pod, sandbox_id, {.name = "main"}));
    client.call(kServicePath + "StartContainer", id_request(id_in(created)));
  }
}

SharedProgress::Counts run_kubelets(const ExclusiveChurnOptions& options, const std::string& socket) {
  SharedProgress progress(options.cycles);
  std::vector<std::unique_ptr<ExclusiveKubelet>> kubelets;
  for (std::size_t i = 0; i < options.clients; ++i) {
    const ExclusiveKubelet::Options kubelet{
        .socket = socket, .number = i, .cpus = cpus_of_each(options.scene.machine), .seed = options.seed};
    kubelets.push_back(std::make_unique<ExclusiveKubelet>(kubelet, progress));
  }
  std::vector<std::thread> threads;
  for (const auto& kubelet : kubelets) threads.emplace_back([&kubelet] { kubelet->run(); });
  for (std::thread& thread : threads) thread.join();
  return progress.counts();
}

Outcome run_scene(const ExclusiveChurnOptions& options) {
  const RuntimeOptions runtime{
      .update_time = std::chrono::milliseconds(options.scene.update_ms), .judges = true, .seed = options.seed};
  DaemonUnderTest daemon(options.topoletd, runtime);
  start_shared(daemon.client(), options.shared);
  std::optional<DatabaseLocks> locks;
  if (options.scene.locks_database) locks.emplace(daemon.state_db(), options.seed);
  Outcome outcome{.counts = run_kubelets(options, daemon.socket())};
  outcome.locks = locks ? locks->count() : 0;
  outcome.updates = daemon.runtime().call(kServicePath + kCountUpdates, "");
  const auto verdict = nlohmann::json::parse(daemon.runtime().call(kServicePath + kVerdictMethod, ""));
  outcome.alone = verdict["alone"];
  outcome.overlaps = verdict["overlaps"];
  outcome.first_overlap = verdict["first"];
  if (!outcome.counts.failure.empty()) {
    outcome.counts.failure += "\ntopoletd's log ends with:\n" + last_lines(daemon.log());
  }
  return outcome;
}

void print(const ExclusiveChurnOptions& options, const Outcome& outcome) {
  const SharedProgress::Counts& counts = outcome.counts;
  if (!outcome.first_overlap.empty()) fmt::print("{}\n", outcome.first_overlap);
  if (!counts.failure.empty()) fmt::print("failed: {}\n", counts.failure);
  fmt::print(
      "{} CPUs, update {} ms, database {}: {} cycles, {} alone, {} denied, {} retried, {} updates, {} locks, {} "
      "overlaps\n",
      number_of_cpus(options.scene.machine), options.scene.update_ms, options.scene.locks_database ? "locked" : "free",
      counts.cycles, outcome.alone, counts.denied, counts.retried, outcome.updates, outcome.locks, outcome.overlaps);
  std::fflush(stdout);
}

std::vector<Scene> scenes_of(const ExclusiveChurnOptions& options) {
  if (!options.matrix) return {options.scene};
  std::vector<Scene> scenes;
  for (const std::string& machine : kMachines) {
    for (const unsigned update_ms : kUpdatesMs) {
      for (const bool locks_database : {false, true}) scenes.push_back({machine, update_ms, locks_database});
    }
  }
  return scenes;
}

po::options_description describe(ExclusiveChurnOptions& options) {
  po::options_description all("exclusive_churn: whether a container with CPUs of its own ever runs beside another one");
  auto add = all.add_options();
  add("help,h", "this text");
  add("cycles", po::value(&options.cycles)->default_value(1000), "containers that come and go, in all");
  add("clients", po::value(&options.clients)->default_value(8), "kubelets at a time");
  add("shared", po::value(&options.shared)->default_value(4), "containers that only run, on the shared CPUs");
  add("update-ms", po::value(&options.scene.update_ms)->default_value(2), "that the runtime takes for an update");
  add("machine", po::value(&options.scene.machine)->default_value(kMachine), "in hwloc's words");
  add("locked-database", po::bool_switch(&options.scene.locks_database),
      "topoletd's database is locked for 40 ms again and again");
  add("matrix", po::bool_switch(&options.matrix),
      "so many cycles with updates of 0, 2, 15 and 60 ms, with and without locks, on 2, 4, 16 and 64 CPUs each");
  add("seed", po::value(&options.seed), "of what is drawn; repeats a run approximately");
  add("topoletd", po::value(&options.topoletd.program)->default_value(TOPOLET_DAEMON), "the program to judge");
  add("plugin-dir", po::value(&options.topoletd.plugin_dir)->default_value(TOPOLET_PLUGIN_DIR), "its plugins");
  return all;
}

/// False if only the help was asked for.
bool read_options(const std::vector<std::string>& arguments, ExclusiveChurnOptions& options) {
  const po::options_description all = describe(options);
  po::variables_map values;
  po::store(po::command_line_parser(arguments).options(all).run(), values);
  po::notify(values);
  if (values.count("help") != 0) {
    std::cout << all;
    return false;
  }
  if (options.cycles == 0) throw po::error("--cycles must be 1 or more");
  if (options.clients == 0) throw po::error("--clients must be 1 or more");
  if (number_of_cpus(options.scene.machine) < 2) throw po::error("--machine must have 2 CPUs or more");
  if (values.count("seed") == 0) options.seed = std::random_device{}();
  return true;
}

void judge(const std::vector<std::string>& arguments) {
  ExclusiveChurnOptions options;
  if (!read_options(arguments, options)) return;
  if (!can_enter_machine(options.scene.machine)) {
    fmt::print("left out: it needs a made-up machine, and the kernel permits no mount namespace here\n");
    return;
  }
  fmt::print("{} clients, {} shared containers, seed {}\n", options.clients, options.shared, options.seed);
  bool is_fine = true;
  for (const Scene& scene : scenes_of(options)) {
    options.scene = scene;
    options.topoletd.machine = scene.machine;
    const Outcome outcome = run_scene(options);
    print(options, outcome);
    is_fine = is_fine && outcome.is_fine();
  }
  if (!is_fine) throw std::runtime_error("not every container had its CPUs alone whenever it ran");
}

}  // namespace
}  // namespace topolet::bench

int main(int argc, char** argv) {
  return topolet::bench::run_program("exclusive_churn", argc, argv, &topolet::bench::judge);
}
