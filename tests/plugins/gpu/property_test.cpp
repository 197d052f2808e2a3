// Verdicts on many machines, devices and ledgers, compared with what trying every node finds.
#include <gtest/gtest.h>
#include <topolet/testing.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/support/temp_dir.hpp"

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

/// A machine with random distances and GPUs on random nodes, some of whose CPUs are taken, and a container with all
/// GPUs.
struct Scenario {
  Scenario(const char* synthetic, std::uint32_t seed, std::uint32_t exclusive = 0) : machine(synthetic), random(seed) {
    for (const topolet_node& node : sdk::nodes(machine.view())) nodes.push_back(node.os_index);
    std::vector<std::uint32_t> distances(nodes.size() * nodes.size(), 10);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        distances[i * nodes.size() + j] = distances[j * nodes.size() + i] = 11 + random() % 30;
      }
    }
    machine.distances(std::move(distances));
    const std::uint32_t gpus = 1 + random() % 6;
    for (std::uint32_t gpu = 0; gpu < gpus; ++gpu) {
      gpu_nodes.push_back(random() % static_cast<std::uint32_t>(nodes.size()));
      machine.device({.name = "nvml" + std::to_string(gpu),
                      .address = "0000:" + std::to_string(10 + gpu) + ":00.0",
                      .nodes = set_of({nodes[gpu_nodes.back()]}),
                      .bridge = random() % 2 == 0 ? "0000:0" + std::to_string(gpu_nodes.back()) + ":01.0" : ""});
      gpu_list += (gpu == 0 ? "" : ",") + std::to_string(gpu);
    }
    ledger = std::make_unique<Ledger>(machine);
    Set taken;
    for (const std::uint32_t cpu : machine.online().indices()) {
      if (random() % 3 == 0) taken.insert(cpu);
    }
    ledger->place_exclusive({.pod_uid = "other"}, taken);
    // With less than one CPU it would only watch all of them.
    const Container user{.cpu_request_milli = 1000, .env = {{"NVIDIA_VISIBLE_DEVICES", gpu_list}}};
    request = std::make_unique<Request>(machine, *ledger, user, exclusive);
    for (std::uint32_t chosen = 1; chosen < 1U << nodes.size(); ++chosen) {
      Set set;
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        if ((chosen >> i & 1U) != 0) set.insert(nodes[i]);
      }
      request->candidate(set);
    }
  }

  const topolet_candidate& candidate(std::size_t i) const { return request->view().candidates[i]; }

  /// Positions of the nodes on which the container could run.
  std::vector<std::size_t> usable(std::size_t i) const {
    std::vector<std::size_t> all, free;
    for (std::size_t node = 0; node < nodes.size(); ++node) {
      if (topolet_set_has(candidate(i).nodes, nodes[node]) == 0) continue;
      all.push_back(node);
      if (!(machine.cpus_of_node(node) & Set(candidate(i).usable)).empty()) free.push_back(node);
    }
    return free.empty() ? all : free;
  }

  /// Returns the mean over all GPUs: 1 for a local one, 10 / distance for another.
  double mean_nearness(std::size_t i) const {
    double sum = 0;
    for (const std::uint32_t gpu_node : gpu_nodes) {
      double best = 0;
      for (const std::size_t node : usable(i)) {
        const double distance = machine.view().distances[node * nodes.size() + gpu_node];
        best = std::max(best, node == gpu_node ? 1 : std::min(0.9, 10 / distance));
      }
      sum += best;
    }
    return sum / static_cast<double>(gpu_nodes.size());
  }

  std::size_t missed_gpus(std::size_t i) const {
    const auto usable_nodes = usable(i);
    return static_cast<std::size_t>(
        std::count_if(gpu_nodes.begin(), gpu_nodes.end(), [&usable_nodes](std::uint32_t gpu_node) {
          return std::find(usable_nodes.begin(), usable_nodes.end(), gpu_node) == usable_nodes.end();
        }));
  }

  Plugin plugin(const char* affinity) {
    static const TempDir kNothing;
    const std::string nothing = kNothing.path().string();
    return Plugin(topolet_plugin_v1, host,
                  {{"affinity", affinity},
                   {"sysfs-root", nothing},
                   {"proc-root", nothing},
                   {"dev-root", nothing},
                   {"cdi-dirs", ""}});
  }

  std::vector<Verdict> verdicts(const char* affinity) { return plugin(affinity).score(*request); }

  std::size_t served_gpus(const Set& cpus) const {
    return static_cast<std::size_t>(std::count_if(gpu_nodes.begin(), gpu_nodes.end(), [&](std::uint32_t gpu_node) {
      return !(machine.cpus_of_node(gpu_node) & cpus).empty();
    }));
  }

  std::size_t local_cpus(const Set& cpus) const {
    Set local_cpus_of_gpus;
    for (const std::uint32_t gpu_node : gpu_nodes) local_cpus_of_gpus |= machine.cpus_of_node(gpu_node);
    return (local_cpus_of_gpus & cpus).size();
  }

  /// The distance from each GPU to the nearest of these CPUs.
  std::vector<std::uint32_t> distances_to(const Set& cpus) const {
    std::vector<std::uint32_t> distances_to;
    for (const std::uint32_t gpu_node : gpu_nodes) {
      std::uint32_t least = ~0U;
      for (std::size_t node = 0; node < nodes.size(); ++node) {
        if ((machine.cpus_of_node(node) & cpus).empty()) continue;
        least = std::min(least, node == gpu_node ? 0 : machine.view().distances[node * nodes.size() + gpu_node]);
      }
      distances_to.push_back(least);
    }
    return distances_to;
  }

  /// The most GPUs that `count` of these CPUs can serve, found by trying every set of nodes to take a CPU from.
  std::size_t most_served_gpus(const Set& cpus, std::size_t count) const {
    std::size_t most = 0;
    for (std::uint32_t chosen = 1; chosen < 1U << nodes.size(); ++chosen) {
      Set taken;
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        const Set here = machine.cpus_of_node(i) & cpus;
        if ((chosen >> i & 1U) != 0 && !here.empty()) taken.insert(here.indices().front());
      }
      if (taken.size() <= count) most = std::max(most, served_gpus(taken));
    }
    return most;
  }

  Machine machine;
  std::mt19937 random;
  std::vector<std::uint32_t> nodes, gpu_nodes;
  std::string gpu_list;
  std::unique_ptr<Ledger> ledger;
  std::unique_ptr<Request> request;
  FakeHost host;
};

