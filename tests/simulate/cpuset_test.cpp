// Another hand than topolet's sets the CPUs of containers.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "store/database.hpp"
#include "tests/simulate/simulated_node.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::simulate {
namespace {

using ::testing::ElementsAre;

std::string hand_on(const std::string& pod, const std::string& cpus, bool again) {
  return fmt::format(R"({{"op":"cpuset","pod":"{}","container":"main","cpus":"{}","again":{}}})", pod, cpus, again);
}
std::string clock_line(int seconds) { return fmt::format(R"({{"op":"clock","advance_s":{}}})", seconds); }

class CpusetTest : public ::testing::Test {
 protected:
  std::vector<std::string> rows(const std::string& sql) const {
    auto database = store::Database::open(directory_.path() / "state.db", store::Database::Access::kReadOnly);
    std::vector<std::string> all;
    auto statement = database->prepare(sql, "read");
    while (*statement->next()) all.push_back(statement->text(0));
    return all;
  }
  std::vector<std::string> events() const {
    return rows(
        "SELECT event || ' ' || pod_uid || ' ' || reason_code FROM decided WHERE event IN ('drift', 'overruled') "
        "ORDER BY decision");
  }
  std::vector<std::string> modes() const {
    return rows("SELECT pod || ' ' || mode FROM current_placements ORDER BY pod");
  }

