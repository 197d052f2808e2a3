#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/bench/daemon_under_test.hpp"
#include "tests/bench/population.hpp"
#include "tests/bench/roles.hpp"
#include "tests/bench/rounds.hpp"
#include "tests/bench/sections.hpp"
#include "tests/bench/statistics.hpp"

namespace topolet::bench {
namespace {

// Four nodes of 32 CPUs. First two exclusive containers take all of one node, so that the neighbours that request CPUs
// are placed on the other nodes. Then one of the two is removed, and the numa plugin puts a newcomer with two exclusive
// CPUs where it was, since the fullest node comes first. None of those neighbours is there, but neighbours that request
// nothing run on all shared CPUs, and must leave those of the newcomer before it may have them.
constexpr char kFourNodes[] = "pack:4 numa:1(memory=1099511627776) core:16 pu:2";
constexpr std::int64_t kHalfNodeMilli = 16000;
constexpr std::size_t kNeighbours = 100;
constexpr std::size_t kMoving = 10;
constexpr std::int64_t kExclusiveMilli = 2000;

constexpr std::size_t kCreates = 10;  ///< of each scene in a round
constexpr std::chrono::milliseconds kQuiet(20);

/// The effects of one create.
struct Observed {
  double create_us = 0;
  double start_us = 0;
  std::size_t updates = 0;  ///< that the runtime got, from the create's request to the start's answer
};

class Scene {
 public:
  /// `moving`: how many of the neighbours must move.
  Scene(const Topoletd& topoletd, std::size_t moving);

  Observed create_and_remove();

 private:
  std::size_t updates() { return std::stoul(daemon_.runtime().call(kServicePath + kCountUpdates, "")); }
  void wait_until_quiet();
  std::pair<std::string, double> timed(const char* method, const std::string& request);
  std::string run_pod(const PodSpec& pod);
  void remove(const std::string& container_id);

  const PodSpec pod_{.name = "newcomer", .kind = Kind::kExclusive, .cpu_milli = kExclusiveMilli};
  DaemonUnderTest daemon_;
  Population settled_;
  Population moving_;
  std::string sandbox_id_;
  int created_ = 0;
};

Scene::Scene(const Topoletd& topoletd, std::size_t moving)
    : daemon_(topoletd, {}, {"--numa.strategy=packed"}), settled_(daemon_.client()), moving_(daemon_.client()) {
  const PodSpec halves{.name = "halves", .kind = Kind::kExclusive, .cpu_milli = kHalfNodeMilli};
  const std::string sandbox_id = run_pod(halves);
  std::string half;
  for (const char* name : {"first", "second"}) {
    const std::string request = create_request(halves, sandbox_id, {.name = name});
    half = id_in(daemon_.client().call(kServicePath + "CreateContainer", request));
    daemon_.client().call(kServicePath + "StartContainer", id_request(half));
  }
  settled_.grow_to(kNeighbours - moving);
  moving_.grow_to(moving, Kind::kBestEffort);
  remove(half);
  sandbox_id_ = run_pod(pod_);
}

std::string Scene::run_pod(const PodSpec& pod) {
  return id_in(daemon_.client().call(kServicePath + "RunPodSandbox", run_sandbox_request(pod)));
}

void Scene::remove(const std::string& container_id) {
  daemon_.client().call(kServicePath + "StopContainer", id_request(container_id));
  daemon_.client().call(kServicePath + "RemoveContainer", id_request(container_id));
}

/// Until nothing more is updated: neighbours are given back the CPUs of what was removed.
void Scene::wait_until_quiet() {
  std::size_t before = 0;
  std::size_t now = updates();
  do {
    std::this_thread::sleep_for(kQuiet);
    before = std::exchange(now, updates());
  } while (now != before);
}

std::pair<std::string, double> Scene::timed(const char* method, const std::string& request) {
  const auto begin = std::chrono::steady_clock::now();
  std::string response = daemon_.client().call(kServicePath + method, request);
  return {std::move(response),
          std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count()};
}

Observed Scene::create_and_remove() {
  wait_until_quiet();
  const std::size_t before = updates();
  const std::string request = create_request(pod_, sandbox_id_, {.name = fmt::format("container-{}", created_++)});
  const auto [created, create_us] = timed("CreateContainer", request);
  const std::string id = id_in(created);
  const double start_us = timed("StartContainer", id_request(id)).second;
  const Observed observed{.create_us = create_us, .start_us = start_us, .updates = updates() - before};
  remove(id);
  return observed;
}

/// All rounds of one scene.
struct Series {
  std::vector<double> create_us = {};
  std::vector<double> start_us = {};
  std::vector<double> updates = {};
  std::vector<double> round_create_us = {};
  std::vector<double> round_both_us = {};

