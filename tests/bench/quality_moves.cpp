// What moves and strategies gain: the same pods with other options.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/placement/reason_codes.hpp"
#include "tests/bench/burst_model.hpp"
#include "tests/bench/fair_share.hpp"
#include "tests/bench/quality_counts.hpp"
#include "tests/bench/quality_sections.hpp"

namespace topolet::bench {
namespace {

using std::chrono::seconds;

/// Between the arrivals of two pods: enough that a container may be moved again after some others have come.
constexpr seconds kInterval{60};

constexpr std::size_t kToldFaults = 3;

/// Whether the CPUs of a pod are as they should be; nothing if it does not count.
using IsGood = std::function<std::optional<bool>(const QualityMachine&, const Arrival&, const CpuSet& cpus)>;

/// The share of containers that are where they should be, when they are created and while they run.
class Shares {
 public:
  explicit Shares(IsGood is_good) : is_good_(std::move(is_good)) {}

  void add_admission(const QualityMachine& machine, const Admission& admission) {
    const auto good = is_good_(machine, admission.arrival, admission.placed.cpus);
    if (!good) return;
    ++admitted_;
    good_admitted_ += *good ? 1 : 0;
  }

  /// All that run now, whose arrivals were counted or not.
  void add_moment(const QualityMachine& machine, const Churn& churn) {
    for (const auto& [pod, placed] : machine.pods()) {
      const auto good = is_good_(machine, churn[pod], placed.cpus);
      if (!good) continue;
      ++seen_;
      good_seen_ += *good ? 1 : 0;
    }
  }

  std::uint32_t admitted() const { return admitted_; }
  double at_admission() const { return share(good_admitted_, admitted_); }
  double over_time() const { return share(static_cast<double>(good_seen_), seen_); }

 private:
  const IsGood is_good_;
  std::uint32_t admitted_ = 0;
  std::uint32_t good_admitted_ = 0;
  std::uint64_t seen_ = 0;
  std::uint64_t good_seen_ = 0;
};

/// How many moves there were, and what was wrong with them.
Figures figures_of_moves(const QualityMachine& machine, std::size_t pods) {
  const std::map<std::string, std::size_t>& moves = machine.judge().moves();
  const auto per_pod = [&](const char* kind) {
    const auto found = moves.find(kind);
    return share(found == moves.end() ? 0 : static_cast<double>(found->second), pods);
  };
  const std::vector<std::string>& found = machine.judge().faults();
  Figure faults = count(kFaults, static_cast<std::uint32_t>(found.size()));
  faults.notes.assign(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(std::min(found.size(), kToldFaults)));
  return {{"moves a pod", per_pod("heal") + per_pod("room")}, {"to make room", per_pod("room")}, faults};
}

Figures measure_moves(const Scene& scene, std::uint64_t seed, IsGood is_good) {
  QualityMachine machine(scene.machine);
  const Churn churn = churn_on(machine, scene, seed);
  Shares shares(std::move(is_good));
  Counts counts;
  bool is_full = false;
  play(
      churn, machine, kInterval,
      [&](const Admission& admission) {
        if (!admission.arrival.is_counted) return;
        is_full = true;
        counts.add(admission, *machine.topology());
        shares.add_admission(machine, admission);
      },
      [&](std::size_t) {
        if (is_full) shares.add_moment(machine, churn);
      });
  Figures figures{count("pods", shares.admitted()),
                  count("denied", counts.denied),
                  count(kLostVotes, counts.lost_votes),
                  {"at admission", shares.at_admission()},
                  {"over time", shares.over_time()}};
  append(figures, figures_of_moves(machine, churn.size()));
  return figures;
}

}  // namespace

Figures measure_node_moves(const Scene& scene, std::uint64_t seed) {
  return measure_moves(scene, seed, [](const QualityMachine& machine, const Arrival&, const CpuSet& cpus) {
    return std::optional(machine.topology()->nodes_of(cpus).size() == 1);
  });
}

Figures measure_cache_moves(const Scene& scene, std::uint64_t seed) {
  return measure_moves(
      scene, seed,
      [](const QualityMachine& machine, const Arrival& arrival, const CpuSet& cpus) -> std::optional<bool> {
        const std::vector<CpuSet>& caches = machine.topology()->l3s;
        const bool fits = std::any_of(caches.begin(), caches.end(), [&](const CpuSet& cache) {
          return (cache & machine.cpus()).size() >= arrival.cpus();
        });
        if (!fits) return std::nullopt;
        return is_inside_one(cpus, caches);
      });
}

Figures measure_gpu_moves(const Scene& scene, std::uint64_t seed) {
  return measure_moves(
      scene, seed,
      [](const QualityMachine& machine, const Arrival& arrival, const CpuSet& cpus) -> std::optional<bool> {
        if (!arrival.gpu) return std::nullopt;
        return is_inside_one(cpus, {machine.cpus_beside_gpu(*arrival.gpu)});
      });
}

namespace {

/// The exclusive CPUs of the fullest node, as a multiple of the mean.
double fullest_node(const QualityMachine& machine) {
  double most = 0;
  double all = 0;
  double nodes = 0;
  for (const topology::Node& node : machine.topology()->nodes) {
    if (node.memory_only) continue;
    const CpuSet cpus = node.cpus & machine.cpus();
    const auto used = static_cast<double>((cpus - machine.free()).size());
    most = std::max(most, used);
    all += used;
    ++nodes;
  }
  return all == 0 ? 1 : most * nodes / all;
}

}  // namespace

Figures measure_strategies(const Scene& scene, std::uint64_t seed) {
  QualityMachine machine(scene.machine);
  const Churn churn = churn_on(machine, scene, seed);
  Counts counts;
  double fullest = 0;
  play(
      churn, machine, kInterval,
      [&](const Admission& admission) {
        if (!admission.arrival.is_counted) return;
        counts.add(admission, *machine.topology());
        fullest += fullest_node(machine);
      },
      [](std::size_t) {});
  Figures figures = counts.figures();
  figures.push_back({"fullest / mean", share(fullest, counts.counted)});
  append(figures, figures_of_moves(machine, churn.size()));
  return figures;
}

namespace {

constexpr seconds kSample{10};

/// Of the time that containers in a burst would use, what they got.
class Bursts {
 public:
  Bursts(const Scene& scene, std::uint64_t seed) : scene_(scene), seed_(seed) {}

