// The daemon is killed and comes back from its store: afterwards all is as if it had not been killed.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/simulate/late_writes.hpp"
#include "tests/simulate/recorded_run.hpp"
#include "tests/simulate/restart_history.hpp"
#include "tests/simulate/simulated_node.hpp"

namespace topolet::simulate {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kTwoNodes = "pack:2 numa:1 core:4 pu:2";
constexpr const char* kOneNode = "numa:1 core:8 pu:1";

std::string create_line(const std::string& pod, int cpus) {
  return fmt::format(R"({{"op":"create","pod":"{}","container":"main","cpu_request_milli":{},"cpu_limit_milli":{},)"
                     R"("memory_request":1048576,"memory_limit":1048576}})",
                     pod, cpus * 1000, cpus * 1000);
}

std::string resize_line(const std::string& pod, int cpus) {
  return fmt::format(R"({{"op":"update","pod":"{}","container":"main","cpu_request_milli":{},"cpu_limit_milli":{}}})",
                     pod, cpus * 1000, cpus * 1000);
}

/// Returns the allocation of the pod's newest attempt.
ContainerSnapshot kept(SimulatedNode& node, const std::string& pod) {
  ContainerSnapshot newest;
  for (const ContainerSnapshot& container : node.snapshot().containers) {
    if (container.key.pod_uid == pod) newest = container;
  }
  return newest;
}

/// Where the runtime has the pod's running container; the newest attempt's CPUs if there are several.
std::string runs_on(SimulatedNode& node, const std::string& pod) {
  std::string cpus = "it does not run";
  for (const RunningContainer& container : node.runtime().running()) {
    if (container.pod == pod) cpus = container.cpus.to_string();
  }
  return cpus;
}

TEST(Restart, LeavesEverybodyWhereTheyWere) {
  SimulatedNode node(kTwoNodes, {"--plugins.enable=numa"});
  node.burstable("web", 500);
  node.guaranteed("trader", 4);
  node.guaranteed("failed", 2);
  node.apply(R"({"op":"exit","pod":"failed","container":"main","exit_code":1})");
  const OperationResult restarted = node.apply(R"({"op":"restart"})");
  EXPECT_EQ(restarted.outcome, "ok");
  EXPECT_THAT(restarted.changed, IsEmpty());
  EXPECT_EQ(kept(node, "trader").cpus.to_string(), "0-3");
  EXPECT_EQ(kept(node, "trader").phase, "started");
  EXPECT_EQ(kept(node, "web").phase, "started");
  EXPECT_EQ(kept(node, "failed").phase, "crashed");
  EXPECT_EQ(runs_on(node, "trader"), "0-3");
  EXPECT_EQ(node.apply(create_line("failed", 2)).cpus, kept(node, "failed").cpus);
}

TEST(Restart, KeepsTheTimeThatFailedContainersHaveLeft) {
  SimulatedNode node(kTwoNodes);
  node.guaranteed("failed", 2);
  node.apply(R"({"op":"exit","pod":"failed","container":"main","exit_code":1})");
  node.apply(R"({"op":"clock","advance_s":200})");
  node.apply(R"({"op":"restart"})");
  node.apply(R"({"op":"clock","advance_s":95})");
  EXPECT_EQ(node.snapshot().containers.size(), 1U);
  node.apply(R"({"op":"clock","advance_s":10})");
  EXPECT_THAT(node.snapshot().containers, IsEmpty());
}

TEST(Restart, HasTheKubeletRepeatTheCallItWasKilledUnder) {
  for (const char* at : {"before-answer", "after-answer", "in-flight"}) {
    SCOPED_TRACE(at);
    SimulatedNode node(kTwoNodes);
    node.apply(fmt::format(R"({{"op":"restart","at":"{}","calls":2}})", at));
    const OperationResult created = node.guaranteed("trader", 4);  // its pod is the first call
    EXPECT_EQ(created.outcome, "unpinned");
    EXPECT_EQ(created.cpus.to_string(), "0-3");
    EXPECT_THAT(created.reason, HasSubstr("topoletd was killed at CreateContainer and restarted"));
    EXPECT_EQ(kept(node, "trader").phase, "started");
    EXPECT_EQ(runs_on(node, "trader"), "0-3");
    EXPECT_THAT(node.apply(R"({"op":"stop","pod":"trader","container":"main"})").reason, Not(HasSubstr("killed")));
  }
}

TEST(Restart, IsNoLongerToComeOnceAnotherIsAskedFor) {
  SimulatedNode node(kTwoNodes);
  node.apply(R"({"op":"restart","at":"after-answer"})");
  node.apply(R"({"op":"restart"})");
  EXPECT_THAT(node.guaranteed("trader", 4).reason, Not(HasSubstr("killed")));
}

TEST(Restart, LetsTimeGoOnFromWhereItWas) {
  SimulatedNode node(kTwoNodes);
  node.apply(R"({"op":"runtime","next":"lost"})");
  node.guaranteed("trader", 4);
  node.apply(R"({"op":"offline","cpus":"0"})");
  // Found after a second, it leaves the CPU that is gone.
  node.apply(R"({"op":"restart","at":"before-answer"})");
  node.apply(R"({"op":"clock","advance_s":10})");
  EXPECT_EQ(kept(node, "trader").cpus.to_string(), "1-4");
  EXPECT_EQ(kept(node, "trader").phase, "bound");
}

TEST(Restart, KeepsWhatContainersAskFor) {
  SimulatedNode node(kTwoNodes);
  node.guaranteed("trader", 4);
  const placement::LedgerEntry before = node.snapshot().ledger.entries.at(0);
  node.apply(R"({"op":"restart"})");
  const placement::LedgerEntry after = node.snapshot().ledger.entries.at(0);
  EXPECT_EQ(after.qos, before.qos);
  EXPECT_EQ(after.demand, before.demand);
}

TEST(Restart, LeavesOpenWhatBecameOfACreateUntilThatIsKnown) {
  SimulatedNode node(kOneNode);
  node.apply(R"({"op":"restart","at":"before-answer","calls":2,"repeat":false})");
  EXPECT_EQ(node.guaranteed("never", 2).outcome, "error");
  EXPECT_EQ(kept(node, "never").phase, "in doubt");
  node.apply(R"({"op":"restart","at":"after-answer","calls":2,"repeat":false})");
  EXPECT_EQ(node.guaranteed("made", 2).outcome, "error");
  EXPECT_EQ(kept(node, "made").phase, "bound");
  node.apply(R"({"op":"clock","advance_s":250})");
  ASSERT_EQ(node.snapshot().containers.size(), 1U);
  EXPECT_EQ(kept(node, "made").cpus.to_string(), "2-3");
}

/// The runtime has not made it, and tells nobody; over NRI the next create is another attempt.
TEST(Restart, HandsTheCpusOfACreateThatCameToNothingToTheNext) {
  for (const SimulatedFront front : {SimulatedFront::kCri, SimulatedFront::kNri}) {
    SimulatedNode node("numa:1 core:4 pu:1", {}, {.front = front});
    node.apply(R"({"op":"restart","at":"before-answer","calls":2,"repeat":false})");
    EXPECT_EQ(node.guaranteed("trader", 3).outcome, "error");
    EXPECT_EQ(kept(node, "trader").phase, "in doubt");
    EXPECT_EQ(node.apply(create_line("trader", 3)).cpus.to_string(), "0-2");
    EXPECT_EQ(node.snapshot().containers.size(), 1U);
    EXPECT_EQ(runs_on(node, "trader"), "0-2");
  }
}

TEST(Restart, LetsARepeatedCreateWaitForItsNeighbours) {
  SimulatedNode node(kOneNode);
  node.burstable("web", 500);
  node.apply(R"({"op":"run_pod","pod":"trader","qos":"guaranteed"})");
  node.apply(R"({"op":"restart","at":"before-answer"})");
  node.apply(R"({"op":"runtime","call":"own-update","next":"refuse"})");
  bool apart = true;
  node.runtime().watch([&] {
    const std::string trader = runs_on(node, "trader");
    apart = apart && (trader == "it does not run" || runs_on(node, "web") == "4-7");
  });
  const OperationResult created = node.apply(create_line("trader", 4));
  EXPECT_THAT(created.reason, HasSubstr("killed at UpdateContainerResources"));
  EXPECT_EQ(runs_on(node, "trader"), "0-3");
  EXPECT_TRUE(apart);
  EXPECT_EQ(runs_on(node, "web"), "4-7");
}

/// The kubelet has heard of no start, so it makes the next attempt; the runtime has started the first one after all.
TEST(Restart, LeavesItsCpusToAnAttemptThatWasBeingStarted) {
  for (const char* at : {"after-answer", "in-flight"}) {
    SCOPED_TRACE(at);
    SimulatedNode node(kOneNode);
    node.apply(fmt::format(R"({{"op":"restart","at":"{}","calls":3,"repeat":false}})", at));
    EXPECT_THAT(node.guaranteed("trader", 2).reason, HasSubstr("killed at StartContainer"));
    EXPECT_EQ(runs_on(node, "trader"), "0-1");
    EXPECT_EQ(node.apply(create_line("trader", 2)).cpus.to_string(), "2-3");
    EXPECT_EQ(node.snapshot().containers.size(), 2U);
  }
}

/// The containers that have to leave are told with the answer to the create, once, and the start waits for them. As
/// there is no cgroup to be written here, nobody knows that they are gone: the new one is created beside them, and told
/// its own CPUs before it starts.
TEST(FrontInAnswer, TellsNeighboursWithTheCreateAndStartsNobodyBeside) {
  const std::vector<std::string> calls = {"CreateContainer", "UpdateContainerResources", "UpdateContainerResources",
                                          "StartContainer"};
  for (const char* at : {"before-answer", "after-answer", "in-flight"}) {
    for (std::size_t call = 0; call < calls.size(); ++call) {
      SCOPED_TRACE(fmt::format("killed at call {}, {}, {}", call, calls[call], at));
      SimulatedNode node(kOneNode, {}, {.front = SimulatedFront::kInAnswer});
      node.burstable("web", 500);
      node.apply(R"({"op":"run_pod","pod":"trader","qos":"guaranteed"})");
      bool apart = true;
      node.runtime().watch([&] {
        const std::string trader = runs_on(node, "trader");
        apart = apart && (trader == "it does not run" || runs_on(node, "web") == "4-7");
      });
      node.apply(fmt::format(R"({{"op":"restart","at":"{}","calls":{}}})", at, call + 1));
      const OperationResult created = node.apply(create_line("trader", 4));
      EXPECT_THAT(created.reason, HasSubstr("killed at " + calls[call]));
      EXPECT_EQ(created.cpus.to_string(), "0-3");
      EXPECT_EQ(runs_on(node, "trader"), "0-3");
      EXPECT_EQ(runs_on(node, "web"), "4-7");
      EXPECT_TRUE(apart);
    }
  }
}

TEST(Restart, LeaksNoCpuOfAResizeThatWasCutShort) {
  for (const char* at : {"before-answer", "after-answer", "in-flight"}) {
    SCOPED_TRACE(at);
    SimulatedNode node(kOneNode);
    node.guaranteed("trader", 4);
    node.apply(fmt::format(R"({{"op":"restart","at":"{}"}})", at));
    EXPECT_THAT(node.apply(resize_line("trader", 2)).reason, HasSubstr("killed at"));
    EXPECT_EQ(kept(node, "trader").cpus.to_string(), "0-1");
    EXPECT_EQ(kept(node, "trader").withheld.to_string(), "");
    EXPECT_EQ(node.snapshot().ledger.pool.to_string(), "2-7");
    EXPECT_EQ(runs_on(node, "trader"), "0-1");
  }
}

TEST(Restart, LeaksNoCpuOfAMoveThatWasCutShort) {
  for (const char* at : {"before-answer", "after-answer", "in-flight"}) {
    SCOPED_TRACE(at);
    SimulatedNode node(kOneNode);
    node.guaranteed("trader", 2);
    node.apply(fmt::format(R"({{"op":"restart","at":"{}"}})", at));
    const OperationResult moved = node.apply(R"({"op":"offline","cpus":"0"})");
    EXPECT_THAT(moved.reason, HasSubstr("killed at UpdateContainerResources"));
    EXPECT_EQ(kept(node, "trader").cpus.to_string(), "1-2");
    EXPECT_EQ(kept(node, "trader").withheld.to_string(), "");
    EXPECT_EQ(node.snapshot().ledger.pool.to_string(), "3-7");
  }
}

TEST(Restart, MovesNobodyOntoCpusThatOthersHaveNotLeft) {
  SimulatedNode node("numa:1 core:4 pu:1");
  node.guaranteed("a-trader", 2);
  node.burstable("web", 500);
  // From 0-1 to 1-2; the web's leaving CPU 2 is the first call.
  node.apply(R"({"op":"restart","at":"before-answer"})");
  bool apart = true;
  node.runtime().watch([&] { apart = apart && (runs_on(node, "a-trader") == "0-1" || runs_on(node, "web") == "3"); });
  EXPECT_THAT(node.apply(R"({"op":"offline","cpus":"0"})").reason, HasSubstr("killed at"));
  EXPECT_EQ(runs_on(node, "a-trader"), "1-2");
  EXPECT_EQ(runs_on(node, "web"), "3");
  EXPECT_TRUE(apart);
}

TEST(Restart, RemembersWhereAContainerRanLast) {
  SimulatedNode node(kOneNode);
  node.guaranteed("first", 2);
  EXPECT_EQ(node.guaranteed("trader", 2).cpus.to_string(), "2-3");
  node.apply(R"({"op":"stop","pod":"trader","container":"main"})");
  node.apply(R"({"op":"remove_pod","pod":"first"})");
  node.apply(R"({"op":"restart"})");
  EXPECT_EQ(node.apply(create_line("trader", 2)).cpus.to_string(), "2-3");
}

TEST(Restart, SendsBackWhoHadToLeave) {
  SimulatedNode node(kTwoNodes, {"--plugins.enable=numa"});
  EXPECT_EQ(node.burstable("web", 1000).cpus.to_string(), "0-7");
  node.guaranteed("big", 15);
  EXPECT_EQ(kept(node, "web").cpus.to_string(), "15");
  node.apply(R"({"op":"restart"})");
  node.apply(R"({"op":"remove_pod","pod":"big"})");
  EXPECT_EQ(kept(node, "web").cpus.to_string(), "0-7");
}

TEST(Restart, GivesBackTheCpusThatWereOfflineMeanwhile) {
  SimulatedNode node(kTwoNodes, {"--plugins.enable=numa"});
  EXPECT_EQ(node.guaranteed("trader", 4).cpus.to_string(), "0-3");
  node.guaranteed("other", 4);
  node.guaranteed("third", 7);
  node.apply(R"({"op":"offline","cpus":"0"})");
  EXPECT_EQ(kept(node, "trader").cpus.size(), 3U);
  node.apply(R"({"op":"restart"})");
  node.apply(R"({"op":"online","cpus":"0"})");
  EXPECT_EQ(kept(node, "trader").cpus.to_string(), "0-3");
}

#ifdef TOPOLET_SANITIZED
constexpr int kHistories = 1;
#else
constexpr int kHistories = 6;
#endif

/// How many histories of each node are tried; more of them for a search by hand.
int histories() {
  const char* const wanted = std::getenv("TOPOLET_RESTART_HISTORIES");
  if (wanted == nullptr) return kHistories;
  const int count = std::atoi(wanted);
  if (count <= 0) throw std::invalid_argument(fmt::format("TOPOLET_RESTART_HISTORIES={} is no number above 0", wanted));
  return count;
}

std::vector<RestartNode> nodes() {
  constexpr SimulatedFront kInAnswer = SimulatedFront::kInAnswer;
  constexpr SimulatedFront kNri = SimulatedFront::kNri;
  return {
      {"numa:1 core:4 pu:1", {}},
      {"numa:1 core:6 pu:1", {"--plugins.enable=numa"}},
      {"pack:2 numa:1 core:2 pu:2", {"--plugins.enable=numa", "--numa.memory=bind"}},
      {"pack:2 numa:1 core:4 pu:2", {"--plugins.enable=numa", "--plugins.enable=smt"}},
      {"numa:1 core:4 pu:2", {"--plugins.enable=smt", "--smt.isolate-siblings=exclusive"}},
      {"pack:2 numa:2 core:2 pu:2", {"--plugins.enable=numa", "--placement.heal=all"}},
      {"numa:1 core:4 pu:1", {}, kInAnswer},
      {"pack:2 numa:1 core:2 pu:2", {"--plugins.enable=numa", "--numa.memory=bind"}, kInAnswer},
      {"pack:2 numa:1 core:4 pu:2",
       {"--plugins.enable=numa", "--plugins.enable=smt", "--placement.heal=all"},
       kInAnswer},
      {"numa:1 core:4 pu:1", {}, kNri},
      {"numa:1 core:6 pu:1", {"--plugins.enable=numa"}, kNri},
      {"pack:2 numa:1 core:2 pu:2", {"--plugins.enable=numa", "--numa.memory=bind"}, kNri},
      {"numa:1 core:4 pu:2", {"--plugins.enable=smt", "--smt.isolate-siblings=exclusive"}, kNri},
      {"pack:2 numa:1 core:4 pu:2", {"--plugins.enable=numa", "--plugins.enable=smt", "--placement.heal=all"}, kNri}};
}

/// And those where loads come and go. For how long a node has been pressed nobody remembers, so that a kill may tell.
std::vector<RestartNode> nodes_with_load() {
  std::vector<RestartNode> all = nodes();
  for (const SimulatedFront front : {SimulatedFront::kCri, SimulatedFront::kInAnswer}) {
    all.push_back({"pack:2 numa:1(memory=16GB) core:2 pu:2",
                   {"--plugins.enable=numa", "--plugins.enable=load", "--load.besteffort-memory=50"},
                   front});
    all.push_back({"pack:2 numa:1(memory=16GB) core:4 pu:1",
                   {"--plugins.enable=numa", "--plugins.enable=smt", "--plugins.enable=load", "--placement.heal=all"},
                   front});
  }
  return all;
}

constexpr int kSteps = 20;
constexpr std::uint64_t kRestarts = 12;

std::string name_of(SimulatedFront front) {
  switch (front) {
    case SimulatedFront::kCri:
      return "cri";
    case SimulatedFront::kInAnswer:
      return "in-answer";
    case SimulatedFront::kNri:
      return "nri";
  }
  return "";
}

std::string told(const RestartNode& node, std::uint64_t seed, const History& history) {
  const History least = minimised(node, history);
  return fmt::format("--topology \"{}\" --front {} {}, seed {}:\n{}\n{}", node.machine, name_of(node.front),
                     fmt::join(node.flags, " "), seed, fmt::join(lines_of(least), "\n"), difference(node, least));
}

TEST(RestartProperty, ThereIsNoTellingThatTheDaemonWasKilled) {
  for (const RestartNode& node : nodes()) {
    for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(histories()); ++seed) {
      const History history = make_history(node, seed, kSteps);
      const HistoryResult without = run_history(node, history);
      ASSERT_EQ(without.first_violation, "") << fmt::format("{}", fmt::join(lines_of(history), "\n"));
      std::mt19937_64 random(seed);
      for (std::uint64_t i = 0; i < kRestarts; ++i) {
        const History with = with_restart(history, without, random());
        const HistoryResult seen = run_history(node, with);
        ASSERT_TRUE(seen.is_comparable) << fmt::format("{}", fmt::join(lines_of(with), "\n"));
        ASSERT_TRUE(difference(node, with, seen, without).empty()) << told(node, seed, with);
      }
    }
  }
}

