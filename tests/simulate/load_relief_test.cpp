// The load plugin in the engine: where containers go by what is measured, and which of them leave.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "store/database.hpp"
#include "tests/simulate/simulated_node.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::simulate {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

const CpuSet kNode0OfTwo = CpuSet::range(0, 3);
const CpuSet kNode1OfTwo = CpuSet::range(4, 7);

std::string measured(const std::string& pod, int milli) {
  return fmt::format(R"({{"op":"load","pod":"{}","container":"main","cpu_milli":{}}})", pod, milli);
}
std::string can_do(int node, int milli) {
  return fmt::format(R"({{"op":"load","node":{},"effective_milli":{}}})", node, milli);
}
std::string let_pass(int seconds) { return fmt::format(R"({{"op":"clock","advance_s":{}}})", seconds); }

/// Two nodes of four CPUs with the plugins numa and load.
class LoadReliefTest : public ::testing::Test {
 protected:
  void begin(const std::string& machine = "node:2(memory=64GB) core:4 pu:1", std::vector<std::string> flags = {}) {
    flags.insert(flags.begin(), {"--plugins.enable=numa", "--plugins.enable=load"});
    node_ = std::make_unique<SimulatedNode>(machine, flags, SimulationOptions{.state_dir = directory_.path()});
  }
  OperationResult apply(const std::string& line) {
    OperationResult result = node_->apply(line);
    EXPECT_NE(result.outcome, "error") << line << ": " << result.reason;
    return result;
  }
  CpuSet runs_on(const std::string& pod) {
    for (const RunningContainer& one : node_->runtime().running()) {
      if (one.pod == pod) return one.cpus;
    }
    return {};
  }
  /// As it was told last; empty if it never was.
  std::string memory_high_of(const std::string& pod) {
    for (const RunningContainer& one : node_->runtime().running()) {
      const auto high = one.files.find("memory.high");
      if (one.pod == pod && high != one.files.end()) return high->second;
    }
    return "";
  }
  std::vector<std::string> moves() const {
    auto database = store::Database::open(directory_.path() / "state.db", store::Database::Access::kReadOnly);
    std::vector<std::string> all;
    auto statement =
        database->prepare("SELECT reason FROM decided WHERE event = 're-placed' ORDER BY decision", "read");
    while (*statement->next()) all.push_back(statement->text(0));
    return all;
  }

  std::int64_t rows(const std::string& event) const {
    auto database = store::Database::open(directory_.path() / "state.db", store::Database::Access::kReadOnly);
    return *database->integer("SELECT count(*) FROM decided WHERE event = '" + event + "'", "read");
  }

  TempDir directory_;
  std::unique_ptr<SimulatedNode> node_;
};

TEST_F(LoadReliefTest, ANewContainerGoesWhereLessIsUsed) {
  begin();
  const CpuSet busy = node_->burstable("a", 100).cpus;
  apply(measured("a", 3000));
  EXPECT_FALSE(node_->burstable("b", 1000).cpus.intersects(busy));
  apply(R"({"op":"load","pod":"a","container":"main","known":false})");
  EXPECT_THAT(node_->burstable("c", 1000).reason, ::testing::Not(HasSubstr("shared CPUs here are used")));
}

TEST_F(LoadReliefTest, AContainerLeavesANodeThatIsUsedUp) {
  begin();
  std::vector<std::string> at_first;
  for (const std::string pod : {"a", "b", "c", "d"}) {
    if (node_->burstable(pod, 900).cpus == kNode0OfTwo) at_first.push_back(pod);
  }
  ASSERT_GE(at_first.size(), 2U);
  for (const std::string pod : {"a", "b", "c", "d"}) apply(measured(pod, 100));
  for (const std::string& pod : at_first) apply(measured(pod, static_cast<int>(3900 / at_first.size())));
  apply(let_pass(58));
  EXPECT_THAT(moves(), IsEmpty());
  apply(let_pass(20));
  ASSERT_EQ(moves().size(), 1U);
  EXPECT_THAT(moves().front(), HasSubstr("plugin load requested a move: class LS"));
  int left = 0;
  for (const std::string& pod : at_first) left += runs_on(pod) == kNode1OfTwo ? 1 : 0;
  EXPECT_EQ(left, 1);
  apply(let_pass(1800));
  EXPECT_EQ(moves().size(), 1U) << "both nodes are calm";
}

