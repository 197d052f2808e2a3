#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <thread>
#include <utility>

#include "tests/bench/comparison.hpp"
#include "tests/bench/cycle_script.hpp"
#include "tests/bench/rounds.hpp"
#include "tests/bench/sections.hpp"

namespace topolet::bench {
namespace {

constexpr std::size_t kSlices = 2;
/// In a slice, of each pod.
constexpr std::size_t kFewestCycles = 3;
/// In a slice, of all pods.
constexpr std::size_t kCyclesInASlice = 20;
/// An exclusive container gets a whole core of a machine with two threads per core.
constexpr std::int64_t kExclusiveMilli = 2000;
constexpr std::int64_t kSharedMilli = 100;

struct CreateLoad {
  Kind kind = Kind::kShared;
  std::size_t concurrency = 1;

  bool operator==(const CreateLoad&) const = default;
};

const char* name_of(Kind kind) { return kind == Kind::kShared ? "shared" : "exclusive"; }

/// One way in one round.
struct Sums {
  std::vector<std::vector<double>> latencies_us = {};
  double seconds = 0;
  double cpu_ms = 0;
  double writes = 0;
  double written_kib = 0;
  std::size_t cycles = 0;
};

struct Party {
  Way& way;
  CyclePods pods;
};

class CreatesSection {
 public:
  explicit CreatesSection(const SectionOptions& options) : options_(options), random_(options.seed) {}

  void run_round();
  nlohmann::json report() const;

 private:
  struct Compared {
    CreateLoad load;
    const Cycle& cycle;
    Comparison comparison;
  };

  bool has_enough_cpus(const CreateLoad& load) const;
  void run_load(std::vector<Way>& ways, const CreateLoad& load);
  void run_cycle(std::vector<Party>& parties, const CreateLoad& load, const Cycle& cycle);
  bool try_slice(Party& party, const Cycle& cycle, std::size_t cycles_per_pod, Sums& sums) const;
  void run_slice(Party& party, const Cycle& cycle, std::size_t cycles_per_pod, Sums& sums) const;
  Comparison& comparison_of(const CreateLoad& load, const Cycle& cycle);

