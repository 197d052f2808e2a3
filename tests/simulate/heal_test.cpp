// Containers that are wider or farther from their devices than they need be come to where they fit.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/simulate/simulated_node.hpp"
#include "tests/simulate/smt_nodes.hpp"

namespace topolet::simulate {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kTwoWideNodes = "pack:2 numa:1 core:8 pu:2";
const std::vector<std::string> kHealAll = {"--plugins.enable=numa", "--plugins.enable=gpu", "--plugins.enable=smt",
                                           "--placement.heal=all", "--placement.make-room=off"};

std::vector<std::string> healing(const std::vector<std::string>& more = {}) {
  std::vector<std::string> flags = kHealAll;
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

OperationResult clock(SimulatedNode& node, int seconds = 1) {
  return node.apply(fmt::format(R"({{"op":"clock","advance_s":{}}})", seconds));
}
OperationResult remove(SimulatedNode& node, const std::string& pod) {
  return node.apply(fmt::format(R"({{"op":"remove_pod","pod":"{}"}})", pod));
}
std::string run_pod(const std::string& pod, const std::string& annotations = "") {
  return fmt::format(R"({{"op":"run_pod","pod":"{}","qos":"guaranteed","annotations":{{{}}}}})", pod, annotations);
}
std::string create(const std::string& pod, int cpus, const std::string& more = "", const char* memory = "4096") {
  return fmt::format(R"({{"op":"create","pod":"{}","container":"main","cpu_request_milli":{},"cpu_limit_milli":{},)"
                     R"("memory_request":{},"memory_limit":{}{}}})",
                     pod, cpus * 1000, cpus * 1000, memory, memory, more);
}

CpuSet told_by_runtime(SimulatedNode& node, const std::string& pod) {
  for (const RunningContainer& container : node.runtime().running()) {
    if (container.pod == pod) return container.cpus;
  }
  return {};
}
std::size_t nodes_of(SimulatedNode& node, const std::string& pod) {
  return node.snapshot().topology->nodes_of(cpus_of(node, pod)).size();
}

/// Both nodes have four CPUs left, and "wide" has six of these.
void crowd_with(SimulatedNode& node, const std::string& annotations = "", const char* memory = "4096") {
  node.guaranteed("a", 12);
  node.guaranteed("b", 12);
  node.apply(run_pod("wide", annotations));
  node.apply(create("wide", 6, "", memory));
  ASSERT_EQ(nodes_of(node, "wide"), 2U);
}

TEST(Heal, BringsAContainerTogetherWhenAnotherLeaves) {
  SimulatedNode node(kTwoWideNodes, healing());
  crowd_with(node);
  remove(node, "a");
  const OperationResult later = clock(node);
  EXPECT_EQ(nodes_of(node, "wide"), 1U);
  EXPECT_EQ(told_by_runtime(node, "wide"), cpus_of(node, "wide"));
  ASSERT_THAT(later.changed, SizeIs(1));
  EXPECT_THAT(later.changed[0].reason, HasSubstr(": 1 node instead of 2; numa: "));
}

/// Whether or not another daemon has begun it.
TEST(Heal, WithdrawsAMoveThatFails) {
  for (const int restart_after_s : {0, 1, 5, 15}) {
    SCOPED_TRACE(restart_after_s);
    SimulatedNode node(kTwoWideNodes, healing());
    crowd_with(node);
    const CpuSet before = cpus_of(node, "wide");
    node.apply(R"({"op":"stuck","pod":"wide","container":"main"})");
    remove(node, "a");
    clock(node);
    ASSERT_NE(cpus_of(node, "wide"), before);
    ASSERT_EQ(told_by_runtime(node, "wide"), before);
    if (restart_after_s > 0) {
      clock(node, restart_after_s - 1);
      node.apply(R"({"op":"restart"})");
    }
    clock(node, 60);
    EXPECT_EQ(cpus_of(node, "wide"), before);
    EXPECT_EQ(told_by_runtime(node, "wide"), before);
  }
}

TEST(Heal, LeavesExclusiveContainersByDefault) {
  SimulatedNode node(kTwoWideNodes, {"--plugins.enable=numa"});
  crowd_with(node);
  remove(node, "a");
  EXPECT_THAT(clock(node, 700).changed, IsEmpty());
}

TEST(Heal, GoesByTheAnnotationOfThePod) {
  SimulatedNode allowed(kTwoWideNodes, {"--plugins.enable=numa", "--placement.make-room=off"});
  crowd_with(allowed, R"("topolet.io/move":"allow")");
  remove(allowed, "a");
  clock(allowed);
  EXPECT_EQ(nodes_of(allowed, "wide"), 1U);
  SimulatedNode never(kTwoWideNodes, healing());
  crowd_with(never, R"("topolet.io/move":"never")");
  remove(never, "a");
  clock(never, 700);
  EXPECT_EQ(nodes_of(never, "wide"), 2U);
}

TEST(Heal, LeavesNoMemoryBehind) {
  // Narrower on a node that it is on.
  SimulatedNode much("pack:3 numa:1(memory=64GB) core:4 pu:1", healing());
  const auto fill = [](SimulatedNode& node) {
    node.guaranteed("a", 3);
    node.guaranteed("b", 3);
    node.guaranteed("c", 4);
    node.apply(run_pod("wide"));
    node.apply(create("wide", 2, "", "1073741824"));
    ASSERT_EQ(nodes_of(node, "wide"), 2U);
  };
  SimulatedNode elsewhere("pack:3 numa:1(memory=64GB) core:4 pu:1", healing({"--placement.min-shared-cpus=0"}));
  fill(elsewhere);
  remove(elsewhere, "c");
  clock(elsewhere, 700);
  EXPECT_EQ(nodes_of(elsewhere, "wide"), 2U) << "its memory would stay on other nodes";
  SimulatedNode migrating("pack:3 numa:1(memory=64GB) core:4 pu:1",
                          healing({"--placement.min-shared-cpus=0", "--placement.memory-migrate=true"}));
  fill(migrating);
  remove(migrating, "c");
  clock(migrating);
  EXPECT_EQ(nodes_of(migrating, "wide"), 1U);
}

TEST(Heal, BringsAContainerToItsDevice) {
  const CpuSet beside = CpuSet::range(0, 7);
  SimulatedNode node("pack:2 numa:1 core:8 pu:1", healing({"--placement.min-shared-cpus=0"}));
  node.apply(R"({"op":"device","path":"/dev/nvidia0","kind":"gpu","nodes":"0"})");
  for (const char* pod : {"x", "y"}) node.guaranteed(pod, 8);
  const char* const on_node_0 = cpus_of(node, "x") == beside ? "x" : "y";
  remove(node, on_node_0 == std::string("x") ? "y" : "x");
  node.apply(run_pod("gpu"));
  node.apply(create("gpu", 4, R"(,"devices":["/dev/nvidia0"])"));
  ASSERT_FALSE(cpus_of(node, "gpu").intersects(beside));
  remove(node, on_node_0);
  const OperationResult later = clock(node);
  EXPECT_TRUE(cpus_of(node, "gpu").is_subset_of(beside));
  ASSERT_THAT(later.changed, SizeIs(1));
  EXPECT_THAT(later.changed[0].reason, HasSubstr(": nearer to its devices; gpu: "));
}

TEST(Heal, BringsAllCpusOfAContainerToItsDevice) {
  SimulatedNode node("pack:2 numa:1 core:8 pu:1", healing({"--placement.min-shared-cpus=0"}));
  node.apply(R"({"op":"device","path":"/dev/nvidia0","kind":"gpu","nodes":"0"})");
  for (const char* pod : {"a", "b"}) node.guaranteed(pod, 6);
  node.apply(run_pod("gpu"));
  node.apply(create("gpu", 3, R"(,"devices":["/dev/nvidia0"])"));
  ASSERT_EQ(nodes_of(node, "gpu"), 2U);
  remove(node, cpus_of(node, "a").contains(8) ? "b" : "a");
  clock(node);
  EXPECT_TRUE(cpus_of(node, "gpu").is_subset_of(CpuSet::range(0, 7)));
}

TEST(Heal, UsesFewerCaches) {
  SimulatedNode node("pack:1 numa:1 l3:4 core:4 pu:1", healing());
  for (const char* pod : {"a", "b", "c", "d"}) node.guaranteed(pod, 3);
  node.guaranteed("apart", 2);
  const auto caches_of = [&node](const std::string& pod) {
    const auto& caches = node.snapshot().topology->l3s;
    const CpuSet cpus = cpus_of(node, pod);
    return std::count_if(caches.begin(), caches.end(), [&](const CpuSet& cache) { return cache.intersects(cpus); });
  };
  ASSERT_EQ(caches_of("apart"), 2);
  remove(node, "b");
  EXPECT_THAT(clock(node, 2).changed, IsEmpty()) << "another one like those would find no cache";
  remove(node, "c");
  EXPECT_THAT(clock(node, 2).changed, SizeIs(1));
  EXPECT_EQ(caches_of("apart"), 1);
}

TEST(Heal, KeepsWholeCoresAndIdleSiblings) {
  SimulatedNode node(kTwoWideNodes, healing({"--numa.full-pcpus-only=true"}));
  crowd_with(node, R"("topolet.io/smt":"isolate")");
  remove(node, "a");
  clock(node, 5);
  for (const ContainerSnapshot& container : node.snapshot().containers) {
    if (container.key.pod_uid != "wide" || container.mode != "exclusive") continue;
    const CpuSet held = container.cpus | container.withheld;
    for (const CpuSet& core : node.snapshot().topology->cores)
      EXPECT_TRUE(core.is_subset_of(held) || !core.intersects(held));
  }
}

TEST(Heal, MakesOnePassNowAndSaysWhatItWouldDo) {
  SimulatedNode node(kTwoWideNodes, healing());
  crowd_with(node);
  remove(node, "a");
  const CpuSet before = cpus_of(node, "wide");
  const OperationResult would = node.apply(R"({"op":"heal","dry_run":true})");
  EXPECT_THAT(would.reason, AllOf(HasSubstr("default/wide/main would move from " + before.to_string()),
                                  HasSubstr("1 node instead of 2")));
  EXPECT_EQ(cpus_of(node, "wide"), before);
  const OperationResult healed = node.apply(R"({"op":"heal"})");
  EXPECT_THAT(healed.reason, HasSubstr("default/wide/main moved from " + before.to_string()));
  EXPECT_EQ(nodes_of(node, "wide"), 1U);
  EXPECT_EQ(node.apply(R"({"op":"heal"})").reason, "");
}

const std::vector<std::string> kShareWhenFull = {"--plugins.enable=numa", "--placement.when-full=share"};

std::string mode_of(SimulatedNode& node, const std::string& pod) {
  for (const ContainerSnapshot& container : node.snapshot().containers) {
    if (container.key.pod_uid == pod && container.phase != "crashed") return container.mode;
  }
  return "none";
}

/// "late" shares as the node was full, and has failed since.
void fail_late(SimulatedNode& node) {
  node.guaranteed("a", 3);
  node.guaranteed("late", 2);
  ASSERT_EQ(mode_of(node, "late"), "shared");
  node.apply(R"({"op":"exit","pod":"late","container":"main","exit_code":1})");
  remove(node, "a");
}

TEST(Heal, PutsWhoSharedWhenTheNodeWasFullFirstInLine) {
  SimulatedNode node("numa:1 core:4 pu:1", kShareWhenFull);
  fail_late(node);
  const OperationResult newcomer = node.guaranteed("new", 3);
  EXPECT_EQ(newcomer.mode, "shared");
  EXPECT_THAT(newcomer.reason, HasSubstr("2 for containers that have waited for CPUs of their own"));
  EXPECT_EQ(node.guaranteed("small", 1).mode, "exclusive") << "one is nobody's";
  EXPECT_EQ(node.apply(create("late", 2)).mode, "exclusive");
}

TEST(Heal, KeepsNobodyInLineForEver) {
  for (const char* end : {R"({"op":"remove_pod","pod":"late"})", R"({"op":"clock","advance_s":310})"}) {
    SimulatedNode node("numa:1 core:4 pu:1", kShareWhenFull);
    fail_late(node);
    node.apply(R"({"op":"restart"})");
    EXPECT_EQ(node.guaranteed("new", 3).mode, "shared");
    remove(node, "new");
    node.apply(end);
    EXPECT_EQ(node.guaranteed("next", 3).mode, "exclusive") << end;
  }
}

/// Pods of all sizes that come and go on a full machine.
class HealChurn {
 public:
  explicit HealChurn(std::uint64_t seed) : random_(seed) {}

  std::vector<std::string> next() {
    static const std::vector<int> kSizes = {1, 1, 2, 2, 3, 4, 4, 6, 8, 10};
    std::vector<std::string> lines;
    const int cpus = kSizes[random_() % kSizes.size()];
    while (used_ + cpus > 60) {
      auto leaves = live_.begin();
      std::advance(leaves, static_cast<std::ptrdiff_t>(random_() % live_.size()));
      lines.push_back(fmt::format(R"({{"op":"remove_pod","pod":"{}"}})", leaves->first));
      used_ -= leaves->second;
      live_.erase(leaves);
    }
    const std::string pod = fmt::format("p{}", ++made_);
    lines.push_back(run_pod(pod));
    lines.push_back(create(pod, cpus));
    live_[pod] = cpus;
    used_ += cpus;
    lines.push_back(fmt::format(R"({{"op":"clock","advance_s":{}}})", 1 + random_() % 60));
    return lines;
  }

 private:
  std::mt19937_64 random_;
  std::map<std::string, int> live_;
  int used_ = 0;
  int made_ = 0;
};

struct Move {
  std::chrono::milliseconds at;
  CpuSet from;
};

TEST(Heal, NeverMovesBackAndForth) {
  std::size_t moves = 0;
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    SimulatedNode node("pack:2 numa:2 l3:2 core:4 pu:2", healing());
    HealChurn churn(seed);
    std::map<std::string, Move> last;
    std::map<std::string, CpuSet> places;
    for (int step = 0; step < 100; ++step) {
      for (const std::string& line : churn.next()) {
        const OperationResult result = node.apply(line);
        for (const MovedContainer& moved : result.changed) {
          ASSERT_TRUE(places.count(moved.pod));
          const CpuSet from = places[moved.pod];
          const auto& topology = *node.snapshot().topology;
          EXPECT_LE(topology.nodes_of(moved.cpus).size(), topology.nodes_of(from).size());
          if (const auto before = last.find(moved.pod); before != last.end()) {
            EXPECT_GE(node.now() - before->second.at, std::chrono::minutes(9));
            EXPECT_NE(moved.cpus, before->second.from) << line;
          }
          last[moved.pod] = {node.now(), from};
          ++moves;
        }
        places.clear();
        for (const ContainerSnapshot& container : node.snapshot().containers)
          places[container.key.pod_uid] = container.cpus;
      }
    }
  }
  EXPECT_GE(moves, 10U) << "this shows little";
}

/// Where everybody is after each second, with or without a daemon that is killed after every line.
std::vector<std::string> places_over_time(std::uint64_t seed, bool restarts) {
  SimulatedNode node("pack:2 numa:2 l3:2 core:4 pu:2", healing());
  HealChurn churn(seed);
  std::vector<std::string> places;
  for (int step = 0; step < 50; ++step) {
    for (const std::string& line : churn.next()) {
      node.apply(line);
      if (restarts) node.apply(R"({"op":"restart"})");
      std::string all;
      for (const ContainerSnapshot& container : node.snapshot().containers)
        all += fmt::format("{} {}; ", container.key.pod_uid, container.cpus.to_string());
      places.push_back(all);
    }
  }
  return places;
}

TEST(Heal, IsTheSameWhereTheDaemonIsKilledAllTheTime) {
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    EXPECT_EQ(places_over_time(seed, true), places_over_time(seed, false)) << seed;
  }
}

}  // namespace
}  // namespace topolet::simulate
