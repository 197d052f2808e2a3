// Verdicts and picks on many machines and ledgers, against what trying everything says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <topolet/testing.hpp>

#include <algorithm>
#include <bit>
#include <memory>
#include <random>
#include <tuple>

#include "tests/plugins/numa/packed.hpp"

namespace topolet::numa {
namespace {

using sdk::Set;
using sdk::testing::FakeHost;
using sdk::testing::Ledger;
using sdk::testing::Machine;
using sdk::testing::Plugin;
using sdk::testing::Request;
using sdk::testing::set_of;
using sdk::testing::Verdict;

constexpr std::uint32_t kSeeds = 40;

Set part_of(const Set& cpus, std::uint32_t percent, std::mt19937& dice) {
  Set part;
  for (const std::uint32_t cpu : cpus.indices()) {
    if (dice() % 100 < percent) part.insert(cpu);
  }
  return part;
}

/// A request with every set of CPU nodes as a candidate, on a machine that is partly taken.
struct Scene {
  Scene(const std::string& synthetic, std::uint32_t seed) : machine(synthetic), ledger(machine), dice(seed) {
    ledger.reserve(part_of(machine.online(), 10, dice));
    ledger.place_exclusive({.pod_uid = "other"}, part_of(ledger.pool(), dice() % 80, dice));
    wanted = 1 + dice() % static_cast<std::uint32_t>(machine.online().size());
    request = std::make_unique<Request>(machine, ledger, sdk::testing::Container{}, wanted);
    std::vector<std::uint32_t> nodes;
    for (const topolet_node& node : sdk::nodes(machine.view())) {
      if (node.memory_only == 0) nodes.push_back(node.os_index);
    }
    for (std::uint32_t chosen = 1; chosen < 1U << nodes.size(); ++chosen) {
      Set set;
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        if ((chosen >> i & 1U) != 0) set.insert(nodes[i]);
      }
      if (!has(set)) request->candidate(set);
    }
    for (const topolet_candidate& candidate : sdk::candidates(request->view())) {
      if (sdk::size_of(candidate.cpus) >= wanted) narrowest = std::min(narrowest, sdk::size_of(candidate.nodes));
    }
  }

  bool has(const Set& nodes) const {
    for (const topolet_candidate& candidate : sdk::candidates(request->view())) {
      if (Set(candidate.nodes).indices() == nodes.indices()) return true;
    }
    return false;
  }

  Machine machine;
  Ledger ledger;
  std::mt19937 dice;
  std::uint32_t wanted = 0;
  std::unique_ptr<Request> request;
  std::size_t narrowest = SIZE_MAX;
  FakeHost host;
};

/// The distance of machines that know none.
std::size_t packages_of(const Machine& machine, topolet_set cpus) {
  std::size_t packages = 0;
  for (std::size_t i = 0; i < machine.view().package_count; ++i) {
    packages += sdk::size_of_both(machine.view().packages[i], cpus) > 0 ? 1 : 0;
  }
  return packages;
}

/// The fewest caches of the nodes that have as many free CPUs, and what is left in the last one; by trying all sets.
std::pair<std::size_t, std::size_t> caches_for(const Machine& machine, topolet_set free, std::size_t wanted) {
  std::vector<std::size_t> sizes;
  for (std::size_t i = 0; i < machine.view().l3_count; ++i) {
    sizes.push_back(sdk::size_of_both(machine.view().l3s[i], free));
  }
  if (sizes.size() <= machine.view().node_count) return {};
  std::pair<std::size_t, std::size_t> fewest{SIZE_MAX, 0};
  for (std::uint32_t choice = 1; choice < 1U << sizes.size(); ++choice) {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) sum += (choice >> i & 1U) != 0 ? sizes[i] : 0;
    const auto caches = static_cast<std::size_t>(std::popcount(choice));
    if (sum < wanted || caches > fewest.first) continue;
    // With as few caches as possible, the largest are taken whole, so that little is left over.
    const bool holds_all = caches == 1;
    const std::size_t rest = sum - wanted;
    if (caches < fewest.first || (holds_all && rest < fewest.second)) fewest = {caches, rest};
  }
  return fewest;
}

/// How many CPUs are beside others for want of whole cores, on a machine whose cores are all alike.
std::size_t crowded_cpus(const Machine& machine, topolet_set free, std::size_t wanted) {
  const std::size_t threads = sdk::size_of(machine.view().cores[0]);
  std::size_t whole = 0;
  for (std::size_t i = 0; i < machine.view().core_count; ++i) {
    if (sdk::size_of_both(machine.view().cores[i], free) == threads) whole += threads;
  }
  const std::size_t in_cores = wanted / threads * threads;
  return in_cores - std::min(in_cores, whole);
}

class NumaOnMachine : public ::testing::TestWithParam<const char*> {};

TEST_P(NumaOnMachine, AdmitsExactlyWhatThePolicySays) {
  for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
    Scene scene(GetParam(), seed);
    for (const char* const policy : {"best-effort", "restricted", "single-numa-node"}) {
      const auto verdicts = Plugin(topolet_plugin_v1, scene.host, {{"policy", policy}}).score(*scene.request);
      for (std::size_t i = 0; i < verdicts.size(); ++i) {
        const topolet_candidate& candidate = scene.request->view().candidates[i];
        const std::size_t width = sdk::size_of(candidate.nodes);
        const bool fits = sdk::size_of(candidate.usable) >= scene.wanted;
        const bool narrow = policy[0] == 'b' || (policy[0] == 'r' ? width == scene.narrowest : width == 1);
        EXPECT_EQ(verdicts[i].kind == TOPOLET_VERDICT_SCORE, fits && narrow)
            << policy << ", seed " << seed << ": " << verdicts[i].reason;
        EXPECT_FALSE(verdicts[i].reason.empty());
      }
    }
  }
}

