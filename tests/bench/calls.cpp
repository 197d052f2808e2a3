#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <utility>

#include "tests/bench/comparison.hpp"
#include "tests/bench/population.hpp"
#include "tests/bench/roles.hpp"
#include "tests/bench/rounds.hpp"
#include "tests/bench/sections.hpp"

namespace topolet::bench {
namespace {

/// The number of slices of each way in a round.
constexpr std::size_t kSlices = 2;
/// Slices of many calls at a time are longer, or their beginning and end would weigh too much.
constexpr std::size_t kSliceTurns = 10;
/// But not with answers as large as these.
constexpr std::size_t kSliceTurnsOfLongLists = 3;
constexpr std::size_t kLongList = 100;

struct CallLoad {
  std::string method;
  std::size_t containers = 0;
  std::size_t concurrency = 1;

  auto operator<=>(const CallLoad&) const = default;
};

/// A way with its containers.
struct Party {
  Way& way;
  Population population;
};

/// One way in one round.
struct Sums {
  std::vector<double> latencies_us = {};
  double cpu_us = 0;
  std::size_t calls = 0;
};

class CallsSection {
 public:
  explicit CallsSection(const SectionOptions& options) : options_(options), random_(options.seed) {}

  void run_round();
  nlohmann::json report() const;

 private:
  void warm_up(Ways& ways) const;
  void run_load(std::vector<Party>& parties, const CallLoad& load);
  void run_slice(Party& party, const CallLoad& load, Sums& sums) const;
  std::size_t slice_calls(const CallLoad& load) const;
  Comparison& comparison_of(const CallLoad& load);

  const SectionOptions& options_;
  std::mt19937_64 random_;
  std::vector<std::pair<CallLoad, Comparison>> comparisons_;
};

/// A verbose ContainerStatus is rare; the kubelet's is not.
std::string request_of(const CallLoad& load, const Population& population) {
  return load.method == "ContainerStatus" ? id_request(population.any_id()) : std::string();
}

/// New processes: two of the same program can differ by more than the ways do, for as long as they live.
void CallsSection::run_round() {
  Ways ways({.topoletd = options_.topoletd, .peers = options_.peers});
  warm_up(ways);
  std::vector<Party> parties;
  for (Way& way : ways.all()) parties.push_back({way, Population(*way.client)});
  for (const std::size_t containers : options_.containers) {
    for (Party& party : parties) party.population.grow_to(containers);
    for (const char* method : {"Version", "Status", "ListContainers", "ContainerStatus"}) {
      if (containers == 0 && std::string(method) == "ContainerStatus") continue;
      for (const std::size_t concurrency : options_.concurrency) run_load(parties, {method, containers, concurrency});
    }
  }
  for (Party& party : parties) {
    if (party.way.runtime == nullptr) party.population.clear();
  }
}

/// The first calls of a process pay for what it allocates once.
void CallsSection::warm_up(Ways& ways) const {
  const std::size_t most = *std::max_element(options_.concurrency.begin(), options_.concurrency.end());
  for (Way& way : ways.all()) {
    way.client->run(
        {.path = kServicePath + "Version", .request = {}, .calls = options_.calls + most, .concurrency = most});
  }
}

void CallsSection::run_load(std::vector<Party>& parties, const CallLoad& load) {
  std::map<std::string, Sums> sums;
  run_in_turns(parties, kSlices, random_, [&](Party& party) { run_slice(party, load, sums[party.way.name]); });
  Comparison& comparison = comparison_of(load);
  for (const Party& party : parties) {
    const Sums& sum = sums.at(party.way.name);
    WayFigures& figures = comparison.of(party.way.name, party.way.between.has_value());
    figures.add_latencies(load.method, sum.latencies_us);
    if (!party.way.between) continue;
    figures.rounds["cpu_us"].push_back(sum.cpu_us / static_cast<double>(sum.calls));
    figures.rounds["rss_mib"].push_back(static_cast<double>(party.way.between->resident().now_kib) / 1024);
  }
}

void CallsSection::run_slice(Party& party, const CallLoad& load, Sums& sums) const {
  const auto cpu_time = [&party] {
    return party.way.between ? party.way.between->cpu_time() : std::chrono::nanoseconds(0);
  };
  const Load calls{.path = kServicePath + load.method,
                   .request = request_of(load, party.population),
                   .calls = slice_calls(load),
                   .concurrency = load.concurrency};
  const auto before = cpu_time();
  const std::vector<double> latencies_us = party.way.client->run(calls);
  sums.cpu_us += std::chrono::duration<double, std::micro>(cpu_time() - before).count();
  sums.calls += calls.calls;
  // The first of each place began together with all the others.
  sums.latencies_us.insert(sums.latencies_us.end(),
                           latencies_us.begin() + static_cast<std::ptrdiff_t>(load.concurrency), latencies_us.end());
}

std::size_t CallsSection::slice_calls(const CallLoad& load) const {
  const bool is_long = load.method == "ListContainers" && load.containers >= kLongList;
  return std::max(options_.calls, (is_long ? kSliceTurnsOfLongLists : kSliceTurns) * load.concurrency);
}

Comparison& CallsSection::comparison_of(const CallLoad& load) {
  const auto found =
      std::find_if(comparisons_.begin(), comparisons_.end(), [&](const auto& entry) { return entry.first == load; });
  if (found != comparisons_.end()) return found->second;
  Comparison comparison{
      .title = fmt::format("{}, {} containers known, {} at a time", load.method, load.containers, load.concurrency),
      .key = {{"method", load.method},
              {"containers", load.containers},
              {"concurrency", load.concurrency},
              {"calls_per_round", kSlices * slice_calls(load)}}};
  return comparisons_.emplace_back(load, std::move(comparison)).second;
}

nlohmann::json CallsSection::report() const {
  nlohmann::json json = nlohmann::json::array();
  for (const auto& [load, comparison] : comparisons_) {
    const std::vector<Ratio> compared = ratios(comparison, load.method, {"cpu_us"}, options_.seed);
    print_calls(comparison, load.method);
    print_ratios(compared);
    json.push_back(to_json(comparison));
    json.back()["ratios"] = to_json(compared);
  }
  return json;
}

}  // namespace

nlohmann::json measure_calls(const SectionOptions& options) {
  CallsSection section(options);
  run_rounds(options.seconds, [&] { section.run_round(); });
  return section.report();
}

}  // namespace topolet::bench
