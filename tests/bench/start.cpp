#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/bench/daemon_under_test.hpp"
#include "tests/bench/population.hpp"
#include "tests/bench/roles.hpp"
#include "tests/bench/sections.hpp"
#include "tests/bench/statistics.hpp"

namespace topolet::bench {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

/// From the start of the process.
struct Starts {
  std::vector<double> version_ms = {};
  std::vector<double> create_ms = {};
};

/// One start with what is stored and running, in which one more container is created and removed.
void measure_start(DaemonUnderTest& daemon, const std::string& sandbox_id, const PodSpec& pod, std::size_t number,
                   Starts& starts) {
  daemon.stop_daemon();
  const std::string request = create_request(pod, sandbox_id, {.name = fmt::format("container-{}", number)});
  daemon.start_daemon();
  daemon.client().call(kServicePath + "Version", "");
  starts.version_ms.push_back(ms_since(daemon.exec_time()));
  const std::string created = daemon.client().call(kServicePath + "CreateContainer", request);
  starts.create_ms.push_back(ms_since(daemon.exec_time()));
  daemon.client().call(kServicePath + "RemoveContainer", id_request(id_in(created)));
}

Starts measure_starts(const SectionOptions& options, std::size_t containers) {
  DaemonUnderTest daemon(options.topoletd);
  Population population(daemon.client());
  population.grow_to(containers);
  const PodSpec pod{.name = "newcomer"};
  const std::string sandbox_id = id_in(daemon.client().call(kServicePath + "RunPodSandbox", run_sandbox_request(pod)));
  Starts starts;
  for (std::size_t i = 0; i < options.starts; ++i) measure_start(daemon, sandbox_id, pod, i, starts);
  return starts;
}

}  // namespace

nlohmann::json measure_start(const SectionOptions& options) {
  nlohmann::json json = nlohmann::json::array();
  fmt::print("{} starts each; ms from exec\n{:<18} {:>17} {:>10} {:>23} {:>10}\n", options.starts, "containers known",
             "first Version p50", "longest", "first placed create p50", "longest");
  for (const std::size_t containers : options.containers) {
    const Starts starts = measure_starts(options, containers);
    fmt::print("{:<18} {:>17.1f} {:>10.1f} {:>23.1f} {:>10.1f}\n", containers, median(starts.version_ms),
               quantile(starts.version_ms, 1), median(starts.create_ms), quantile(starts.create_ms, 1));
    json.push_back({{"containers", containers},
                    {"first_version_ms", median(starts.version_ms)},
                    {"first_create_ms", median(starts.create_ms)},
                    {"starts_version_ms", starts.version_ms},
                    {"starts_create_ms", starts.create_ms}});
  }
  return json;
}

}  // namespace topolet::bench