/// Decisions that read no load name no sample, and samples that no decision read are not stored.
TEST_F(LoadReliefTest, DecisionsNameTheSampleThatTheyWereMadeBy) {
  begin();
  const auto column = [this](const std::string& query) {
    auto database = store::Database::open(directory_.path() / "state.db", store::Database::Access::kReadOnly);
    std::vector<std::string> all;
    auto statement = database->prepare(query.c_str(), "read");
    while (*statement->next()) all.push_back(statement->text(0));
    return all;
  };
  const auto samples = [&column] {
    return column(
        "SELECT d.pod_uid || ' ' || l.sample FROM decided d JOIN decided_load l ON l.decision = d.decision "
        "WHERE d.event = 'placed' ORDER BY d.decision");
  };
  node_->burstable("a", 100);
  EXPECT_THAT(samples(), IsEmpty()) << "nothing is measured";
  apply(measured("a", 700));
  node_->burstable("b", 100);
  apply(measured("b", 0));
  apply(measured("a", 1234));
  node_->burstable("c", 100);
  node_->burstable("d", 100);
  EXPECT_THAT(samples(), ::testing::ElementsAre("b 1", "c 2", "d 2")) << "one that is the same is stored once";
  const std::vector<std::string> stored = column("SELECT load FROM load_sample ORDER BY sample");
  ASSERT_EQ(stored.size(), 2U);
  EXPECT_THAT(stored[0], HasSubstr("700"));
  EXPECT_THAT(stored[1], HasSubstr("1234"));
  for (int milli = 100; milli < 1000; milli += 100) apply(measured("a", milli));
  EXPECT_EQ(column("SELECT sample FROM load_sample").size(), 2U);
}

TEST_F(LoadReliefTest, DecisionsThatReadNoLoadNameNone) {
  node_ = std::make_unique<SimulatedNode>("node:2(memory=64GB) core:4 pu:1",
                                          std::vector<std::string>{"--plugins.enable=numa"},
                                          SimulationOptions{.state_dir = directory_.path()});
  node_->burstable("a", 100);
  apply(measured("a", 700));
  node_->burstable("b", 100);
  auto database = store::Database::open(directory_.path() / "state.db", store::Database::Access::kReadOnly);
  EXPECT_EQ(*database->integer("SELECT count(*) FROM load_sample", "read"), 0);
  EXPECT_EQ(*database->integer("SELECT count(*) FROM decided_load", "read"), 0);
}

TEST_F(LoadReliefTest, OldValuesMoveNobody) {
  begin();
  node_->burstable("a", 900);
  node_->burstable("b", 900);
  for (const std::string pod : {"a", "b"})
    apply(fmt::format(R"({{"op":"load","pod":"{}","container":"main","cpu_milli":3900,"age_ms":6000}})", pod));
  apply(let_pass(600));
  EXPECT_THAT(moves(), IsEmpty());
}

/// Loads that are made up: no container leaves a node to which it has come because of its load, and no node loses more
/// than one a minute.
TEST_F(LoadReliefTest, NobodyGoesBackAndForth) {
  std::size_t moved = 0;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&random](int end) { return static_cast<int>(random() % static_cast<std::uint64_t>(end)); };
    node_ = std::make_unique<SimulatedNode>("node:4(memory=64GB) core:4 pu:1",
                                            std::vector<std::string>{"--plugins.enable=numa", "--plugins.enable=load"});
    std::map<std::string, std::vector<std::uint32_t>> places;
    for (int i = 0; i < 10; ++i) {
      const std::string pod = fmt::format("p{}", i);
      if (node_->burstable(pod, 300 + 100 * below(8)).outcome != "placed") continue;
      places[pod] = {runs_on(pod).first() / 4};
    }
    for (int minute = 0; minute < 60; ++minute) {
      if (minute % 5 == 0) {
        for (const auto& [pod, nodes] : places) apply(measured(pod, below(2500)));
        for (int node = 0; node < 4; ++node) apply(can_do(node, 1000 + below(3001)));
      }
      std::map<std::uint32_t, int> lost;
      apply(let_pass(60));
      for (auto& [pod, nodes] : places) {
        const std::uint32_t at = runs_on(pod).first() / 4;
        if (at == nodes.back()) continue;
        ++lost[nodes.back()];
        ++moved;
        EXPECT_EQ(std::count(nodes.begin(), nodes.end(), at), 0) << "seed " << seed << ": " << pod << " is back";
        nodes.push_back(at);
      }
      for (const auto& [node, count] : lost) EXPECT_LE(count, 1) << "seed " << seed << ", minute " << minute;
    }
  }
  EXPECT_GT(moved, 2U) << "the loads are such that some have to leave";
}

