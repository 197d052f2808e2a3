// Verdicts on many machines, devices and ledgers, against what trying every node says.
#include <gtest/gtest.h>
#include <topolet/testing.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace topolet::gpu {
namespace {

using sdk::Set;
using sdk::testing::Container;
using sdk::testing::FakeHost;
using sdk::testing::Ledger;
using sdk::testing::Machine;
using sdk::testing::Plugin;
using sdk::testing::Request;
using sdk::testing::set_of;
using sdk::testing::Verdict;

constexpr std::uint32_t kSeeds = 60;

/// Some GPUs on some nodes of a machine with made-up distances that is partly taken; a container with some of them.
struct Scene {
  Scene(const char* synthetic, std::uint32_t seed, std::uint32_t exclusive = 0) : machine(synthetic), dice(seed) {
    for (const topolet_node& node : sdk::nodes(machine.view())) nodes.push_back(node.os_index);
    std::vector<std::uint32_t> distances(nodes.size() * nodes.size(), 10);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        distances[i * nodes.size() + j] = distances[j * nodes.size() + i] = 11 + dice() % 30;
      }
    }
    machine.distances(std::move(distances));
    const std::uint32_t gpus = 1 + dice() % 6;
    for (std::uint32_t gpu = 0; gpu < gpus; ++gpu) {
      homes.push_back(dice() % static_cast<std::uint32_t>(nodes.size()));
      machine.device({.name = "nvml" + std::to_string(gpu),
                      .address = "0000:" + std::to_string(10 + gpu) + ":00.0",
                      .nodes = set_of({nodes[homes.back()]}),
                      .bridge = dice() % 2 == 0 ? "0000:0" + std::to_string(homes.back()) + ":01.0" : ""});
      wanted += (gpu == 0 ? "" : ",") + std::to_string(gpu);
    }
    ledger = std::make_unique<Ledger>(machine);
    Set taken;
    for (const std::uint32_t cpu : machine.online().indices()) {
      if (dice() % 3 == 0) taken.insert(cpu);
    }
    ledger->place_exclusive({.name = "other"}, taken);
    request =
        std::make_unique<Request>(machine, *ledger, Container{.env = {{"NVIDIA_VISIBLE_DEVICES", wanted}}}, exclusive);
    for (std::uint32_t chosen = 1; chosen < 1U << nodes.size(); ++chosen) {
      Set set;
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        if ((chosen >> i & 1U) != 0) set.insert(nodes[i]);
      }
      request->candidate(set);
    }
  }

  const topolet_candidate& candidate(std::size_t i) const { return request->view().candidates[i]; }

  /// Positions of nodes where it could run.
  std::vector<std::size_t> usable(std::size_t i) const {
    std::vector<std::size_t> all, free;
    for (std::size_t node = 0; node < nodes.size(); ++node) {
      if (topolet_set_has(candidate(i).nodes, nodes[node]) == 0) continue;
      all.push_back(node);
      if (!(machine.cpus_of_node(node) & Set(candidate(i).free)).empty()) free.push_back(node);
    }
    return free.empty() ? all : free;
  }

  /// Thousandths: 1 for what is local, 10 / distance for what is not.
  double worth(std::size_t i) const {
    double sum = 0;
    for (const std::uint32_t home : homes) {
      double best = 0;
      for (const std::size_t node : usable(i)) {
        const double distance = machine.view().distances[node * nodes.size() + home];
        best = std::max(best, node == home ? 1 : std::min(0.9, 10 / distance));
      }
      sum += best;
    }
    return sum / static_cast<double>(homes.size());
  }

  std::size_t missed(std::size_t i) const {
    const auto there = usable(i);
    return static_cast<std::size_t>(std::count_if(homes.begin(), homes.end(), [&there](std::uint32_t home) {
      return std::find(there.begin(), there.end(), home) == there.end();
    }));
  }

  Plugin plugin(const char* affinity) {
    return Plugin(topolet_plugin_v1, host,
                  {{"affinity", affinity}, {"sysfs-root", ""}, {"proc-root", ""}, {"dev-root", ""}, {"cdi-dirs", ""}});
  }

  std::vector<Verdict> verdicts(const char* affinity) { return plugin(affinity).score(*request); }

  std::size_t served(const Set& cpus) const {
    return static_cast<std::size_t>(std::count_if(
        homes.begin(), homes.end(), [&](std::uint32_t home) { return !(machine.cpus_of_node(home) & cpus).empty(); }));
  }

  std::size_t local(const Set& cpus) const {
    Set near;
    for (const std::uint32_t home : homes) near |= machine.cpus_of_node(home);
    return (near & cpus).size();
  }

  /// The distance from each device to these CPUs.
  std::vector<std::uint32_t> reach(const Set& cpus) const {
    std::vector<std::uint32_t> reach;
    for (const std::uint32_t home : homes) {
      std::uint32_t least = ~0U;
      for (std::size_t node = 0; node < nodes.size(); ++node) {
        if ((machine.cpus_of_node(node) & cpus).empty()) continue;
        least = std::min(least, node == home ? 0 : machine.view().distances[node * nodes.size() + home]);
      }
      reach.push_back(least);
    }
    return reach;
  }

  /// The most devices that so many CPUs of these can serve, by trying all nodes to take one from.
  std::size_t most_served(const Set& cpus, std::size_t count) const {
    std::size_t most = 0;
    for (std::uint32_t chosen = 1; chosen < 1U << nodes.size(); ++chosen) {
      Set taken;
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        const Set here = machine.cpus_of_node(i) & cpus;
        if ((chosen >> i & 1U) != 0 && !here.empty()) taken.insert(here.indices().front());
      }
      if (taken.size() <= count) most = std::max(most, served(taken));
    }
    return most;
  }

  Machine machine;
  std::mt19937 dice;
  std::vector<std::uint32_t> nodes, homes;
  std::string wanted;
  std::unique_ptr<Ledger> ledger;
  std::unique_ptr<Request> request;
  FakeHost host;
};

