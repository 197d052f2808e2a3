// Containers that do not leave CPUs, and whoever wants these alone.
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

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string stuck_line(const std::string& pod, bool ends = false) {
  return fmt::format(R"({{"op":"stuck","pod":"{}","container":"main","ends":{}}})", pod, ends);
}
std::string held_at(const std::string& pod, const std::string& cpus) {
  return fmt::format(R"({{"op":"cpuset","pod":"{}","container":"main","cpus":"{}","again":true}})", pod, cpus);
}
std::string seconds_pass(int seconds) { return fmt::format(R"({{"op":"clock","advance_s":{}}})", seconds); }

/// numa keeps a container that shares CPUs on one node of the two.
class StuckTest : public ::testing::Test {
 protected:
  explicit StuckTest(const std::string& machine = "node:2(memory=64GB) core:4 pu:1")
      : node_(machine, {"--plugins.enable=numa"}, {.state_dir = directory_.path()}) {}

  std::vector<std::string> rows(const std::string& sql) const {
    auto database = store::Database::open(directory_.path() / "state.db", store::Database::Access::kReadOnly);
    std::vector<std::string> all;
    auto statement = database->prepare(sql, "read");
    while (*statement->next()) all.push_back(statement->text(0));
    return all;
  }
  std::vector<std::string> stuck_rows() const {
    return rows("SELECT pod_uid || ' ' || reason_code FROM decided WHERE event = 'stuck' ORDER BY decision");
  }
  OperationResult again(const std::string& pod, int cpus) {
    return node_.apply(
        fmt::format(R"({{"op":"create","pod":"{}","container":"main","cpu_request_milli":{},"cpu_limit_milli":{},)"
                    R"("memory_request":1048576,"memory_limit":1048576}})",
                    pod, cpus * 1000, cpus * 1000));
  }
  CpuSet runs_on(const std::string& pod) {
    for (const RunningContainer& one : node_.runtime().running()) {
      if (one.pod == pod) return one.cpus;
    }
    return {};
  }

  TempDir directory_;
  SimulatedNode node_;
};

TEST_F(StuckTest, IsGoneAroundByTheCreateThatFindsItOut) {
  EXPECT_EQ(node_.burstable("dind", 1000).cpus, (CpuSet{0, 1, 2, 3}));
  node_.apply(stuck_line("dind"));
  const OperationResult placed = node_.guaranteed("own", 3);
  EXPECT_EQ(placed.outcome, "placed");
  EXPECT_EQ(placed.cpus, (CpuSet{4, 5, 6}));
  EXPECT_EQ(runs_on("dind"), (CpuSet{0, 1, 2, 3}));
  EXPECT_THAT(stuck_rows(), ElementsAre("dind stuck-began"));
  EXPECT_THAT(rows("SELECT pod || ' ' || stuck_on FROM current_placements WHERE stuck_on <> ''"),
              ElementsAre("dind 0-3"));
  EXPECT_THAT(rows("SELECT cause FROM ended"), ElementsAre("neighbours-stuck"));
}

TEST_F(StuckTest, IsNamedToWhomeverItLeavesNothing) {
  node_.burstable("dind", 1000);
  node_.apply(stuck_line("dind"));
  node_.guaranteed("own", 3);
  const OperationResult denied = node_.guaranteed("late", 2);
  EXPECT_EQ(denied.outcome, "denied");
  EXPECT_EQ(denied.reason_code, placement::reason_code::kNeighboursStuck);
  EXPECT_THAT(denied.reason, HasSubstr("default/dind/main runs on CPUs 0-3 and cannot be moved"));
  node_.apply(R"({"op":"restart"})");
  EXPECT_EQ(again("late", 2).outcome, "denied") << "it is stored";
  node_.apply(R"({"op":"exit","pod":"dind","container":"main"})");
  EXPECT_EQ(again("late", 2).outcome, "placed");
  EXPECT_THAT(stuck_rows(), ElementsAre("dind stuck-began", "dind stuck-ended"));
}

TEST_F(StuckTest, IsDeniedByTheCreateThatFindsItOutWhereThereIsNothingElse) {
  node_.guaranteed("big", 4);
  node_.burstable("dind", 1000);
  node_.apply(stuck_line("dind"));
  const OperationResult denied = node_.guaranteed("own", 2);
  EXPECT_EQ(denied.outcome, "denied");
  EXPECT_EQ(denied.reason_code, placement::reason_code::kNeighboursStuck);
}

TEST_F(StuckTest, IsTriedAgainAfterAWhileAndNotAtEachCreate) {
  node_.burstable("dind", 1000);
  node_.apply(stuck_line("dind"));
  node_.guaranteed("own", 3);
  node_.apply(R"({"op":"run_pod","pod":"late","qos":"guaranteed"})");
  for (int i = 0; i < 30; ++i) {
    EXPECT_EQ(again("late", 2).outcome, "denied");
    node_.apply(seconds_pass(30));
  }
  EXPECT_EQ(runs_on("dind"), (CpuSet{0, 1, 2, 3}));
  EXPECT_THAT(stuck_rows(), ElementsAre("dind stuck-began")) << "told once";
  EXPECT_THAT(rows("SELECT json_extract(stuck, '$.trials') FROM allocation WHERE stuck <> ''"),
              ElementsAre(AnyOf("3", "4")));
  node_.apply(stuck_line("dind", true));
  node_.apply(seconds_pass(610));
  EXPECT_THAT(stuck_rows(), ElementsAre("dind stuck-began", "dind stuck-ended"));
  EXPECT_EQ(runs_on("dind"), (CpuSet{0, 1, 2, 3})) << "it got back what it left for the trial";
  EXPECT_EQ(again("late", 2).outcome, "placed");
}