/// On both nodes.
TEST_F(LoadReliefTest, BestEffortGivesWay) {
  begin("node:2(memory=64GB) core:4 pu:1", {"--load.besteffort-percent=70"});
  node_->burstable("a", 1000);
  node_->besteffort("x");
  ASSERT_EQ(runs_on("x").size(), 8U);
  apply(measured("a", 2100));
  apply(measured("x", 3000));
  apply(let_pass(2));
  EXPECT_EQ(runs_on("x").size(), 3U) << "70 % of 8 less 2.1";
  const OperationResult another = node_->besteffort("y");
  EXPECT_EQ(another.cpus, runs_on("x")) << "one set for all";
  apply(R"({"op":"restart"})");
  apply(let_pass(2));
  EXPECT_EQ(runs_on("x").size(), 3U);
  apply(measured("a", 0));
  apply(let_pass(2));
  EXPECT_EQ(runs_on("x").size(), 4U);
  apply(let_pass(7));
  EXPECT_EQ(runs_on("x").size(), 4U) << "one step in ten seconds";
  apply(let_pass(60));
  EXPECT_EQ(runs_on("x").size(), 5U);
  EXPECT_TRUE(runs_on("y").is_subset_of(runs_on("x"))) << "of the set, what is of its node";
  EXPECT_EQ(rows("narrowed"), 1) << "x; y has come later";
  for (const std::string pod : {"a", "x"})
    apply(fmt::format(R"({{"op":"load","pod":"{}","container":"main","known":false}})", pod));
  apply(let_pass(2));
  EXPECT_EQ(runs_on("x").size(), 8U) << "what is used is not known any more";
}

TEST_F(LoadReliefTest, BestEffortGivesWayToNobodyWhereThatIsOff) {
  begin("node:2(memory=64GB) core:4 pu:1", {"--load.besteffort-percent=0"});
  node_->burstable("a", 1000);
  node_->besteffort("x");
  apply(measured("a", 2100));
  apply(let_pass(60));
  EXPECT_EQ(runs_on("x").size(), 8U);
}

/// Of 128 GB.
TEST_F(LoadReliefTest, BestEffortSharesTheMemoryThatIsLeftOver) {
  const std::string kBytes = R"("memory_request":17179869184)";
  begin("node:2(memory=68719476736) core:4 pu:1", {"--load.besteffort-memory=50"});
  apply(R"({"op":"run_pod","pod":"a","qos":"burstable"})");
  apply(R"({"op":"create","pod":"a","container":"main","cpu_request_milli":1000,)" + kBytes + "}");
  node_->besteffort("x");
  apply(let_pass(2));
  EXPECT_EQ(memory_high_of("x"), std::to_string(49152LL << 20)) << "half of 128 GiB less 16";
  EXPECT_EQ(memory_high_of("a"), "");
  node_->besteffort("y");
  apply(let_pass(12));
  EXPECT_EQ(memory_high_of("x"), std::to_string(24576LL << 20));
  EXPECT_EQ(memory_high_of("y"), std::to_string(24576LL << 20));
  EXPECT_EQ(rows("narrowed"), 3) << "x twice, y once";
  apply(R"({"op":"restart"})");
  apply(let_pass(12));
  EXPECT_EQ(memory_high_of("x"), std::to_string(24576LL << 20));
  EXPECT_EQ(rows("narrowed"), 3);
}

/// The exclusive ones have theirs alone, whoever gives way; what is narrowed stays in the pool.
TEST_F(LoadReliefTest, BestEffortGivesWayInThePoolOnly) {
  begin();
  node_->burstable("a", 1000);
  node_->besteffort("x");
  apply(measured("a", 2100));
  apply(let_pass(2));
  const CpuSet own = node_->guaranteed("g", 2).cpus;
  ASSERT_EQ(own.size(), 2U);
  for (int second = 0; second < 30; ++second) {
    apply(let_pass(1));
    EXPECT_FALSE(runs_on("x").intersects(own));
    EXPECT_FALSE(runs_on("x").empty());
  }
  EXPECT_EQ(runs_on("x").size(), 2U) << "65 % of 6 less 2.1, and two at least";
}

TEST_F(LoadReliefTest, LseKeepsTheRestOfItsLastCore) {
  begin("node:2(memory=64GB) core:4 pu:2", {"--placement.exclusive-namespaces=trusted"});
  const auto create = [this](const std::string& pod, const std::string& name_space) {
    apply(fmt::format(R"({{"op":"run_pod","pod":"{}","namespace":"{}","qos":"guaranteed",)"
                      R"("annotations":{{"topolet.io/class":"LSE"}}}})",
                      pod, name_space));
    return apply(fmt::format(R"({{"op":"create","pod":"{}","container":"main","cpu_request_milli":3000,)"
                             R"("cpu_limit_milli":3000,"memory_request":1048576,"memory_limit":1048576}})",
                             pod));
  };
  const OperationResult trusted = create("e", "trusted");
  EXPECT_EQ(trusted.cpus.size(), 3U);
  EXPECT_EQ(trusted.withheld.size(), 1U);
  const OperationResult other = create("f", "other");
  EXPECT_EQ(other.withheld.size(), 0U);
  EXPECT_THAT(other.reason, HasSubstr("placement.exclusive-namespaces"));
}

}  // namespace
}  // namespace topolet::simulate