class GpuOnMachine : public ::testing::TestWithParam<const char*> {};

TEST_P(GpuOnMachine, PrefersWhatIsNearerToItsDevices) {
  for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
    Scene scene(GetParam(), seed);
    const auto verdicts = scene.verdicts("prefer");
    for (std::size_t i = 0; i < verdicts.size(); ++i) {
      ASSERT_EQ(verdicts[i].kind, TOPOLET_VERDICT_SCORE);
      for (std::size_t j = 0; j < i; ++j) {
        if (scene.missed(i) != scene.missed(j)) {
          ASSERT_EQ(verdicts[i].score > verdicts[j].score, scene.missed(i) < scene.missed(j))
              << "seed " << seed << "\n"
              << verdicts[i].reason << "\n"
              << verdicts[j].reason;
          continue;
        }
        // Scores are whole numbers; half a point is lost in each.
        if (scene.worth(i) > scene.worth(j) + 0.005) {
          ASSERT_GT(verdicts[i].score, verdicts[j].score) << "seed " << seed << "\n"
                                                          << verdicts[i].reason << "\n"
                                                          << verdicts[j].reason;
        }
      }
    }
  }
}

TEST_P(GpuOnMachine, PrefersAmongEqualsNodesThatAllServe) {
  for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
    Scene scene(GetParam(), seed);
    const auto verdicts = scene.verdicts("prefer");
    for (std::size_t i = 0; i < verdicts.size(); ++i) {
      const auto usable = scene.usable(i);
      const bool all_serve = scene.missed(i) == 0 && std::all_of(usable.begin(), usable.end(), [&](std::size_t node) {
                               return std::find(scene.homes.begin(), scene.homes.end(), node) != scene.homes.end();
                             });
      if (all_serve) {
        EXPECT_EQ(verdicts[i].score, 100) << "seed " << seed << ": " << verdicts[i].reason;
      }
    }
  }
}

TEST_P(GpuOnMachine, RequireRejectsExactlyWhatMissesADevice) {
  for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
    Scene scene(GetParam(), seed);
    const auto preferred = scene.verdicts("prefer");
    const auto required = scene.verdicts("require");
    for (std::size_t i = 0; i < required.size(); ++i) {
      EXPECT_EQ(required[i].kind == TOPOLET_VERDICT_REJECT, scene.missed(i) > 0) << required[i].reason;
      const std::size_t local = scene.homes.size() - scene.missed(i);
      const std::string said = local == 0 ? ": none" : ": " + std::to_string(local) + " of ";
      EXPECT_NE(preferred[i].reason.find(said), std::string::npos) << said << " in " << preferred[i].reason;
      if (scene.missed(i) == 0) {
        EXPECT_EQ(required[i].score, preferred[i].score);
      }
    }
  }
}

/// What a host takes where nobody else chooses.
Set taken_by(const sdk::testing::Picked& picked, const Set& free, std::size_t count) {
  Set taken;
  const auto take = [&](const Set& of, std::size_t share) {
    std::size_t has = (of & taken).size();
    for (const std::uint32_t cpu : (of - taken).indices()) {
      if (has++ < share && taken.size() < count) taken.insert(cpu);
    }
  };
  for (const sdk::testing::Share& share : picked.at_least) take(share.cpus, share.count);
  take(free, count);
  return taken;
}

TEST_P(GpuOnMachine, DividesCpusSoThatMostDevicesAndThenMostCpusAreServed) {
  for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
    for (std::uint32_t count = 1; count < 6; ++count) {
      Scene scene(GetParam(), seed, count);
      Plugin plugin = scene.plugin("require");
      for (std::size_t i = 0; i < scene.request->view().candidate_count; ++i) {
        const Set free(scene.candidate(i).free);
        if (free.size() < count) continue;
        const Set taken = taken_by(plugin.pick(*scene.request, i), free, count);
        EXPECT_EQ(scene.served(taken), scene.most_served(free, count)) << seed << ' ' << taken.to_string();
        if (scene.served(free) == scene.homes.size()) {
          EXPECT_EQ(scene.local(taken), std::min<std::size_t>(count, scene.local(free))) << seed;
        }
        if (count >= scene.usable(i).size()) {
          EXPECT_EQ(scene.reach(taken), scene.reach(free)) << seed << ' ' << taken.to_string();
        }
        EXPECT_EQ(plugin.pick(*scene.request, i, taken).rejected, "") << seed;
        Set others;
        for (const std::uint32_t cpu : free.indices()) {
          if (others.size() < count && scene.dice() % 2 == 0) others.insert(cpu);
        }
        if (others.size() < count) continue;
        const bool worse = scene.served(others) < scene.most_served(free, count);
        EXPECT_EQ(plugin.pick(*scene.request, i, others).rejected.empty(), !worse) << seed;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Small, GpuOnMachine,
                         ::testing::Values("pack:2 numa:1 core:2 pu:2", "pack:2 numa:2 core:2 pu:1",
                                           "pack:1 numa:5 core:2 pu:1",
                                           "numa:3(indexes=8,0,4) core:2 pu:2(indexes=40,8,16,24,32,0,48,56,64,72,80,"
                                           "88)"));

}  // namespace
}  // namespace topolet::gpu