TEST_P(NumaOnMachine, PrefersFewerNodesThenCloserOnesThenFewerCachesThenWholeCoresThenTheStrategys) {
  for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
    Scene scene(GetParam(), seed);
    const auto verdicts = Plugin(topolet_plugin_v1, scene.host, packed()).score(*scene.request);
    const topolet_candidate* best = nullptr;
    std::int32_t score = 0;
    for (std::size_t i = 0; i < verdicts.size(); ++i) {
      const topolet_candidate& candidate = scene.request->view().candidates[i];
      if (verdicts[i].kind != TOPOLET_VERDICT_SCORE) continue;
      const auto key = [&scene](const topolet_candidate& c) {
        const auto [caches, rest] = caches_for(scene.machine, c.usable, scene.wanted);
        return std::tuple(sdk::size_of(c.nodes), packages_of(scene.machine, c.cpus), caches,
                          crowded_cpus(scene.machine, c.usable, scene.wanted), caches == 1 ? rest : 0,
                          sdk::size_of(c.usable));
      };
      if (best != nullptr && score == verdicts[i].score) continue;
      if (best != nullptr) {
        EXPECT_EQ(key(candidate) < key(*best), verdicts[i].score > score) << "seed " << seed;
      }
      if (best == nullptr || verdicts[i].score > score) best = &candidate, score = verdicts[i].score;
    }
  }
}

TEST_P(NumaOnMachine, OrdersOnlyWhatIsUsableEachOnceAndEnough) {
  const std::vector<std::vector<std::pair<std::string, std::string>>> options = {
      {},
      {{"strategy", "spread"}},
      {{"policy", "none"}},
      {{"policy", "none"}, {"distribute-cpus-across-numa", "true"}},
      {{"distribute-cpus-across-numa", "true"}, {"full-pcpus-only", "true"}},
      {{"distribute-cpus-across-cores", "true"}},
      {{"prefer-align-cpus-by-uncorecache", "true"}}};
  for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
    Scene scene(GetParam(), seed);
    for (const auto& values : options) {
      Plugin plugin(topolet_plugin_v1, scene.host, values);
      for (std::size_t i = 0; i < scene.request->view().candidate_count; ++i) {
        const Set usable(scene.request->view().candidates[i].usable);
        if (usable.size() < scene.wanted) continue;
        const std::vector<std::uint32_t> order = plugin.order(*scene.request, i).order;
        EXPECT_GE(order.size(), scene.wanted);
        EXPECT_EQ(set_of(order).size(), order.size());
        EXPECT_TRUE((set_of(order) - usable).empty());
        EXPECT_EQ(plugin.order(*scene.request, i).order, order);
      }
    }
  }
}

/// Cores that lose some of their threads to the container and keep others free, or had lost some before.
std::size_t broken_cores(const Machine& machine, const Set& free, const Set& taken) {
  std::size_t broken = 0;
  for (std::size_t i = 0; i < machine.view().core_count; ++i) {
    const topolet_set core = machine.view().cores[i];
    const bool was_free = sdk::size_of_both(core, free.view()) == sdk::size_of(core);
    const std::size_t took = sdk::size_of_both(core, taken.view());
    if (was_free && took > 0 && took < sdk::size_of(core)) ++broken;
  }
  return broken;
}

TEST_P(NumaOnMachine, BreaksAtMostOneFreeCore) {
  for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
    Scene scene(GetParam(), seed);
    for (const char* const policy : {"none", "best-effort"}) {
      Plugin plugin(topolet_plugin_v1, scene.host, {{"policy", policy}});
      for (std::size_t i = 0; i < scene.request->view().candidate_count; ++i) {
        const Set free(scene.request->view().candidates[i].usable);
        if (free.size() < scene.wanted) continue;
        std::vector<std::uint32_t> order = plugin.order(*scene.request, i).order;
        order.resize(scene.wanted);
        EXPECT_LE(broken_cores(scene.machine, free, set_of(order)), 1U) << policy << ", seed " << seed;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Small, NumaOnMachine,
    ::testing::Values("numa:1 core:4 pu:2", "pack:2 numa:1 l3:2 core:2 pu:2", "pack:2 numa:2 core:3 pu:1",
                      "group:2 [numa] pack:2 core:2 pu:2", "pack:2 numa:2 l3:1 core:2 pu:4",
                      "pack:1 numa:5 core:2 pu:2",
                      "numa:3(indexes=8,0,4) core:2 pu:2(indexes=40,8,16,24,32,0,48,56,64,72,80,88)",
                      "pack:2 [numa] [numa] core:3 pu:2"));

TEST(NumaOnLargeMachines, GivesAVerdictOnEveryCandidate) {
  for (const char* const synthetic : {"pack:8 numa:3 core:8 pu:2", "pack:8 numa:8 l3:4 core:4 pu:2"}) {
    const Machine machine(synthetic);
    Ledger ledger(machine);
    ledger.place_exclusive({.pod_uid = "other"}, set_of({0, 1, 2}));
    for (const std::uint32_t wanted : {1U, 13U, 100U, static_cast<std::uint32_t>(machine.online().size() - 3)}) {
      const Request request(machine, ledger, {}, wanted);
      FakeHost host;
      Plugin plugin(topolet_plugin_v1, host);
      std::int32_t best = -101;
      for (const Verdict& verdict : plugin.score(request)) {
        EXPECT_NE(verdict.kind, TOPOLET_VERDICT_ABSTAIN);
        if (verdict.kind == TOPOLET_VERDICT_SCORE) best = std::max(best, verdict.score);
      }
      EXPECT_EQ(best, 100);
    }
  }
}

}  // namespace
}  // namespace topolet::numa
