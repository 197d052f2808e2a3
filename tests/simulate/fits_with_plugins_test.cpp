// How many CPUs fit on each node, by the plugins' own decisions.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/planning/crash_hold.hpp"
#include "core/engine/planning/fits.hpp"
#include "core/engine/planning/placer.hpp"
#include "core/placement/decide.hpp"
#include "core/placement/validate.hpp"
#include "core/plugin/call/policy_thread.hpp"
#include "core/plugin/host/common_options.hpp"
#include "core/plugin/host/in_memory_plugin_state.hpp"
#include "core/plugin/host/loaded_config.hpp"
#include "tests/engine/ledgers.hpp"
#include "tests/simulate/simulated_node.hpp"
#include "tests/support/dice.hpp"

namespace topolet::engine {
namespace {

using PluginFlags = std::vector<std::string>;

/// The plugins of one configuration.
class PluginsOfFits {
 public:
  explicit PluginsOfFits(const PluginFlags& flags) {
    PluginFlags arguments = {"--config",
                             "/dev/null",
                             "--plugins.enable=numa",
                             "--plugins.enable=smt",
                             "--plugins.enable=gpu",
                             std::string("--daemon.plugin-dir=") + TOPOLET_BUILT_PLUGINS};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    config_ = std::make_unique<plugin::LoadedConfig>(plugin::load_config(config::read_raw(arguments)));
    if (!config_->mistakes().empty()) throw std::logic_error(config_->mistakes().front());
    const config::Options& options = config_->config.options;
    for (const config::PluginOptions& of_plugin : options.plugins) {
      for (const plugin::PluginLibrary& library : config_->plugins.libraries) {
        if (library.id() != of_plugin.name) continue;
        auto made = library.create({of_plugin.values.begin(), of_plugin.values.end()}, make_silent_log(),
                                   {.state = state_, .configuration = options.configuration});
        if (!made) throw std::logic_error(made.error().message);
        votes_.push_back({of_plugin.name, *made, of_plugin.weight, of_plugin.fail_closed, of_plugin.required,
                          plugin::common_options_of(of_plugin)});
      }
    }
  }

  const placement::PlacementRules& rules() const { return config_->config.options.placement.rules; }

  placement::Decision decide(const std::shared_ptr<const placement::PolicyRequest>& request,
                             const placement::PlacementRules& rules) {
    return policies_.run_as<placement::Decision>(votes_, [request, rules](const std::vector<placement::Vote>& votes) {
      return placement::decide(*request, rules, votes);
    });
  }

 private:
  const std::shared_ptr<store::PluginStateStore> state_ = std::make_shared<plugin::InMemoryPluginState>();
  std::unique_ptr<plugin::LoadedConfig> config_;
  std::vector<plugin::PluginVote> votes_;
  // No vote is to be lost because this machine is busy.
  plugin::PolicyThread policies_{
      {.deadline = std::chrono::minutes(1), .decision_time = std::chrono::minutes(5), .clock = {}}};
};

class RandomLedger {
 public:
  RandomLedger(std::uint64_t seed, std::uint32_t min_shared_cpus) : dice_(seed), min_shared_cpus_(min_shared_cpus) {
    const std::vector<std::string> machines = {"node:2 core:4 pu:2", "pack:2 numa:2 l3:2 core:2 pu:2",
                                               "node:1 core:6 pu:1", "node:3 core:3 pu:2",
                                               "node:2 core:2 pu:4", "node:2 core:14 pu:2",
                                               "node:1 core:8 pu:4"};
    topology::DiscoverOptions options{.synthetic = dice_.one_of(machines)};
    const auto all = topology::discover(options).value()->online;
    if (dice_.permille(300)) options.offline = some_of(all, 120);
    if (dice_.permille(200)) options.isolated = some_of(all, 120);
    topology_ = *topology::discover(options);
  }

  const std::shared_ptr<const topology::Topology>& topology() const { return topology_; }

  Ledger make() {
    CpuInventory inventory{topology_->allowed, {}, topology_->isolated};
    if (dice_.permille(300)) inventory.reserved = some_of(topology_->allowed, 150);
    std::vector<Allocation> allocations;
    CpuSet left = Ledger::pool_of(inventory, {}, {});
    // The larger part of some nodes only.
    for (const topology::Node& node : topology_->nodes) {
      for (int i = 0; i < 2; ++i) {
        const CpuSet cpus = some_of(left & node.cpus, dice_.one_of<std::size_t>({0, 150, 400, 1000}));
        if (cpus.empty() || left.size() - cpus.size() <= min_shared_cpus_) continue;
        left -= cpus;
        const CpuSet withheld = dice_.permille(200) ? CpuSet{cpus.first()} : CpuSet();
        if (cpus == withheld) continue;
        allocations.push_back(exclusive(fmt::format("e{}", allocations.size()), cpus - withheld,
                                        dice_.permille(150) ? Phase::kCrashed : Phase::kRunning, withheld));
      }
    }
    for (const topology::Node& node : topology_->nodes) {
      for (const std::size_t permille : {1000, 500}) {
        const CpuSet within = some_of(node.cpus & left, permille);
        if (within.empty() || dice_.permille(500)) continue;
        allocations.push_back(shared(fmt::format("s{}", allocations.size()), Phase::kRunning, within));
        allocations.back().workload.qos = placement::Qos::kBurstable;
        allocations.back().workload.demand.cpu_request_milli = static_cast<std::int64_t>(dice_.below(4000));
      }
    }
    return ledger_of(std::move(allocations), {}, inventory);
  }

