// The cost of one decision, by nodes × PUs × containers × plugins. Google Benchmark; decide_* is decide() alone, views
// for the plugins included, whole_* the same with the copy of the ledger and the hop to the policy thread.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/state/ledger.hpp"
#include "core/placement/candidates.hpp"
#include "core/placement/decide.hpp"
#include "core/placement/make_request.hpp"
#include "core/plugin/call/policy_thread.hpp"
#include "core/plugin/guard/crash_mark.hpp"
#include "core/plugin/host/load.hpp"
#include "core/topology/discover.hpp"

namespace topolet {
namespace {

constexpr std::array<const char*, 3> kPlugins = {"numa", "gpu", "smt"};

struct Shape {
  int nodes;
  int cores_per_node;
  int containers;
  int plugins;
};

placement::Workload workload(int number, bool exclusive) {
  placement::Workload made;
  made.key = {fmt::format("uid-{}", number), "main", 0, fmt::format("sandbox-{}", number)};
  made.pod_name = fmt::format("pod-{}", number);
  made.pod_namespace = "default";
  made.qos = exclusive ? placement::Qos::kGuaranteed : placement::Qos::kBurstable;
  made.demand.cpu_request_milli = exclusive ? 2000 : 250;
  made.demand.cpu_limit_milli = exclusive ? 2000 : 0;
  made.demand.memory_limit_bytes = 1 << 30;
  made.pod_labels = {{"app.kubernetes.io/name", fmt::format("service-{}", number % 40)},
                     {"app.kubernetes.io/instance", fmt::format("service-{}", number % 40)},
                     {"pod-template-hash", fmt::format("{:010}", number % 40 * 7919)}};
  made.pod_annotations = {{"kubernetes.io/config.source", "api"},
                          {"kubernetes.io/config.seen", fmt::format("2026-01-01T00:00:{:02}.000000000Z", number % 60)}};
  if (exclusive) made.devices = {fmt::format("/dev/vfio/{}", number)};
  return made;
}

std::vector<plugin::PluginVote> votes(int count) {
  std::vector<plugin::PluginVote> all;
  for (int i = 0; i < count; ++i) {
    auto library = plugin::PluginLibrary::load(TOPOLET_BUILT_PLUGINS, kPlugins[static_cast<std::size_t>(i)]);
    if (!library) throw std::runtime_error(library.error().message);
    auto policy = library->create({}, make_silent_log());
    if (!policy) throw std::runtime_error(policy.error().message);
    all.push_back({library->id(), *policy});
  }
  return all;
}

/// A machine on which every tenth container holds two CPUs alone, as far as half of the CPUs go.
struct Scene {
  std::shared_ptr<const topology::Topology> topology;
  std::vector<placement::Candidate> candidates;
  placement::PlacementRules rules;
  engine::Ledger ledger;
  std::optional<engine::Allocation> one_of_them;

  explicit Scene(const Shape& shape)
      : topology(topology::discover(
                     {.synthetic = fmt::format("pack:{} numa:1 core:{} pu:2", shape.nodes, shape.cores_per_node)})
                     .value()),
        candidates(placement::make_candidates(*topology, topology->allowed)),
        ledger({topology->allowed, {}, {}}, 0) {
    const auto cpus = static_cast<int>(topology->allowed.size());
    for (int number = 0; number < shape.containers; ++number) {
      const bool exclusive = number % 10 == 0 && 2 * (number / 10 + 1) <= cpus / 2;
      engine::Allocation allocation;
      allocation.workload = workload(number, exclusive);
      allocation.phase = engine::Phase::kRunning;
      allocation.container_id = fmt::format("container-{}", number);
      if (exclusive) {
        const auto first = static_cast<std::uint32_t>(4 * (number / 10));
        allocation.placement.mode = placement::Mode::kExclusive;
        allocation.placement.cpus = CpuSet::range(first, first + 1);
      } else {
        allocation.within = candidates[static_cast<std::size_t>(number) % candidates.size()].cpus;
      }
      if (number == 0) one_of_them = allocation;
      ledger.assume(std::move(allocation));
    }
  }

  /// As every decision that is carried out does; what plugins were shown of the ledger before is of no use any more.
  void change_ledger() {
    if (one_of_them) ledger.assume(*one_of_them);
  }

  placement::PolicyRequest request() const {
    return make_request(topology, ledger.snapshot(), workload(1'000'000, true), candidates, rules, false);
  }
};

using Microseconds = std::chrono::duration<double, std::micro>;
using TimePoint = std::chrono::steady_clock::time_point;

double at(std::vector<double>& sorted, double part) {
  return sorted[static_cast<std::size_t>(part * static_cast<double>(sorted.size() - 1))];
}

void report(benchmark::State& state, std::vector<double>& decide_us, std::vector<double>& whole_us) {
  std::sort(decide_us.begin(), decide_us.end());
  std::sort(whole_us.begin(), whole_us.end());
  state.counters["decide_p50_us"] = at(decide_us, 0.5);
  state.counters["decide_p99_us"] = at(decide_us, 0.99);
  state.counters["whole_p50_us"] = at(whole_us, 0.5);
}

/// As the daemon does it: a copy of the ledger, the request, the hop to the policy thread, and decide() there.
void decide_as_the_daemon(benchmark::State& state, const Shape& shape) {
  Scene scene(shape);
  const std::vector<plugin::PluginVote> asked = votes(shape.plugins);
  plugin::PolicyThread thread(
      {.deadline = std::chrono::seconds(10), .decision_time = std::chrono::minutes(1), .clock = {}});
  std::vector<double> decide_us;
  std::vector<double> whole_us;
  for (auto _ : state) {
    scene.change_ledger();
    const TimePoint begin = std::chrono::steady_clock::now();
    auto request = std::make_shared<const placement::PolicyRequest>(scene.request());
    decide_us.push_back(thread.run_as<double>(asked, [request, &scene](const std::vector<placement::Vote>& votes) {
      const TimePoint called = std::chrono::steady_clock::now();
      benchmark::DoNotOptimize(decide(*request, scene.rules, votes));
      return Microseconds(std::chrono::steady_clock::now() - called).count();
    }));
    whole_us.push_back(Microseconds(std::chrono::steady_clock::now() - begin).count());
  }
  report(state, decide_us, whole_us);
}

constexpr std::array<Shape, 9> kShapes = {{{1, 4, 10, 1},
                                           {2, 16, 0, 1},
                                           {2, 16, 50, 1},
                                           {2, 16, 50, 3},
                                           {8, 16, 100, 3},
                                           {24, 8, 500, 1},
                                           {24, 8, 500, 3},
                                           {64, 16, 500, 1},
                                           {64, 16, 500, 3}}};

void add_benchmarks() {
  for (const Shape& shape : kShapes) {
    const std::string name = fmt::format("{}_nodes/{}_PUs/{}_containers/{}_plugins", shape.nodes,
                                         shape.nodes * shape.cores_per_node * 2, shape.containers, shape.plugins);
    benchmark::RegisterBenchmark(name.c_str(), [shape](benchmark::State& s) {
      decide_as_the_daemon(s, shape);
    })->UseRealTime();
  }
}

}  // namespace
}  // namespace topolet

int main(int argc, char** argv) {
  // As in topoletd: without, what plugins are lent is compared after each call.
  topolet::plugin::record_crashes_to(-1, "decision");
  topolet::add_benchmarks();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