/// Whatever the daemon was killed under: each file of a record begins with what its decisions go by.
TEST(RestartProperty, TheRecordOfADaemonThatWasKilledIsDecidedAlikeAgain) {
  std::size_t decisions = 0;
  for (const RestartNode& node : nodes_with_load()) {
    for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(histories()); ++seed) {
      const History history = make_history(node, seed, kSteps);
      std::mt19937_64 random(seed);
      for (const bool is_late : {false, true}) {
        const SimulationOptions options = is_late ? with_late_writes(seed) : SimulationOptions();
        const History with = with_restart(history, run_history(node, history, options), random());
        const RecordedRun recorded(seed % 2 == 0 ? 100'000 : 100'000'000);
        run_history(node, with, recorded.options(options));
        const replay::ReplayResult result = recorded.replay();
        ASSERT_EQ(first_difference(result), "") << fmt::format("{}", fmt::join(lines_of(with), "\n"));
        decisions += result.decisions;
      }
    }
  }
  EXPECT_GT(decisions, 100U);
}

/// Killed or not, nobody runs beside one who has CPUs alone, though operations come before what the ones before them
/// have led to is durable, and before those who must move have moved.
TEST(RestartProperty, LateWritesLeaveCpusWithWhoHasThem) {
  for (const RestartNode& node : nodes_with_load()) {
    for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(4 * histories()); ++seed) {
      const History history = make_history(node, seed, 2 * kSteps);
      const HistoryResult seen = run_history(node, history, with_late_writes(seed));
      ASSERT_EQ(seen.first_violation, "") << fmt::format("{} {} seed {}\n{}", node.machine, fmt::join(node.flags, " "),
                                                         seed, fmt::join(lines_of(history), "\n"));
      std::mt19937_64 random(seed);
      const History with = with_restart(history, seen, random());
      ASSERT_EQ(run_history(node, with, with_late_writes(seed)).first_violation, "") << fmt::format(
          "{} {} seed {}\n{}", node.machine, fmt::join(node.flags, " "), seed, fmt::join(lines_of(with), "\n"));
    }
  }
}

}  // namespace
}  // namespace topolet::simulate