  void add_round(const std::vector<Observed>& round);
};

void Series::add_round(const std::vector<Observed>& round) {
  std::vector<double> creates;
  std::vector<double> both;
  for (const Observed& one : round) {
    creates.push_back(one.create_us);
    both.push_back(one.create_us + one.start_us);
    create_us.push_back(one.create_us);
    start_us.push_back(one.start_us);
    updates.push_back(static_cast<double>(one.updates));
  }
  round_create_us.push_back(median(creates));
  round_both_us.push_back(median(both));
}

nlohmann::json to_json(const Series& series) {
  return {{"create_p50_us", median(series.create_us)},
          {"create_p99_us", quantile(series.create_us, 0.99)},
          {"start_p50_us", median(series.start_us)},
          {"updates", median(series.updates)}};
}

void print(const char* name, const Series& series) {
  fmt::print("{:<18} {:>14.0f} {:>14.0f} {:>14.0f} {:>9.0f}\n", name, median(series.create_us),
             quantile(series.create_us, 0.99), median(series.start_us), median(series.updates));
}

nlohmann::json report(const Series& moving, const Series& still, std::uint64_t seed) {
  const Interval create = median_ratio(moving.round_create_us, still.round_create_us, seed);
  const Interval both = median_ratio(moving.round_both_us, still.round_both_us, seed);
  fmt::print("{} shared neighbours, {} rounds\n{:<18} {:>14} {:>14} {:>14} {:>9}\n", kNeighbours,
             moving.round_create_us.size(), "must move", "create p50 µs", "create p99 µs", "start p50 µs", "updates");
  print("10 neighbours", moving);
  print("none", still);
  fmt::print("10 / none, create          {:.2f} [{:.2f}, {:.2f}]\n", create.middle, create.low, create.high);
  fmt::print("10 / none, create + start  {:.2f} [{:.2f}, {:.2f}]\n", both.middle, both.low, both.high);
  const auto interval = [](const Interval& one) {
    return nlohmann::json{{"low", one.low}, {"middle", one.middle}, {"high", one.high}};
  };
  return {{"ten_move", to_json(moving)},
          {"none_moves", to_json(still)},
          {"create_ratio", interval(create)},
          {"create_and_start_ratio", interval(both)}};
}

}  // namespace

nlohmann::json measure_neighbours(const SectionOptions& options) {
  if (options.topoletd.machine.empty()) {
    fmt::print("left out: it needs a made-up machine, and the kernel permits no mount namespace here\n");
    return nullptr;
  }
  Topoletd topoletd = options.topoletd;
  topoletd.machine = kFourNodes;
  std::mt19937_64 random(options.seed);
  Series moving;
  Series still;
  run_rounds(options.seconds, [&] {
    Scene with_moves(topoletd, kMoving);
    Scene without(topoletd, 0);
    std::vector<std::pair<Scene*, std::vector<Observed>>> scenes = {{&with_moves, {}}, {&without, {}}};
    run_in_turns(scenes, kCreates, random,
                 [](auto& scene) { scene.second.push_back(scene.first->create_and_remove()); });
    moving.add_round(scenes[0].second);
    still.add_round(scenes[1].second);
  });
  return report(moving, still, options.seed);
}

}  // namespace topolet::bench