  /// Lets the kernel divide the CPUs at `now`, and tells the machine. Counts if `counts`.
  void sample(QualityMachine& machine, const Churn& churn, seconds now, bool counts) {
    std::vector<Sharer> sharers = sharers_of(machine, churn, now);
    std::vector<Claim> claims;
    for (const Sharer& sharer : sharers) claims.push_back(sharer.claim);
    const std::vector<std::int64_t> got = fair_shares(claims);
    for (std::size_t i = 0; i < sharers.size(); ++i) {
      if (sharers[i].is_burst && counts) {
        wanted_ += claims[i].milli;
        lost_ += claims[i].milli - got[i];
      }
      tell(machine, sharers[i].pod, got[i], claims[i].milli - got[i]);
    }
  }

  double lost() const {
    return wanted_ == 0 ? std::numeric_limits<double>::quiet_NaN()
                        : static_cast<double>(lost_) / static_cast<double>(wanted_);
  }

 private:
  struct Sharer {
    std::size_t pod = 0;
    Claim claim;
    bool is_burst = false;
  };
  struct Pod {
    BurstModel model;
    seconds created{0};
  };

  std::vector<Sharer> sharers_of(const QualityMachine& machine, const Churn& churn, seconds now) {
    std::vector<Sharer> sharers;
    for (const auto& [pod, placed] : machine.pods()) {
      if (churn[pod].is_exclusive()) continue;
      const auto known = pods_.try_emplace(pod, Pod{BurstModel(seed_, pod, churn[pod].milli_cpus), now}).first;
      const BurstModel::Use use = known->second.model.at(now - known->second.created);
      const bool is_hog = scene_.has_hog && pod == hog_of(machine, churn);
      const auto all = static_cast<std::int64_t>(placed.runs_on.size()) * 1000;
      sharers.push_back({pod,
                         {placed.runs_on, is_hog ? all : use.milli, std::max<std::int64_t>(1, churn[pod].milli_cpus)},
                         use.is_burst && !is_hog});
    }
    return sharers;
  }

  /// The oldest one that shares CPUs takes all that it can get.
  static std::size_t hog_of(const QualityMachine& machine, const Churn& churn) {
    for (const auto& [pod, placed] : machine.pods()) {
      if (!churn[pod].is_exclusive()) return pod;
    }
    return std::numeric_limits<std::size_t>::max();
  }

  /// Of what is new only, in steps of a tenth of a CPU: a sampler has no more to say.
  void tell(QualityMachine& machine, std::size_t pod, std::int64_t used, std::int64_t missing) {
    const std::int64_t pressure = used + missing == 0 ? 0 : missing * 1000 / (used + missing);
    const std::pair<std::int64_t, std::int64_t> now{used / 100 * 100, pressure / 50 * 50};
    const auto [told, is_new] = told_.try_emplace(pod, -1, -1);
    if (told->second == now) return;
    told->second = now;
    if (scene_.tells_load) machine.tell_load(pod, now.first, now.second);
  }

  const Scene& scene_;
  const std::uint64_t seed_;
  std::map<std::size_t, Pod> pods_;
  std::map<std::size_t, std::pair<std::int64_t, std::int64_t>> told_;
  std::int64_t wanted_ = 0;
  std::int64_t lost_ = 0;
};

}  // namespace

Figures measure_bursts(const Scene& scene, std::uint64_t seed) {
  QualityMachine machine(scene.machine);
  const Churn churn = churn_on(machine, scene, seed);
  Bursts bursts(scene, seed);
  Counts exclusive;
  Counts shared;
  seconds now{0};
  for (std::size_t pod = 0; pod < churn.size(); ++pod) {
    for (const std::size_t ended : churn[pod].ended_before) machine.end(ended);
    const CpuSet free_before = machine.free();
    const Placed placed = machine.admit(pod, churn[pod]);
    if (churn[pod].is_counted) {
      (churn[pod].is_exclusive() ? exclusive : shared).add({pod, churn[pod], free_before, placed}, *machine.topology());
    }
    for (const seconds until = now + kInterval; now < until; now += kSample) {
      bursts.sample(machine, churn, now, churn[pod].is_counted);
      machine.pass(kSample);
    }
  }
  const auto widened = machine.judge().moves().find(placement::reason_code::kHomePressed);
  Figures figures{
      count("pods", exclusive.counted + shared.counted),
      count("denied", exclusive.denied + shared.denied),
      count(kLostVotes, exclusive.lost_votes + shared.lost_votes),
      {"bursts lost", bursts.lost()},
      {"exclusive in one node", share(exclusive.in_node, exclusive.counted)},
      {"widened a pod",
       share(widened == machine.judge().moves().end() ? 0 : static_cast<double>(widened->second), churn.size())}};
  append(figures, figures_of_moves(machine, churn.size()));
  return figures;
}

}  // namespace topolet::bench
