// Isolation that takes several nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <random>

#include "tests/simulate/smt_nodes.hpp"

namespace topolet::simulate {
namespace {

using ::testing::HasSubstr;

const Flags kIsolating = {"--plugins.enable=numa", "--plugins.enable=smt", "--smt.isolate-siblings=exclusive"};

void occupy(SimulatedNode& node, const CpuSet& cpus) {
  if (!cpus.empty()) node.apply(fmt::format(R"({{"op":"occupy","cpus":"{}"}})", cpus.to_string()));
}

/// All CPUs of the nodes that have one of the `whole` cores, but for these; one CPU of each core elsewhere. So the
/// nodes with whole cores have the fewest CPUs left.
CpuSet all_but_whole_cores(SimulatedNode& node, const std::vector<std::size_t>& whole) {
  const Snapshot snapshot = node.snapshot();
  const topology::Topology& topology = *snapshot.topology;
  CpuSet left;
  for (const std::size_t core : whole) left |= topology.cores[core];
  const NodeSet nodes = topology.nodes_of(left);
  CpuSet cpus;
  for (const CpuSet& core : topology.cores) {
    if (!topology.nodes_of(core).is_subset_of(nodes)) {
      cpus.insert(core.first());
    } else {
      cpus |= core - left;
    }
  }
  return cpus;
}

/// The CPUs on cores of the nodes of which all CPUs are in the pool.
std::size_t on_whole_cores(const topology::Topology& topology, const CpuSet& pool, unsigned nodes) {
  std::size_t cpus = 0;
  for (const CpuSet& core : topology.cores) {
    const std::uint32_t node = topology.pu(core.first())->node;
    if (((nodes >> node) & 1U) != 0 && core.is_subset_of(pool)) cpus += core.size();
  }
  return cpus;
}

/// How many nodes isolation takes on cores of two threads; nothing if it is impossible.
std::optional<std::size_t> fewest_nodes(const Snapshot& snapshot, std::size_t cpus, std::size_t min_shared) {
  const CpuSet& pool = snapshot.ledger.pool;
  if (pool.size() < min_shared + (cpus + 1) / 2 * 2) return std::nullopt;
  std::optional<std::size_t> fewest;
  for (unsigned nodes = 1; nodes < 1U << snapshot.topology->nodes.size(); ++nodes) {
    const auto count = static_cast<std::size_t>(std::popcount(nodes));
    if (on_whole_cores(*snapshot.topology, pool, nodes) < cpus) continue;
    fewest = std::min(fewest.value_or(count), count);
  }
  return fewest;
}

TEST(SmtWide, IsolatesOnTheFewestNodesWhereverSomeNodesAllowIt) {
  std::size_t wide = 0;
  for (const char* machine : {"pack:2 numa:3 core:3 pu:2", "numa:6 core:2 pu:2(indexes=12*2:1*12)"}) {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
      std::mt19937_64 random(seed);
      const std::size_t min_shared = random() % 3;
      SimulatedNode node(machine, [&] {
        Flags flags = kIsolating;
        flags.push_back(fmt::format("--placement.min-shared-cpus={}", min_shared));
        return flags;
      }());
      CpuSet taken;
      for (const std::uint32_t cpu : node.snapshot().topology->online) {
        if (random() % 4 == 0) taken.insert(cpu);
      }
      occupy(node, taken);
      const Snapshot before = node.snapshot();
      const std::size_t cpus = 1 + random() % 9;
      const OperationResult result = run(node, "isolated", "guaranteed", static_cast<int>(1000 * cpus));
      const std::optional<std::size_t> expected = fewest_nodes(before, cpus, min_shared);
      SCOPED_TRACE(fmt::format("{}, seed {}: {} CPUs, taken {}: {} on {}", machine, seed, cpus, taken.to_string(),
                               result.reason, result.cpus.to_string()));
      CpuSet held = result.cpus | result.withheld;
      bool is_isolated = !result.cpus.empty();
      for (const CpuSet& core : before.topology->cores) {
        is_isolated = is_isolated && (!core.intersects(result.cpus) || core.is_subset_of(held));
      }
      ASSERT_EQ(is_isolated, expected.has_value());
      if (!expected) continue;
      ASSERT_EQ(before.topology->nodes_of(result.cpus).size(), *expected);
      wide += *expected >= 3 ? 1 : 0;
    }
  }
  EXPECT_GT(wide, 10U);
}

TEST(SmtWide, IsolatesOverFourFarNodesRatherThanNotAtAll) {
  SimulatedNode node("pack:2 numa:4 core:9 pu:2", kIsolating);
  // One core of nodes 0, 1, 4 and 5; each node has room for the container without isolation.
  CpuSet taken;
  for (std::uint32_t core = 0; core < 72; ++core) {
    if (core != 0 && core != 9 && core != 36 && core != 45) taken.insert(2 * core);
  }
  occupy(node, taken);
  const OperationResult result = run(node, "isolated", "guaranteed", 8000);
  EXPECT_EQ(result.cpus.to_string(), "0-1,18-19,72-73,90-91") << result.reason;
}

constexpr const char* kManyNodes = "pack:4 numa:4 core:4 pu:2";

TEST(SmtWide, FindsTheNodesWithWholeCoresAmongMany) {
  SimulatedNode node(kManyNodes, kIsolating);
  // Nodes 2, 7 and 12 have two cores each, 5 and 13 one.
  occupy(node, all_but_whole_cores(node, {8, 9, 20, 28, 29, 48, 49, 52}));
  const OperationResult four = run(node, "four", "guaranteed", 8000);
  EXPECT_EQ(four.cpus.to_string(), "16-19,56-59");
  EXPECT_THAT(four.reason, HasSubstr("fit on nodes 2,7 "));
  const OperationResult odd = run(node, "odd", "guaranteed", 5000);
  EXPECT_EQ((odd.cpus | odd.withheld).to_string(), "96-99,104-105") << "of one package";
  EXPECT_THAT(odd.reason, HasSubstr("fit on nodes 12-13 "));
}

TEST(SmtWide, PrefersNearNodesWithWholeCores) {
  SimulatedNode node(kManyNodes, kIsolating);
  // Node 1 has two cores, node 9 of another package and node 11 one each, as has node 3 of the same package.
  occupy(node, all_but_whole_cores(node, {4, 5, 12, 36, 44}));
  EXPECT_THAT(run(node, "three", "guaranteed", 6000).reason, HasSubstr("fit on nodes 1,3 "));
}

TEST(SmtWide, RoundsUpOnFewNodesAmongMany) {
  SimulatedNode node(kManyNodes, {"--plugins.enable=numa", "--plugins.enable=smt", "--numa.full-pcpus-only=true"});
  occupy(node, all_but_whole_cores(node, {8, 9, 20, 28, 29, 48, 49, 52}));
  const OperationResult result = run(node, "odd", "guaranteed", 7000);
  EXPECT_EQ((result.cpus | result.withheld).to_string(), "16-19,56-59");
  EXPECT_THAT(result.reason, HasSubstr("fit on nodes 2,7 "));
}

}  // namespace
}  // namespace topolet::simulate
