// The cost of a scheduler's calls inside topolet-extender: from the text of a request to that of its answer, without
// the network and TLS, by names in a request × nodes that are known × zones of a node. Google Benchmark; the counters
// have the percentiles of single calls, in microseconds.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "cluster/extender/rank.hpp"
#include "cluster/extender/shared_book.hpp"
#include "cluster/extender/wire.hpp"

namespace topolet::extender {
namespace {

using nlohmann::json;

constexpr std::int64_t kGi = std::int64_t{1} << 30U;

std::string node_name(std::int64_t number) { return fmt::format("node-{:05}.example.internal", number); }

/// Half of the CPUs are in use, more in some zones than in others.
void fill(ZoneBook& book, std::int64_t nodes, std::int64_t zones) {
  std::minstd_rand random(1);
  const ResourceId huge_pages = *book.names().add("hugepages-2Mi");
  for (std::int64_t i = 0; i < nodes; ++i) {
    NodeZones node;
    node.name = node_name(i);
    for (std::int64_t index = 0; index < zones; ++index) {
      Zone zone;
      zone.os_index = static_cast<std::uint32_t>(index);
      zone.allocatable = {{kCpu, 24'000}, {kMemory, 96 * kGi}, {huge_pages, kGi}};
      zone.available = {
          {kCpu, static_cast<std::int64_t>(random() % 25) * 1000}, {kMemory, 64 * kGi}, {huge_pages, kGi}};
      node.zones.push_back(std::move(zone));
    }
    node.distances.assign(static_cast<std::size_t>(zones * zones), 21);
    book.set_node(std::move(node));
  }
}

/// As large as pods are: some variables, one container or two.
std::string request_text(std::int64_t names, const std::string& cpu, int containers) {
  const json amounts = {{"cpu", cpu}, {"memory", "8Gi"}};
  json variables = json::array();
  for (int i = 0; i < 40; ++i)
    variables.push_back({{"name", fmt::format("VARIABLE_{}", i)}, {"value", "some value or other"}});
  const auto container = [&](const char* name) {
    return json{{"name", name},
                {"image", "registry.example/image:1"},
                {"env", variables},
                {"resources", {{"requests", amounts}, {"limits", amounts}}}};
  };
  json args = {{"Pod",
                {{"metadata",
                  {{"name", "web-1"},
                   {"namespace", "default"},
                   {"uid", "0a1b2c3d-0000-4000-8000-000000000001"},
                   {"resourceVersion", "1"}}},
                 {"spec", {{"containers", {container("main"), container("side")}}}},
                 {"status", {{"phase", "Pending"}, {"qosClass", "Guaranteed"}}}}},
               {"Nodes", nullptr},
               {"NodeNames", json::array()}};
  if (containers == 1) args["Pod"]["spec"]["containers"].erase(1);
  for (std::int64_t i = 0; i < names; ++i) args["NodeNames"].push_back(node_name(i));
  return args.dump();
}

double percentile(std::vector<double>& values, double share) {
  const auto at = static_cast<std::size_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

/// `answer` gets the text of a request each time.
template <class Answer>
void measure(benchmark::State& state, const std::string& cpu, int containers, Answer answer) {
  SharedBook shared;
  {
    MutexLock lock(shared.mutex);
    fill(shared.book, state.range(1), state.range(2));
  }
  const std::string request = request_text(state.range(0), cpu, containers);
  std::vector<double> microseconds;
  for (auto unused : state) {
    const auto begun = std::chrono::steady_clock::now();
    benchmark::DoNotOptimize(answer(shared, request));
    microseconds.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begun).count());
  }
  state.counters["p50_us"] = percentile(microseconds, 0.5);
  state.counters["p99_us"] = percentile(microseconds, 0.99);
}

void filter(benchmark::State& state, const std::string& cpu, int containers) {
  measure(state, cpu, containers, [](SharedBook& shared, const std::string& request) {
    const auto args = read_extender_args(request);
    const auto demand = read_demand_of(json::parse(args->pod_json), {}, shared);
    if (!(*demand)->is_for_zones())
      return filter_result_text({.node_names = args->node_names, .failed = {}, .unresolvable = {}});
    MutexLock lock(shared.mutex);
    return filter_result_text(filter_nodes(shared.book, **demand, args->node_names));
  });
}

void prioritize(benchmark::State& state, const std::string& cpu, int containers) {
  RecentDemands::Read demand;
  measure(state, cpu, containers, [&demand](SharedBook& shared, const std::string& request) {
    const auto args = read_extender_args(request);
    // The filter before it has read the pod.
    if (!demand) demand = read_demand_of(json::parse(args->pod_json), {}, shared);
    MutexLock lock(shared.mutex);
    return priorities_text(score_nodes(shared.book, **demand, args->node_names));
  });
}

const std::vector<std::vector<std::int64_t>> kShapes = {
    {500, 1000, 2}, {500, 5000, 8}, {5000, 5000, 2}, {5000, 5000, 8}};

void with_shapes(benchmark::internal::Benchmark* made) {
  made->ArgNames({"names", "nodes", "zones"})->Unit(benchmark::kMicrosecond);
  for (const auto& shape : kShapes) made->Args(shape);
}

BENCHMARK_CAPTURE(filter, one_zone, std::string("4"), 1)->Apply(with_shapes);
BENCHMARK_CAPTURE(filter, two_containers, std::string("4"), 2)->Apply(with_shapes);
BENCHMARK_CAPTURE(filter, two_zones, std::string("30"), 1)->Apply(with_shapes);
BENCHMARK_CAPTURE(filter, shared, std::string("500m"), 1)->Apply(with_shapes);
BENCHMARK_CAPTURE(prioritize, one_zone, std::string("4"), 1)->Apply(with_shapes);

}  // namespace
}  // namespace topolet::extender

BENCHMARK_MAIN();