  const SectionOptions& options_;
  std::mt19937_64 random_;
  std::vector<Compared> compared_;
  std::map<std::string, std::set<std::string>> left_out_;  ///< by title: the peers that failed
};

void CreatesSection::run_round() {
  Ways ways({.topoletd = options_.topoletd,
             .peers = options_.peers,
             .with_full_durability = true,
             .with_watchers = true,
             .with_record = true});
  for (const Kind kind : {Kind::kShared, Kind::kExclusive}) {
    for (const std::size_t concurrency : options_.concurrency) {
      if (has_enough_cpus({kind, concurrency})) run_load(ways.all(), {kind, concurrency});
    }
  }
}

/// Only the host's own CPUs may be too few.
bool CreatesSection::has_enough_cpus(const CreateLoad& load) const {
  if (load.kind != Kind::kExclusive || !options_.topoletd.machine.empty()) return true;
  return static_cast<std::int64_t>(load.concurrency) * kExclusiveMilli <
         1000 * std::int64_t{std::thread::hardware_concurrency()};
}

void CreatesSection::run_load(std::vector<Way>& ways, const CreateLoad& load) {
  const std::int64_t milli = load.kind == Kind::kExclusive ? kExclusiveMilli : kSharedMilli;
  std::vector<Party> parties;
  for (Way& way : ways) {
    const PodSpec pod{
        .name = fmt::format("{}-{}", name_of(load.kind), load.concurrency), .kind = load.kind, .cpu_milli = milli};
    parties.push_back({way, CyclePods(*way.client, pod, load.concurrency)});
  }
  run_cycle(parties, load, kWholeLife);
  run_cycle(parties, load, kNeverStarted);
  for (Party& party : parties) party.pods.clear();
}

void CreatesSection::run_cycle(std::vector<Party>& parties, const CreateLoad& load, const Cycle& cycle) {
  const std::size_t cycles_per_pod = std::max(kFewestCycles, kCyclesInASlice / load.concurrency);
  Comparison& comparison = comparison_of(load, cycle);
  std::set<std::string>& left_out = left_out_[comparison.title];
  std::map<std::string, Sums> sums;
  run_in_turns(parties, kSlices, random_, [&](Party& party) {
    if (left_out.count(party.way.name) != 0) return;
    if (!try_slice(party, cycle, cycles_per_pod, sums[party.way.name])) left_out.insert(party.way.name);
  });
  for (const Party& party : parties) {
    if (left_out.count(party.way.name) != 0) continue;
    const Sums& sum = sums.at(party.way.name);
    const auto cycles = static_cast<double>(sum.cycles);
    WayFigures& figures = comparison.of(party.way.name, party.way.between.has_value());
    for (std::size_t i = 0; i < cycle.size(); ++i) figures.add_latencies(cycle[i], sum.latencies_us[i]);
    figures.rounds["cycles_per_s"].push_back(cycles / sum.seconds);
    if (!party.way.between) continue;
    figures.rounds["cpu_ms"].push_back(sum.cpu_ms / cycles);
    if (!party.way.name.starts_with(kTopolet)) continue;
    figures.rounds["writes"].push_back(sum.writes / cycles);
    figures.rounds["written_kib"].push_back(sum.written_kib / cycles);
  }
}

/// False if a peer failed: it may deny what topoletd grants, as it has no made-up machine.
bool CreatesSection::try_slice(Party& party, const Cycle& cycle, std::size_t cycles_per_pod, Sums& sums) const {
  try {
    run_slice(party, cycle, cycles_per_pod, sums);
    return true;
  } catch (const std::exception& error) {
    if (party.way.runtime != nullptr) throw;
    fmt::print("{} takes no further part in some rows: {}\n", party.way.name, error.what());
    return false;
  }
}

void CreatesSection::run_slice(Party& party, const Cycle& cycle, std::size_t cycles_per_pod, Sums& sums) const {
  const std::optional<Process>& between = party.way.between;
  const auto cpu_before = between ? between->cpu_time() : std::chrono::nanoseconds(0);
  const bool is_ours = party.way.name.starts_with(kTopolet);
  const Written before = is_ours ? between->written() : Written();
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<std::vector<double>> latencies_us = party.pods.run(cycle, cycles_per_pod);
  sums.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  sums.latencies_us.resize(cycle.size());
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    sums.latencies_us[i].insert(sums.latencies_us[i].end(), latencies_us[i].begin(), latencies_us[i].end());
  }
  sums.cycles += latencies_us.front().size();
  if (between) sums.cpu_ms += std::chrono::duration<double, std::milli>(between->cpu_time() - cpu_before).count();
  if (!is_ours) return;
  const Written after = between->written();
  sums.writes += static_cast<double>(after.calls - before.calls);
  sums.written_kib += static_cast<double>(after.bytes - before.bytes) / 1024;
}

Comparison& CreatesSection::comparison_of(const CreateLoad& load, const Cycle& cycle) {
  for (Compared& one : compared_) {
    if (one.load == load && &one.cycle == &cycle) return one.comparison;
  }
  const bool is_whole = &cycle == &kWholeLife;
  Comparison comparison{
      .title = fmt::format("{} containers: {}, {} at a time", name_of(load.kind),
                           is_whole ? "create, start, stop, remove" : "create, remove", load.concurrency),
      .key = {{"kind", name_of(load.kind)}, {"started", is_whole}, {"concurrency", load.concurrency}}};
  return compared_.emplace_back(Compared{load, cycle, std::move(comparison)}).comparison;
}

nlohmann::json CreatesSection::report() const {
  nlohmann::json json = nlohmann::json::array();
  for (const Compared& one : compared_) {
    const std::vector<Ratio> compared =
        ratios(one.comparison, one.cycle.front(), {"cpu_ms", "cycles_per_s"}, options_.seed);
    print_cycles(one.comparison, one.cycle);
    print_ratios(compared);
    json.push_back(to_json(one.comparison));
    json.back()["ratios"] = to_json(compared);
  }
  return json;
}

}  // namespace

nlohmann::json measure_creates(const SectionOptions& options) {
  CreatesSection section(options);
  run_rounds(options.seconds, [&] { section.run_round(); });
  return section.report();
}

}  // namespace topolet::bench
