// Which CPUs of a node set a container with devices gets, with numa and smt beside gpu.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tests/simulate/gpu_decisions.hpp"

namespace topolet::simulate {
namespace {

using testing::HasSubstr;
using testing::Not;

class CpusBesideDevices : public GpuDecisions {
 protected:
  /// Two nodes, 0-7 and 8-15, of cores of two threads; each with a GPU.
  SimulatedNode two_gpus(const std::vector<std::string>& more = {}) const {
    SimulatedNode node = machine("pack:2 numa:1 core:4 pu:2", more);
    node.apply(R"({"op":"device","path":"/dev/nvidia0","kind":"gpu","nodes":"0"})");
    node.apply(R"({"op":"device","path":"/dev/nvidia1","kind":"gpu","nodes":"1"})");
    return node;
  }
};

constexpr const char* kSecond = "\"devices\":[\"/dev/nvidia1\"]";
constexpr const char* kBoth = "\"devices\":[\"/dev/nvidia1\",\"/dev/nvidia0\"]";

TEST_F(CpusBesideDevices, AreTakenFirstWhereTheyAreTooFew) {
  SimulatedNode node = two_gpus({"--gpu.affinity=require"});
  EXPECT_EQ(create(node, "a", kSecond, 7000).cpus, CpuSet::range(8, 14));
  const OperationResult second = create(node, "b", kSecond, 2000);
  EXPECT_EQ(second.cpus, (CpuSet{0, 15}));
  EXPECT_THAT(second.reason, HasSubstr("gpu: nodes 0-1: 1 of 1 GPU is local to 1 of 2 CPUs"));
  EXPECT_EQ(create(node, "c", kSecond, 1000).outcome, "denied");
  SimulatedNode empty = two_gpus();
  EXPECT_EQ(create(empty, "a", kSecond, 10000).cpus, CpuSet::range(8, 15) | CpuSet::range(0, 1));
}

TEST_F(CpusBesideDevices, AreNotSplitOffIfTheyAreToStayTogether) {
  for (const char* const weight : {"1", "4", "100"}) {
    const std::string of_gpu = fmt::format("--plugins.weight.gpu={}", weight);
    SimulatedNode split = two_gpus({of_gpu});
    split.apply(R"({"op":"occupy","cpus":"8-12"})");
    EXPECT_EQ(create(split, "a", kSecond, 6000).cpus, CpuSet::range(13, 15) | CpuSet::range(0, 2));
    SimulatedNode together = two_gpus({of_gpu, "--gpu.split=cpus", "--placement.min-shared-cpus=0"});
    together.apply(R"({"op":"occupy","cpus":"8-12"})");
    const OperationResult placed = create(together, "a", kSecond, 6000);
    EXPECT_EQ(placed.cpus, CpuSet::range(0, 5)) << placed.reason;
    EXPECT_THAT(placed.reason, HasSubstr("split = cpus keeps all CPUs together"));
    EXPECT_EQ(create(together, "b", kSecond, 2000).cpus, (CpuSet{14, 15})) << "there is room beside the device";
    EXPECT_EQ(create(together, "c", kSecond, 3000).cpus.size(), 3U) << "no node holds them";
  }
}

TEST_F(CpusBesideDevices, AreSharedAmongTheNodesOfSeveral) {
  SimulatedNode node = two_gpus();
  EXPECT_EQ(create(node, "a", kBoth, 4000).cpus, (CpuSet{0, 1, 8, 9}));
  EXPECT_EQ(create(node, "b", kBoth, 2000).cpus, (CpuSet{2, 10}));
}

/// Machines of `nodes` nodes of five CPUs, and sixteen GPUs or fewer anywhere on them.
class NodesOfDevices : public GpuDecisions {
 protected:
  /// Takes CPUs, adds devices, asks for all of them, and returns how many less are local than could be.
  std::size_t missed(std::size_t nodes, std::size_t devices, std::mt19937& dice) const {
    SimulatedNode node = machine(fmt::format("pack:2 numa:{} core:5 pu:1", nodes / 2).c_str());
    std::vector<std::size_t> homes(nodes, 0);
    std::string names;
    for (std::size_t i = 0; i < devices; ++i) {
      // Many on the first nodes, few on the last.
      const std::size_t preferred_nodes = std::min({dice() % nodes, dice() % nodes, dice() % nodes});
      ++homes[preferred_nodes];
      node.apply(fmt::format(R"({{"op":"device","path":"/dev/x{}","kind":"gpu","nodes":"{}"}})", i, preferred_nodes));
      names += fmt::format("{}\"/dev/x{}\"", i == 0 ? "" : ",", i);
    }
    if (dice() % 2 == 0) create(node, "other", "", static_cast<int>(1000 * (1 + dice() % 5)));
    const std::size_t cpus = 1 + dice() % 4;
    const auto entries = node.snapshot().ledger.entries;
    const CpuSet taken = entries.empty() ? CpuSet() : entries[0].placement.cpus;
    for (std::size_t i = 0; i < nodes; ++i) {
      const auto first = static_cast<unsigned>(5 * i);
      if ((CpuSet::range(first, first + 4) & taken).size() == 5) homes[i] = 0;
    }
    const OperationResult placed =
        create(node, "p", fmt::format("\"devices\":[{}]", names), static_cast<int>(1000 * cpus));
    std::size_t local = 0;
    const NodeSet on = nodes_of(node, placed);
    for (std::size_t i = 0; i < nodes; ++i) local += on.contains(static_cast<unsigned>(i)) ? homes[i] : 0;
    std::sort(homes.begin(), homes.end(), std::greater<>());
    std::size_t could = 0;
    for (std::size_t i = 0; i < std::min(cpus, nodes); ++i) could += homes[i];
    return could - local;
  }
};

TEST_F(NodesOfDevices, AreThoseOfTheMostDevicesHoweverManyNodes) {
#ifdef TOPOLET_SANITIZED
  constexpr int kTimes = 2;
#else
  constexpr int kTimes = 6;
#endif
  std::mt19937 dice(7);
  for (const std::size_t nodes : {2U, 4U, 6U, 8U}) {
    for (const std::size_t devices : {2U, 5U, 8U, 16U}) {
      for (int times = 0; times < kTimes; ++times) {
        EXPECT_EQ(missed(nodes, devices, dice), 0U) << devices << " devices on " << nodes << " nodes";
      }
    }
  }
}

TEST_F(NodesOfDevices, AreThoseOfTheLastDeviceOfMany) {
  for (const int on_first : {3, 4, 7, 15}) {
    SimulatedNode node = machine("pack:2 numa:2 core:8 pu:1");
    std::string names;
    for (int i = 0; i <= on_first; ++i) {
      node.apply(
          fmt::format(R"({{"op":"device","path":"/dev/x{}","kind":"gpu","nodes":"{}"}})", i, i == on_first ? 1 : 0));
      names += fmt::format("{}\"/dev/x{}\"", i == 0 ? "" : ",", i);
    }
    const OperationResult placed = create(node, "p", fmt::format("\"devices\":[{}]", names), 4000);
    EXPECT_EQ(nodes_of(node, placed), (NodeSet{0, 1})) << on_first << " and one: " << placed.reason;
  }
}

TEST_F(CpusBesideDevices, AreNotTakenFromASharedContainerThatHasNoOthers) {
  SimulatedNode node = two_gpus({"--gpu.affinity=require"});
  create(node, "shared", kSecond, 500);
  const OperationResult all = create(node, "all", kSecond, 8000);
  EXPECT_EQ(all.outcome, "denied");
  EXPECT_THAT(all.reason, HasSubstr("default/shared/main, which shares CPUs, would have none left on node 1"));
}

TEST_F(CpusBesideDevices, AreStillThoseOfAVariableWhenTheContainerIsResizedOrMoved) {
  SimulatedNode node = machine("pack:2 numa:1 core:4 pu:2", {"--gpu.keep-free=true", "--gpu.affinity=require"});
  node.apply(R"({"op":"device","path":"/dev/nvidia0","kind":"gpu","nodes":"1"})");
  node.apply(R"({"op":"device","path":"/dev/nvidia1","kind":"gpu","nodes":"1"})");
  create(node, "a", "\"env\":{\"NVIDIA_VISIBLE_DEVICES\":\"1\"}", 2000);
  node.apply(R"({"op":"update","pod":"a","container":"main","cpu_request_milli":4000,"cpu_limit_milli":4000})");
  const auto held = [&node] { return node.snapshot().ledger.entries.at(0).placement.cpus; };
  EXPECT_EQ(held(), CpuSet::range(8, 11));
  node.apply(R"({"op":"offline","cpus":"9"})");
  EXPECT_EQ(held().size(), 4U);
  EXPECT_TRUE(held().is_subset_of(CpuSet::range(8, 15))) << held().to_string();
}

TEST_F(CpusBesideDevices, AreNoReasonToSpreadACoreThatIsTakenWhole) {
  SimulatedNode node = two_gpus({"--numa.full-pcpus-only=true", "--plugins.enable=smt"});
  const OperationResult core = create(node, "a", kBoth, 2000);
  EXPECT_EQ(core.cpus, (CpuSet{0, 1}));
  EXPECT_THAT(core.reason, HasSubstr("gpu: node 0: 1 of 2 GPUs is local"));
  const OperationResult odd = create(node, "b", kBoth, 3000);
  EXPECT_EQ(odd.cpus.size() + odd.withheld.size(), 4U) << "no more cores than needed: " << odd.cpus.to_string();
}

TEST_F(CpusBesideDevices, ComeInWholeCoresWhereNumaWantsThem) {
  SimulatedNode node = two_gpus({"--numa.full-pcpus-only=true"});
  EXPECT_EQ(create(node, "a", kBoth, 4000).cpus, (CpuSet{0, 1, 8, 9}));
  EXPECT_EQ(create(node, "b", kSecond, 8000).cpus, CpuSet::range(10, 15) | CpuSet::range(2, 3));
}

TEST_F(CpusBesideDevices, GoBeforeIsolationThatIsNotRequired) {
  const std::vector<std::string> isolating = {"--plugins.enable=smt", "--smt.isolate-siblings=exclusive",
                                              "--gpu.affinity=require", "--placement.reserved-cpus=8,10,12,14"};
  std::vector<std::string> required = isolating;
  required.emplace_back("--plugins.required.smt=true");
  SimulatedNode node = two_gpus(isolating);
  const OperationResult placed = create(node, "a", kSecond, 6000);
  EXPECT_EQ(placed.cpus.size(), 6U) << placed.reason;
  EXPECT_EQ((placed.cpus & CpuSet::range(8, 15)), (CpuSet{9, 11, 13, 15})) << placed.reason;
  EXPECT_THAT(placed.reason,
              HasSubstr("dropped: smt: its choice of CPUs was rejected: gpu: affinity = require: with CPUs 0-5 "
                        "no GPU is local, though 1 could be"));
  SimulatedNode strict = two_gpus(required);
  EXPECT_EQ(create(strict, "a", kSecond, 6000).outcome, "denied");
}

TEST_F(CpusBesideDevices, GoBeforeIsolationElsewhere) {
  // Only threads of cores in use are free on node 0; a set of both nodes would promise a local GPU and isolation.
  SimulatedNode node = two_gpus({"--plugins.enable=smt", "--placement.reserved-cpus=0,2,4,6"});
  const OperationResult placed =
      create(node, "a", R"("devices":["/dev/nvidia0"],"annotations":{"topolet.io/smt":"isolate"})", 1000);
  EXPECT_TRUE(placed.cpus.is_subset_of(CpuSet::range(0, 7))) << placed.cpus.to_string() << ' ' << placed.reason;
  EXPECT_THAT(placed.reason, HasSubstr("dropped: smt: "));
  SimulatedNode light =
      two_gpus({"--plugins.enable=smt", "--placement.reserved-cpus=0,2,4,6", "--plugins.weight.gpu=0"});
  EXPECT_TRUE(create(light, "a", R"("devices":["/dev/nvidia0"],"annotations":{"topolet.io/smt":"isolate"})", 1000)
                  .cpus.is_subset_of(CpuSet::range(8, 15)));
}

TEST_F(CpusBesideDevices, AreIsolatedWhereTheyAreOnWholeCores) {
  SimulatedNode node = two_gpus({"--plugins.enable=smt", "--smt.isolate-siblings=exclusive", "--gpu.affinity=require"});
  const OperationResult placed = create(node, "a", kSecond, 9000);
  EXPECT_EQ(placed.cpus, CpuSet::range(8, 15) | CpuSet{0});
  EXPECT_EQ(placed.withheld, CpuSet{1});
}

OperationResult resize(SimulatedNode& node, const std::string& pod, int milli) {
  return node.apply(
      fmt::format(R"({{"op":"update","pod":"{}","container":"main","cpu_request_milli":{},"cpu_limit_milli":{}}})", pod,
                  milli, milli));
}

TEST_F(CpusBesideDevices, StayWhereAContainerGivesSomeBack) {
  SimulatedNode node = machine("pack:4 numa:1 core:2 pu:2", {"--gpu.affinity=require"});
  node.apply(R"({"op":"device","path":"/dev/nvidia0","kind":"gpu","nodes":"0"})");
  node.apply(R"({"op":"device","path":"/dev/nvidia1","kind":"gpu","nodes":"2-3"})");
  ASSERT_EQ(create(node, "a", kBoth, 3000).cpus, (CpuSet{0, 1, 8}));
  const OperationResult resized = resize(node, "a", 2000);
  EXPECT_EQ(resized.cpus, (CpuSet{0, 8})) << resized.reason;
  EXPECT_THAT(resized.reason, HasSubstr("gpu: nodes 0,2: 2 of 2 GPUs are local"));
}

TEST_F(CpusBesideDevices, AreOnTheNodeThatServesAllOfThem) {
  SimulatedNode node = machine("pack:1 numa:3 core:2 pu:1", {"--gpu.affinity=require", "--placement.reserved-cpus=3"});
  node.apply(R"({"op":"device","path":"/dev/nvidia0","kind":"gpu","nodes":"0-1"})");
  node.apply(R"({"op":"device","path":"/dev/nvidia1","kind":"gpu","nodes":"1"})");
  const OperationResult placed = create(node, "a", kBoth, 2000);
  EXPECT_EQ(placed.cpus, (CpuSet{0, 2})) << placed.reason;
}

TEST_F(CpusBesideDevices, AreNoneWhereOnlyHalfCoresAreLeftOfThem) {
  const std::vector<std::string> whole = {"--numa.full-pcpus-only=true", "--plugins.enable=smt",
                                          "--placement.reserved-cpus=8,10,12,14"};
  std::vector<std::string> required = whole;
  required.emplace_back("--gpu.affinity=require");
  SimulatedNode node = two_gpus(whole);
  const OperationResult placed = create(node, "a", kBoth, 4000);
  EXPECT_EQ(placed.cpus, CpuSet::range(0, 3));
  EXPECT_THAT(placed.reason, AllOf(HasSubstr("gpu: node 0: 1 of 2 GPUs is local"), Not(HasSubstr("could be"))));
  SimulatedNode strict = two_gpus(required);
  EXPECT_THAT(
      create(strict, "a", kBoth, 4000).reason,
      HasSubstr("gpu: affinity = require: nodes 0-1: 1 of 2 GPUs is local, the other is at distance 20 (assumed), "
                "no core entirely free on node 1"));
}

TEST_F(GpuDecisions, CountNothingAsLocalToCpusWithoutANode) {
  // The CPUs of its nodes are reserved; it has others.
  const char* const name = "16amd64-8n2c-cpusets.xml";
  const std::string device = R"({"op":"device","path":"/dev/vacc1","kind":"npu","nodes":"1"})";
  SimulatedNode node = machine(name, {"--placement.reserved-cpus=2-3,5-6"});
  node.apply(device);
  const OperationResult placed = create(node, "a", devices("/dev/vacc1"));
  EXPECT_TRUE(nodes_of(node, placed).empty()) << placed.cpus.to_string();
  EXPECT_THAT(placed.reason, HasSubstr("gpu: the CPUs outside any node: no GPU is local, distance unknown; "));
  SimulatedNode strict = machine(name, {"--placement.reserved-cpus=2-3,5-6", "--gpu.affinity=require"});
  strict.apply(device);
  EXPECT_EQ(create(strict, "a", devices("/dev/vacc1")).outcome, "denied");
}

}  // namespace
}  // namespace topolet::simulate
