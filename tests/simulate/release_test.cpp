// What topolet takes back before it is uninstalled.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "store/database.hpp"
#include "tests/simulate/simulated_node.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::simulate {
namespace {

using ::testing::HasSubstr;

const CpuSet kAllOfEight = CpuSet::range(0, 7);

/// Two nodes of four CPUs: an exclusive container, a busy one that shares, and two BestEffort ones that are narrowed
/// and whose memory is bound.
class ReleaseTest : public ::testing::Test {
 protected:
  ReleaseTest() {
    node_ = std::make_unique<SimulatedNode>(
        "node:2(memory=68719476736) core:4 pu:1",
        std::vector<std::string>{"--plugins.enable=numa", "--plugins.enable=load", "--load.besteffort-memory=50"},
        SimulationOptions{.state_dir = directory_.path()});
    own_ = node_->guaranteed("g", 2).cpus;
    node_->burstable("a", 1000);
    node_->besteffort("x");
    node_->besteffort("y");
    apply(R"({"op":"load","pod":"a","container":"main","cpu_milli":1500})");
    wait(30);
  }
  OperationResult apply(const std::string& line) {
    OperationResult result = node_->apply(line);
    EXPECT_NE(result.outcome, "error") << line << ": " << result.reason;
    return result;
  }
  void wait(int seconds) { apply(fmt::format(R"({{"op":"clock","advance_s":{}}})", seconds)); }
  RunningContainer running(const std::string& pod) {
    for (const RunningContainer& one : node_->runtime().running()) {
      if (one.pod == pod) return one;
    }
    ADD_FAILURE() << pod << " does not run";
    return {};
  }
  std::string memory_high(const std::string& pod) { return running(pod).files["memory.high"]; }
  std::int64_t audited() const {
    auto database = store::Database::open(directory_.path() / "state.db", store::Database::Access::kReadOnly);
    return *database->integer("SELECT count(*) FROM decided WHERE reason_code = 'released'", "read");
  }

  TempDir directory_;
  std::unique_ptr<SimulatedNode> node_;
  CpuSet own_;
};

TEST_F(ReleaseTest, TakesBackAllButTheCpusets) {
  ASSERT_EQ(own_.size(), 2U);
  ASSERT_EQ(running("x").cpus.size(), 2U);
  ASSERT_EQ(memory_high("x"), std::to_string(32767LL << 20)) << "half of 64 GiB less 1 MiB";
  const OperationResult released = apply(R"({"op":"release"})");
  EXPECT_EQ(released.reason, "2 containers released");
  for (const std::string pod : {"x", "y"}) {
    EXPECT_EQ(running(pod).cpus, kAllOfEight - own_) << pod;
    EXPECT_EQ(memory_high(pod), "max") << pod;
  }
  EXPECT_EQ(running("g").cpus, own_);
}

TEST_F(ReleaseTest, NarrowsNobodyAgainBeforeARestart) {
  apply(R"({"op":"release"})");
  node_->besteffort("z");
  wait(120);
  EXPECT_EQ(running("x").cpus, kAllOfEight - own_);
  EXPECT_EQ(memory_high("x"), "max");
  EXPECT_EQ(memory_high("z"), "");
  EXPECT_EQ(apply(R"({"op":"release"})").reason, "0 containers released");
  apply(R"({"op":"restart"})");
  wait(60);
  EXPECT_EQ(running("x").cpus.size(), 2U);
  EXPECT_NE(memory_high("z"), "");
}

TEST_F(ReleaseTest, GivesEverybodyThePool) {
  const OperationResult released = apply(R"({"op":"release","cpusets":true})");
  for (const std::string pod : {"g", "a", "x", "y"}) EXPECT_EQ(running(pod).cpus, kAllOfEight) << pod;
  EXPECT_EQ(memory_high("x"), "max");
  EXPECT_EQ(audited(), 4);
  wait(600);
  for (const std::string pod : {"g", "a", "x", "y"}) EXPECT_EQ(running(pod).cpus, kAllOfEight) << pod;
}

TEST_F(ReleaseTest, LeavesNewContainersToTheRuntimeThen) {
  apply(R"({"op":"release","cpusets":true})");
  const OperationResult late = node_->guaranteed("late", 2);
  EXPECT_TRUE(running("late").cpus.empty()) << "nobody has said where";
  wait(60);
  EXPECT_EQ(running("a").cpus, kAllOfEight);
  apply(R"({"op":"restart"})");
  wait(60);
  EXPECT_EQ(node_->guaranteed("after", 2).cpus.size(), 2U);
}

TEST_F(ReleaseTest, MakesNobodyExclusiveWhoIsResizedThen) {
  apply(R"({"op":"release","cpusets":true})");
  const OperationResult grown =
      apply(R"({"op":"update","pod":"g","container":"main","cpu_request_milli":3000,"cpu_limit_milli":3000})");
  EXPECT_EQ(grown.mode, "shared");
  EXPECT_EQ(running("g").cpus, kAllOfEight);
  const OperationResult pinned = apply(R"({"op":"update","pod":"g","container":"main","cpuset_cpus":"1-3"})");
  EXPECT_EQ(pinned.mode, "shared") << "the kubelet's CPUs are followed, and nobody else leaves them";
  EXPECT_EQ(running("g").cpus, (CpuSet{1, 2, 3}));
  wait(60);
  for (const std::string pod : {"a", "x", "y"}) EXPECT_EQ(running(pod).cpus, kAllOfEight) << pod;
}

/// Whoever is killed has stored what it has decided before it tells anybody.
TEST_F(ReleaseTest, IsOverAfterAKillToo) {
  apply(R"({"op":"release","cpusets":true})");
  apply(R"({"op":"restart"})");
  EXPECT_EQ(running("g").cpus, kAllOfEight) << "it shares until it is created again";
  wait(60);
  EXPECT_EQ(node_->guaranteed("after", 2).cpus.size(), 2U);
  EXPECT_EQ(running("x").cpus.size(), 2U) << "it gives way again";
}

TEST_F(ReleaseTest, HealsNobodyThen) {
  apply(R"({"op":"release","cpusets":true})");
  EXPECT_THAT(node_->apply(R"({"op":"heal"})").reason, HasSubstr("topolet restart"));
}

}  // namespace
}  // namespace topolet::simulate
