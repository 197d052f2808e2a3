// Containers that share CPUs and need more of them than their nodes have.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/placement/reason_codes.hpp"
#include "store/database.hpp"
#include "tests/simulate/simulated_node.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::simulate {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const CpuSet kNode0 = CpuSet::range(0, 3);
const CpuSet kNode1 = CpuSet::range(4, 7);

std::string uses(const std::string& pod, int milli, int psi_permille = 0) {
  return fmt::format(R"({{"op":"load","pod":"{}","container":"main","cpu_milli":{},"psi_some_permille":{}}})", pod,
                     milli, psi_permille);
}
std::string time_passes(int seconds) { return fmt::format(R"({{"op":"clock","advance_s":{}}})", seconds); }

/// Two pods that share CPUs, each on a node of its own.
class SoftHomeTest : public ::testing::Test {
 protected:
  void begin(std::vector<std::string> flags = {"--numa.shared-home=soft"}) {
    flags.insert(flags.begin(), "--plugins.enable=numa");
    node_ = std::make_unique<SimulatedNode>("node:2(memory=64GB) core:4 pu:1", flags,
                                            SimulationOptions{.state_dir = directory_.path()});
    home_ = node_->burstable("a", 1500).cpus;
    other_ = node_->burstable("b", 1000).cpus;
    ASSERT_TRUE(home_ == kNode0 || home_ == kNode1) << home_.to_string();
    ASSERT_FALSE(home_.intersects(other_));
  }
  OperationResult apply(const std::string& line) {
    OperationResult result = node_->apply(line);
    EXPECT_NE(result.outcome, "error") << line << ": " << result.reason;
    return result;
  }
  /// Lets a press its home while b uses nothing.
  void press() {
    apply(uses("a", 3900));
    apply(uses("b", 0));
    apply(time_passes(12));
  }
  CpuSet runs_on(const std::string& pod) {
    for (const RunningContainer& one : node_->runtime().running()) {
      if (one.pod == pod) return one.cpus;
    }
    return {};
  }
  std::vector<std::string> rows() const {
    auto database = store::Database::open(directory_.path() / "state.db", store::Database::Access::kReadOnly);
    std::vector<std::string> all;
    auto statement = database->prepare(
        "SELECT event || ' ' || pod_uid || ' ' || reason_code || ' ' || within FROM decided "
        "WHERE event IN ('widened', 'narrowed') ORDER BY decision",
        "read");
    while (*statement->next()) all.push_back(statement->text(0));
    return all;
  }

  TempDir directory_;
  std::unique_ptr<SimulatedNode> node_;
  CpuSet home_;
  CpuSet other_;
};

TEST_F(SoftHomeTest, IsStrictByDefault) {
  begin({});
  press();
  apply(time_passes(60));
  EXPECT_EQ(runs_on("a"), home_);
  EXPECT_THAT(rows(), IsEmpty());
}

TEST_F(SoftHomeTest, WidensAndNarrows) {
  begin();
  apply(uses("a", 3900));
  apply(uses("b", 0));
  apply(time_passes(9));
  EXPECT_EQ(runs_on("a"), home_);
  const OperationResult widened = apply(time_passes(3));
  ASSERT_EQ(widened.changed.size(), 1U);
  EXPECT_EQ(widened.changed[0].pod, "a");
  EXPECT_THAT(widened.changed[0].reason, HasSubstr("it may also run on CPUs"));
  EXPECT_EQ(runs_on("a").size(), 7U);
  EXPECT_EQ(runs_on("b"), other_);
  apply(uses("a", 1000));
  apply(time_passes(12));
  EXPECT_EQ(runs_on("a"), home_);
  EXPECT_THAT(rows(), ElementsAre("widened a home-pressed 0-3,5-7", "narrowed a home-relaxed 0-3"));
}

TEST_F(SoftHomeTest, GivesBackWhatTheOthersNeed) {
  begin();
  press();
  apply(time_passes(10));
  apply(uses("b", 4000, 500));
  apply(time_passes(1));
  EXPECT_EQ(runs_on("a"), home_);
}

TEST_F(SoftHomeTest, LeavesCpusThatAreGivenExclusively) {
  begin();
  press();
  ASSERT_EQ(runs_on("a").size(), 7U);
  const OperationResult placed = node_->guaranteed("x", 3);
  ASSERT_EQ(placed.outcome, "placed") << placed.reason;
  EXPECT_FALSE(runs_on("a").intersects(placed.cpus));
  EXPECT_FALSE(runs_on("b").intersects(placed.cpus));
  EXPECT_FALSE(runs_on("a").empty());
}