TEST_F(StuckTest, OfTwoBothAreGoneAround) {
  node_.burstable("dind", 1000);
  node_.burstable("virt", 1000);
  node_.apply(stuck_line("dind"));
  node_.apply(stuck_line("virt"));
  const CpuSet taken = runs_on("dind") | runs_on("virt");
  const OperationResult denied = node_.guaranteed("own", 2);
  if (taken.size() == 8) {
    EXPECT_EQ(denied.outcome, "denied");
    EXPECT_THAT(denied.reason, HasSubstr("default/dind/main runs on CPUs"));
    EXPECT_THAT(denied.reason, HasSubstr("default/virt/main runs on CPUs"));
  }
  node_.apply(R"({"op":"remove_pod","pod":"virt"})");
  EXPECT_EQ(again("own", 2).outcome, "placed");
  EXPECT_FALSE(runs_on("own").intersects(runs_on("dind")));
}

TEST_F(StuckTest, ARefusalOrTwoAreNoReason) {
  node_.burstable("dind", 1000);
  node_.apply(R"({"op":"runtime","next":"refuse","call":"own-update"})");
  EXPECT_EQ(node_.guaranteed("own", 3).outcome, "placed");
  EXPECT_THAT(stuck_rows(), ElementsAre());
}

TEST_F(StuckTest, WhoIsOverruledIsGoneAroundToo) {
  node_.besteffort("web");
  node_.apply(held_at("web", "0,5"));
  node_.apply(seconds_pass(30));
  const OperationResult own = node_.guaranteed("own", 3);
  EXPECT_EQ(own.outcome, "placed");
  EXPECT_FALSE(own.cpus.intersects(CpuSet{0, 5}));
  EXPECT_EQ(node_.guaranteed("other", 3).outcome, "placed");
  EXPECT_THAT(rows("SELECT pod || ' ' || mode FROM current_placements ORDER BY pod"),
              ElementsAre("other exclusive", "own exclusive", "web shared"));
  const OperationResult denied = node_.guaranteed("late", 1);
  EXPECT_EQ(denied.outcome, "denied");
  EXPECT_THAT(denied.reason, HasSubstr("default/web/main runs on CPUs 0,5 and is put there by something else"));
  node_.apply(held_at("web", ""));
  node_.apply(seconds_pass(80));
  EXPECT_EQ(again("late", 1).outcome, "placed");
}

class StuckOnHalfTest : public StuckTest {
 protected:
  StuckOnHalfTest() : StuckTest("node:1(memory=64GB) core:8 pu:1") {}
};

/// It would not leave CPUs that it were given besides either.
TEST_F(StuckOnHalfTest, IsGivenNoCpusThatBecomeFree) {
  node_.guaranteed("big", 4);
  node_.burstable("dind", 1000);
  node_.apply(stuck_line("dind"));
  ASSERT_EQ(node_.guaranteed("own", 1).outcome, "denied");
  node_.apply(R"({"op":"remove_pod","pod":"big"})");
  node_.apply(R"({"op":"restart"})");
  const OperationResult placed = node_.guaranteed("late", 3);
  EXPECT_EQ(placed.outcome, "placed") << placed.reason;
  EXPECT_EQ(placed.cpus, (CpuSet{0, 1, 2}));
  EXPECT_THAT(rows("SELECT pod || ' ' || cpus FROM current_placements WHERE pod = 'dind'"), ElementsAre("dind 4-7"));
  EXPECT_THAT(rows("SELECT reason_code FROM decided WHERE event = 're-placed'"), ElementsAre("stuck-kept"));
  node_.apply(stuck_line("dind", true));
  node_.apply(seconds_pass(610));
  EXPECT_THAT(rows("SELECT pod || ' ' || cpus FROM current_placements WHERE pod = 'dind'"), ElementsAre("dind 3-7"));
}

/// It would stay where it is.
TEST_F(StuckTest, IsNotMovedOutOfACrowd) {
  node_.guaranteed("big", 4);
  ASSERT_EQ(node_.burstable("dind", 3000).cpus, (CpuSet{4, 5, 6, 7}));
  node_.apply(stuck_line("dind"));
  ASSERT_EQ(node_.guaranteed("own", 1).outcome, "denied");
  node_.burstable("web", 3000);
  node_.apply(R"({"op":"remove_pod","pod":"big"})");
  node_.apply(seconds_pass(10));
  EXPECT_EQ(runs_on("web"), (CpuSet{0, 1, 2, 3}));
  EXPECT_THAT(rows("SELECT pod_uid FROM decided WHERE reason_code = 'crowded'"), ElementsAre("web"));
}

/// Nothing is known of it when the create comes.
TEST_F(StuckTest, WhoTurnsOutToBeOverruledIsGoneAroundByThatCreate) {
  node_.burstable("web", 1000);
  node_.apply(held_at("web", "0-3"));
  const OperationResult own = node_.guaranteed("own", 3);
  EXPECT_EQ(own.outcome, "placed");
  EXPECT_EQ(own.cpus, (CpuSet{4, 5, 6}));
}

}  // namespace
}  // namespace topolet::simulate