class GpuOnMachine : public ::testing::TestWithParam<const char*> {};

TEST_P(GpuOnMachine, PrefersWhatIsNearerToItsDevices) {
  for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
    Scenario scenario(GetParam(), seed);
    const auto verdicts = scenario.verdicts("prefer");
    for (std::size_t i = 0; i < verdicts.size(); ++i) {
      ASSERT_EQ(verdicts[i].kind, TOPOLET_VERDICT_SCORE);
      for (std::size_t j = 0; j < i; ++j) {
        if (scenario.missed_gpus(i) != scenario.missed_gpus(j)) {
          ASSERT_EQ(verdicts[i].score > verdicts[j].score, scenario.missed_gpus(i) < scenario.missed_gpus(j))
              << "seed " << seed << "\n"
              << verdicts[i].reason << "\n"
              << verdicts[j].reason;
          continue;
        }
        // Scores are whole numbers; half a point is lost in each.
        if (scenario.mean_nearness(i) > scenario.mean_nearness(j) + 0.005) {
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
    Scenario scenario(GetParam(), seed);
    const auto verdicts = scenario.verdicts("prefer");
    for (std::size_t i = 0; i < verdicts.size(); ++i) {
      const auto usable = scenario.usable(i);
      const bool all_serve =
          scenario.missed_gpus(i) == 0 && std::all_of(usable.begin(), usable.end(), [&](std::size_t node) {
            return std::find(scenario.gpu_nodes.begin(), scenario.gpu_nodes.end(), node) != scenario.gpu_nodes.end();
          });
      if (all_serve) {
        EXPECT_EQ(verdicts[i].score, 100) << "seed " << seed << ": " << verdicts[i].reason;
      }
    }
  }
}

TEST_P(GpuOnMachine, RequireRejectsExactlyWhatMissesADevice) {
  for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
    Scenario scenario(GetParam(), seed);
    const auto preferred = scenario.verdicts("prefer");
    const auto required = scenario.verdicts("require");
    for (std::size_t i = 0; i < required.size(); ++i) {
      EXPECT_EQ(required[i].kind == TOPOLET_VERDICT_REJECT, scenario.missed_gpus(i) > 0) << required[i].reason;
      const std::size_t local_cpus = scenario.gpu_nodes.size() - scenario.missed_gpus(i);
      const std::string expected = local_cpus == 0 ? ": no GPU is local" : ": " + std::to_string(local_cpus) + " of ";
      EXPECT_NE(preferred[i].reason.find(expected), std::string::npos) << expected << " in " << preferred[i].reason;
      if (scenario.missed_gpus(i) == 0) {
        EXPECT_EQ(required[i].score, preferred[i].score);
      }
    }
  }
}

/// The CPUs that a host chooses if no other plugin asks for any.
Set host_choice(const sdk::testing::Picked& picked, const Set& free, std::size_t count) {
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
      Scenario scenario(GetParam(), seed, count);
      Plugin plugin = scenario.plugin("require");
      for (std::size_t i = 0; i < scenario.request->view().candidate_count; ++i) {
        const Set free(scenario.candidate(i).usable);
        if (free.size() < count) continue;
        const Set taken = host_choice(plugin.pick(*scenario.request, i), free, count);
        EXPECT_EQ(scenario.served_gpus(taken), scenario.most_served_gpus(free, count))
            << seed << ' ' << taken.to_string();
        if (scenario.served_gpus(free) == scenario.gpu_nodes.size()) {
          EXPECT_EQ(scenario.local_cpus(taken), std::min<std::size_t>(count, scenario.local_cpus(free))) << seed;
        }
        if (count >= scenario.usable(i).size()) {
          EXPECT_EQ(scenario.distances_to(taken), scenario.distances_to(free)) << seed << ' ' << taken.to_string();
        }
        EXPECT_EQ(plugin.pick(*scenario.request, i, taken).rejected, "") << seed;
        Set others;
        for (const std::uint32_t cpu : free.indices()) {
          if (others.size() < count && scenario.random() % 2 == 0) others.insert(cpu);
        }
        if (others.size() < count) continue;
        const bool worse = scenario.served_gpus(others) < scenario.most_served_gpus(free, count);
        EXPECT_EQ(plugin.pick(*scenario.request, i, others).rejected.empty(), !worse) << seed;
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