 private:
  CpuSet some_of(const CpuSet& cpus, std::size_t permille) {
    CpuSet some;
    for (const std::uint32_t cpu : cpus) {
      if (dice_.permille(permille)) some.insert(cpu);
    }
    return some;
  }

  testing::Dice dice_;
  const std::uint32_t min_shared_cpus_;
  std::shared_ptr<const topology::Topology> topology_;
};

/// CPUs that are kept for containers that have ended make way for one that would be denied.
Ledger without_kept(const Ledger& ledger) {
  Ledger released = ledger;
  release_kept(released);
  return released;
}

bool is_given(const Placer& placer, const Ledger& ledger, const topology::Node& node, std::uint32_t cpus) {
  Placer::Constraints here;
  here.within_nodes = NodeSet{node.os_index};
  const placement::Placement placement = placer.plan(ledger, guaranteed("new", cpus), here).decision.placement;
  return placement.mode == placement::Mode::kExclusive && placement.cpus.size() == cpus &&
         placement.cpus.is_subset_of(node.cpus);
}

/// With these options, on random machines and with random containers, a node gives as much as it says and no more.
class FitsWithPlugins : public ::testing::TestWithParam<PluginFlags> {};

TEST_P(FitsWithPlugins, AreTheMostThatIsGivenOnEachNode) {
  PluginsOfFits plugins(GetParam());
  int granted = 0;
  int less_than_free = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    placement::PlacementRules rules = plugins.rules();
    rules.min_shared_cpus = static_cast<std::uint32_t>(seed % 4);
    if (seed % 7 == 0) rules.when_full = placement::WhenFull::kShare;
    RandomLedger random(seed, rules.min_shared_cpus);
    const Ledger ledger = random.make();
    const Ledger released = without_kept(ledger);
    const topology::Topology& machine = *random.topology();
    const Placer placer({random.topology(), placement::make_candidates(machine, machine.allowed), rules,
                         [&plugins](const auto& request, const placement::PlacementRules& with) {
                           return plugins.decide(request, with);
                         }});
    const Fits fits = compute_fits(placer, ledger, {});
    EXPECT_FALSE(fits.lost_votes);
    ASSERT_EQ(fits.nodes.size(), machine.nodes.size());
    for (const NodeFit& fit : fits.nodes) {
      const topology::Node& node = *machine.node(fit.node);
      const auto free = static_cast<std::uint32_t>((node.cpus & released.pool()).size());
      std::uint32_t most = 0;
      for (std::uint32_t cpus = 1; cpus <= free + 1; ++cpus) {
        if (is_given(placer, ledger, node, cpus) || is_given(placer, released, node, cpus)) most = cpus;
      }
      if (most > 0) ++granted;
      EXPECT_EQ(fit.exclusive_cpus, most) << "seed " << seed << ", node " << fit.node;
      if (most < std::min<std::size_t>(free, placement::spare_cpus(released.pool(), rules))) ++less_than_free;
    }
  }
  // Or the machines and containers would show little.
  EXPECT_GT(granted, 50);
  EXPECT_GT(less_than_free, 2);
}

INSTANTIATE_TEST_SUITE_P(
    Options, FitsWithPlugins,
    ::testing::Values(PluginFlags{}, PluginFlags{"--numa.full-pcpus-only=true", "--smt.round=deny"},
                      PluginFlags{"--numa.full-pcpus-only=true", "--plugins.required.smt=true"},
                      PluginFlags{"--smt.isolate-siblings=exclusive", "--plugins.required.smt=true"},
                      PluginFlags{"--smt.isolate-siblings=exclusive", "--numa.policy=restricted", "--numa.scope=pod"},
                      PluginFlags{"--numa.distribute-cpus-across-cores=true", "--smt.pair=true"},
                      PluginFlags{"--numa.policy=none", "--numa.full-pcpus-only=true", "--smt.round=deny"}));

}  // namespace
}  // namespace topolet::engine