/// As it was before the daemon was killed, and it goes on from there.
TEST_F(SoftHomeTest, OutlivesARestart) {
  begin();
  press();
  const CpuSet widened = runs_on("a");
  ASSERT_EQ(widened.size(), 7U);
  apply(R"({"op":"restart"})");
  apply(time_passes(60));
  EXPECT_EQ(runs_on("a"), widened);
  apply(uses("a", 100));
  apply(time_passes(12));
  EXPECT_EQ(runs_on("a"), home_);
  apply(R"({"op":"restart"})");
  apply(time_passes(60));
  EXPECT_EQ(runs_on("a"), home_);
  EXPECT_EQ(rows().size(), 2U);
}

TEST_F(SoftHomeTest, OutlivesARestartBetweenAnyTwoSteps) {
  const auto play = [this](int restart_at) {
    begin();
    int step = 0;
    const auto next = [&](const std::string& line) {
      apply(line);
      if (step++ == restart_at) apply(R"({"op":"restart"})");
    };
    next(uses("b", 0));
    next(uses("a", 3900));
    for (int i = 0; i < 4; ++i) next(time_passes(7));
    next(uses("b", 2500));
    for (int i = 0; i < 4; ++i) next(time_passes(7));
    EXPECT_EQ(runs_on("a").size(), 4U) << "restart after step " << restart_at;
    next(uses("b", 0));
    for (int i = 0; i < 4; ++i) next(time_passes(7));
    EXPECT_EQ(runs_on("a").size(), 7U) << "restart after step " << restart_at;
    next(uses("a", 500));
    for (int i = 0; i < 4; ++i) next(time_passes(7));
    EXPECT_EQ(runs_on("a"), home_) << "restart after step " << restart_at;
    EXPECT_EQ(runs_on("b"), other_);
    const Snapshot snapshot = node_->snapshot();
    for (const ContainerSnapshot& container : snapshot.containers)
      EXPECT_EQ(container.cpus, runs_on(container.key.pod_uid));
    node_.reset();
    std::filesystem::remove_all(directory_.path());
    std::filesystem::create_directory(directory_.path());
    return step;
  };
  const int steps = play(-1);
  for (int at = 0; at < steps; ++at) play(at);
}

TEST_F(SoftHomeTest, NarrowsWhatIsNotMeasuredAnyMore) {
  begin();
  press();
  apply(R"({"op":"load","pod":"a","container":"main","known":false})");
  apply(time_passes(29));
  EXPECT_EQ(runs_on("a").size(), 7U);
  apply(time_passes(3));
  EXPECT_EQ(runs_on("a"), home_);
}

TEST_F(SoftHomeTest, IsStrictWherePoliciesSaySo) {
  for (const char* flag : {"--numa.policy=restricted", "--numa.policy=single-numa-node"}) {
    begin({"--numa.shared-home=soft", flag});
    press();
    EXPECT_EQ(runs_on("a"), home_) << flag;
    node_.reset();
    std::filesystem::remove_all(directory_.path());
    std::filesystem::create_directory(directory_.path());
  }
}

TEST_F(SoftHomeTest, IsStrictForAPodThatSaysSo) {
  begin();
  apply(R"({"op":"run_pod","pod":"p","qos":"burstable","annotations":{"topolet.io/numa-policy":"restricted"}})");
  const OperationResult placed = apply(R"({"op":"create","pod":"p","container":"main","cpu_request_milli":500})");
  apply(uses("a", 0));
  apply(uses("b", 0));
  apply(uses("p", 3900));
  apply(time_passes(30));
  EXPECT_EQ(runs_on("p"), placed.cpus);
}

TEST_F(SoftHomeTest, SaysWhatIsWrongWithALine) {
  begin();
  EXPECT_EQ(node_->apply(R"({"op":"load","node":7,"effective_milli":1000})").reason, "the machine has no node 7");
  EXPECT_EQ(node_->apply(R"({"op":"load","pod":"z","container":"main","cpu_milli":1})").reason, "pod z is not running");
  EXPECT_EQ(apply(R"({"op":"load","node":1,"effective_milli":1000})").outcome, "ok");
  for (const char* line :
       {R"({"op":"load"})", R"({"op":"load","node":1})", R"({"op":"load","pod":"a","container":"main"})",
        R"({"op":"load","pod":"a","cpu_milli":1})", R"({"op":"load","node":1,"effective_milli":1,"pod":"a"})",
        R"({"op":"load","pod":"a","container":"main","cpu_milli":1,"effective_milli":1})"}) {
    EXPECT_FALSE(parse_operation(line)) << line;
  }
}

}  // namespace
}  // namespace topolet::simulate