  TempDir directory_;
  SimulatedNode node_{"node:2 core:4 pu:1", {}, {.state_dir = directory_.path()}};
};

TEST_F(CpusetTest, PutsAContainerBackThatSomebodyHasMovedOnce) {
  node_.guaranteed("trader", 2);
  node_.apply(hand_on("trader", "5", false));
  node_.apply(clock_line(10));
  EXPECT_THAT(events(), ElementsAre("drift trader "));
  EXPECT_THAT(modes(), ElementsAre("trader exclusive"));
}

TEST_F(CpusetTest, TellsAHandThatAnswersEveryRepairOnceAndCallsNothingExclusiveThen) {
  node_.besteffort("web");
  node_.guaranteed("trader", 2);
  node_.guaranteed("other", 2);
  node_.apply(hand_on("web", "0", true));
  const OperationResult seen = node_.apply(clock_line(10));
  EXPECT_THAT(events(), ElementsAre("drift web ", "overruled web overruled-began"));
  EXPECT_THAT(modes(), ElementsAre("other exclusive", "trader overlapped", "web shared"));
  EXPECT_THAT(rows("SELECT pod || seen_on FROM current_placements WHERE overruled_since <> ''"), ElementsAre("web0"));
  ASSERT_EQ(seen.changed.size(), 1U);
  EXPECT_EQ(seen.changed[0].mode, "overlapped");
  node_.apply(clock_line(600));
  node_.apply(R"({"op":"restart"})");
  node_.apply(clock_line(600));
  EXPECT_EQ(events().size(), 2U) << "nothing is said again";
  EXPECT_THAT(modes(), ElementsAre("other exclusive", "trader overlapped", "web shared"));
  node_.apply(hand_on("web", "", false));
  node_.apply(clock_line(20));
  EXPECT_THAT(modes(), ElementsAre("other exclusive", "trader exclusive", "web shared"));
  EXPECT_EQ(events().size(), 2U) << "it has not been so for a minute";
  node_.apply(clock_line(70));
  EXPECT_THAT(events(), ElementsAre("drift web ", "overruled web overruled-began", "overruled web overruled-ended"));
}

/// The other one is there with or without it.
TEST_F(CpusetTest, ARunningContainerIsResizedBesideAnOverruledOne) {
  node_.guaranteed("trader", 2);
  node_.besteffort("web");
  node_.apply(hand_on("web", "0-7", true));
  node_.apply(clock_line(30));
  ASSERT_THAT(modes(), ElementsAre("trader overlapped", "web shared"));
  const OperationResult resized =
      node_.apply(R"({"op":"update","pod":"trader","container":"main","memory_limit":2097152})");
  EXPECT_EQ(resized.outcome, "ok") << resized.reason;
  EXPECT_EQ(resized.cpus, (CpuSet{0, 1}));
}

TEST_F(CpusetTest, TellsOfAnExclusiveContainerThatItIsNot) {
  node_.guaranteed("trader", 2);
  node_.apply(hand_on("trader", "4-7", true));
  node_.apply(clock_line(10));
  EXPECT_THAT(modes(), ElementsAre("trader overruled"));
  EXPECT_EQ(node_.snapshot().containers[0].mode, "overruled");
  node_.apply(R"({"op":"stop","pod":"trader","container":"main"})");
  EXPECT_THAT(events(),
              ElementsAre("drift trader ", "overruled trader overruled-began", "overruled trader overruled-ended"));
}

/// As of a hand that sits where containers are made.
TEST_F(CpusetTest, TellsAHandAtTheCreateAtTheFirstLook) {
  node_.apply(R"({"op":"run_pod","pod":"trader","qos":"guaranteed","resources":{"cpu_request_milli":2000,)"
              R"("cpu_limit_milli":2000,"memory_request":1048576,"memory_limit":1048576}})");
  node_.apply(hand_on("trader", "5", false));
  node_.apply(R"({"op":"create","pod":"trader","container":"main","cpu_request_milli":2000,"cpu_limit_milli":2000,)"
              R"("memory_request":1048576,"memory_limit":1048576})");
  EXPECT_THAT(events(), ElementsAre("overruled trader overruled-began")) << "and no drift";
  ASSERT_EQ(node_.runtime().running().size(), 1U);
  EXPECT_EQ(node_.runtime().running()[0].cpus, node_.snapshot().containers[0].cpus) << "it was repaired at once";
  node_.apply(clock_line(80));
  EXPECT_THAT(events(), ElementsAre("overruled trader overruled-began", "overruled trader overruled-ended"));
  EXPECT_THAT(modes(), ElementsAre("trader exclusive"));
}

constexpr const char* kRunTrader =
    R"({"op":"run_pod","pod":"trader","qos":"guaranteed","resources":{"cpu_request_milli":2000,)"
    R"("cpu_limit_milli":2000,"memory_request":1048576,"memory_limit":1048576}})";
constexpr const char* kCreateTrader =
    R"({"op":"create","pod":"trader","container":"main","cpu_request_milli":2000,"cpu_limit_milli":2000,)"
    R"("memory_request":1048576,"memory_limit":1048576})";

/// The kernel does not do that: it is what its cgroup is set to.
TEST_F(CpusetTest, TellsAHandAtTheCreateThatGivesMostOfTheMachine) {
  node_.apply(kRunTrader);
  node_.apply(hand_on("trader", "1-7", false));
  node_.apply(kCreateTrader);
  EXPECT_THAT(events(), ElementsAre("overruled trader overruled-began")) << "and no drift";
}

TEST_F(CpusetTest, TellsAHandAtAStartWhoseEndNoDaemonHasSeen) {
  int began = 0;
  for (const char* how : {R"("at":"after-answer")", R"("at":"in-flight")", R"("at":"after-answer","repeat":false)",
                          R"("at":"in-flight","repeat":false)"}) {
    SCOPED_TRACE(how);
    node_.apply(kRunTrader);
    node_.apply(hand_on("trader", "5", false));
    node_.apply(fmt::format(R"({{"op":"restart","calls":2,{}}})", how));
    node_.apply(kCreateTrader);
    node_.apply(clock_line(20));
    const std::vector<std::string> told = events();
    EXPECT_EQ(std::count(told.begin(), told.end(), "overruled trader overruled-began"), ++began);
    EXPECT_EQ(std::count(told.begin(), told.end(), "drift trader "), 0);
    node_.apply(R"({"op":"remove_pod","pod":"trader"})");
  }
}

TEST_F(CpusetTest, TellsAHandThatComesBackLongAfterTheRepair) {
  node_.guaranteed("trader", 2);
  node_.apply(hand_on("trader", "5", false));
  node_.apply(clock_line(75));
  EXPECT_THAT(events(), ElementsAre("drift trader "));
  node_.apply(R"({"op":"restart"})");
  node_.apply(hand_on("trader", "5-6", false));
  node_.apply(clock_line(10));
  EXPECT_THAT(events(), ElementsAre("drift trader ", "overruled trader overruled-began"));
}

TEST_F(CpusetTest, ForgetsAHandThatComesOnceADay) {
  node_.guaranteed("trader", 2);
  for (int day = 0; day < 3; ++day) {
    node_.apply(hand_on("trader", "5", false));
    node_.apply(clock_line(25 * 3600));
  }
  EXPECT_THAT(events(), ElementsAre("drift trader ", "drift trader ", "drift trader "));
  for (int time = 0; time < 2; ++time) {
    node_.apply(hand_on("trader", "5", false));
    node_.apply(clock_line(1800));
  }
  EXPECT_EQ(events().size(), 5U);
  node_.apply(hand_on("trader", "5", false));
  node_.apply(clock_line(10));
  EXPECT_EQ(events().back(), "overruled trader overruled-began") << "three times in a day";
}

TEST_F(CpusetTest, TellsAHandThatTakesCpusAway) {
  node_.guaranteed("trader", 2);
  node_.apply(hand_on("trader", "0", false));
  node_.apply(clock_line(10));
  EXPECT_THAT(events(), ElementsAre("drift trader "));
  EXPECT_EQ(node_.runtime().running()[0].cpus, (CpuSet{0, 1})) << "it is repaired";
  node_.apply(hand_on("trader", "0", true));
  node_.apply(clock_line(10));
  EXPECT_THAT(events(), ElementsAre("drift trader ", "overruled trader overruled-began"));
  EXPECT_THAT(modes(), ElementsAre("trader overruled"));
  node_.apply(clock_line(600));
  EXPECT_EQ(events().size(), 2U) << "it is not over, though all its CPUs are its own";
  node_.apply(hand_on("trader", "", false));
  node_.apply(clock_line(90));
  EXPECT_EQ(events().back(), "overruled trader overruled-ended");
}

/// As koordlet does of containers that share CPUs.
TEST_F(CpusetTest, TellsAHandThatKeepsContainersOnSomeOfTheirCpus) {
  node_.besteffort("web");
  node_.apply(hand_on("web", "0-1", true));
  node_.apply(clock_line(10));
  EXPECT_THAT(events(), ElementsAre("drift web ", "overruled web overruled-began"));
  EXPECT_FALSE(node_.guaranteed("own", 2).cpus.intersects(CpuSet{0, 1}));
}

/// Returns the containers that are called exclusive and share a CPU in the kernel; empty if nothing does.
std::string false_claim(SimulatedNode& node) {
  const std::vector<RunningContainer> running = node.runtime().running();
  for (const ContainerSnapshot& container : node.snapshot().containers) {
    if (container.mode != "exclusive") continue;
    const auto is_it = [&](const RunningContainer& other) {
      return other.pod == container.key.pod_uid && other.container == container.key.name &&
             other.attempt == container.key.attempt;
    };
    const auto own = std::find_if(running.begin(), running.end(), is_it);
    if (own == running.end()) continue;
    for (const RunningContainer& other : running) {
      if (is_it(other) || !other.cpus.intersects(own->cpus)) continue;
      return fmt::format("{} is called exclusive on {}, and {} runs on {}", own->pod, own->cpus.to_string(), other.pod,
                         other.cpus.to_string());
    }
  }
  return {};
}

std::string describe(SimulatedNode& node) {
  std::string text;
  for (const ContainerSnapshot& container : node.snapshot().containers) {
    text += fmt::format("\n{} {} {} on {}, seen on {}", container.key.pod_uid, container.phase, container.mode,
                        container.cpus.to_string(), container.seen_on.to_string());
  }
  for (const RunningContainer& running : node.runtime().running())
    text += fmt::format("\n{} runs on {}", running.pod, running.cpus.to_string());
  return text;
}

/// Whoever sets whatever CPUs when: after the next look nothing is called exclusive that is not.
TEST(CpusetProperty, NothingIsCalledExclusiveThatSharesACpu) {
  int not_exclusive = 0;
  for (std::uint32_t seed = 1; seed <= 40; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&random](std::uint32_t limit) { return random() % limit; };
    SimulatedNode node("node:2 core:4 pu:1");
    for (int step = 0; step < 60; ++step) {
      const std::string pod = "p" + std::to_string(below(6));
      switch (below(8)) {
        case 0:
          node.guaranteed(pod, 1 + static_cast<int>(below(2)));
          break;
        case 1:
          node.besteffort(pod);
          break;
        case 2:
          node.apply(fmt::format(R"({{"op":"remove_pod","pod":"{}"}})", pod));
          break;
        case 3:
          if (below(4) == 0) node.apply(R"({"op":"restart"})");
          break;
        case 4:
          node.apply(hand_on(pod, "", false));
          break;
        default: {
          const std::uint32_t first = below(8);
          const std::uint32_t last = std::min<std::uint32_t>(7, first + below(4));
          node.apply(hand_on(pod, fmt::format("{}-{}", first, last), below(2) == 0));
        }
      }
      node.apply(clock_line(6 + static_cast<int>(below(60))));
      ASSERT_EQ(false_claim(node), "") << "seed " << seed << ", step " << step << describe(node);
      for (const ContainerSnapshot& container : node.snapshot().containers)
        not_exclusive += container.mode == "overruled" || container.mode == "overlapped" ? 1 : 0;
    }
  }
  EXPECT_GT(not_exclusive, 100) << "or it tries nothing";
}

}  // namespace
}  // namespace topolet::simulate
