// The smt plugin with the others, as the daemon runs them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/simulate/hybrid_machine.hpp"
#include "tests/simulate/smt_nodes.hpp"

namespace topolet::simulate {
namespace {

using ::testing::HasSubstr;

/// Two nodes of four cores of two threads: CPUs 0-7 and 8-15, siblings beside each other.
constexpr const char* kMachine = "pack:2 numa:1 core:4 pu:2";

TEST(SmtSimulated, KeepsEverybodyOffTheSiblingsOfAnIsolatedContainer) {
  SimulatedNode node(kMachine, with({}));
  run(node, "shared", "besteffort", 0);
  const OperationResult isolated = run(node, "isolated", "guaranteed", 3000, kIsolate);
  EXPECT_EQ(isolated.cpus.to_string(), "0-2");
  EXPECT_EQ(isolated.withheld.to_string(), "3");
  EXPECT_THAT(isolated.reason, HasSubstr("smt: CPU 3 is kept idle (topolet.io/smt = isolate)"));
  EXPECT_EQ(cpus_of(node, "shared").to_string(), "4-15");
  EXPECT_EQ(run(node, "next", "guaranteed", 1000).cpus.to_string(), "4");
  node.apply(R"({"op":"remove_pod","pod":"isolated"})");
  EXPECT_EQ(cpus_of(node, "shared").to_string(), "0-3,5-15");
}

TEST(SmtSimulated, KeepsASiblingIdleThatGoesAndComesBack) {
  SimulatedNode node(kMachine, with({}));
  run(node, "shared", "besteffort", 0);
  EXPECT_EQ(run(node, "isolated", "guaranteed", 3000, kIsolate).withheld.to_string(), "3");
  node.apply(R"({"op":"offline","cpus":"3"})");
  node.apply(R"({"op":"online","cpus":"3"})");
  EXPECT_EQ(cpus_of(node, "isolated").to_string(), "0-2");
  EXPECT_EQ(cpus_of(node, "shared").to_string(), "4-15");
}

TEST(SmtSimulated, KeepsASiblingIdleThatComesAfterTheContainer) {
  SimulatedNode node(kMachine, with({}));
  run(node, "shared", "besteffort", 0);
  node.apply(R"({"op":"offline","cpus":"1"})");
  EXPECT_EQ(run(node, "isolated", "guaranteed", 1000, kIsolate).withheld.to_string(), "");
  const OperationResult came = node.apply(R"({"op":"online","cpus":"1"})");
  ASSERT_EQ(came.changed.size(), 1U) << "nobody else gets it";
  EXPECT_EQ(came.changed[0].cpus.to_string(), "0");
  EXPECT_EQ(came.changed[0].withheld.to_string(), "1");
  EXPECT_EQ(cpus_of(node, "shared").to_string(), "2-15");
  node.apply(R"({"op":"remove_pod","pod":"isolated"})");
  EXPECT_EQ(cpus_of(node, "shared").to_string(), "0-15");
}

TEST(SmtSimulated, KeepsAnIsolatedContainersOwnCpuIdleThatGoesAndComesBack) {
  SimulatedNode node(kMachine, with({}));
  run(node, "shared", "besteffort", 0);
  run(node, "isolated", "guaranteed", 3000, kIsolate);
  node.apply(R"({"op":"offline","cpus":"1"})");
  EXPECT_EQ(cpus_of(node, "isolated").to_string(), "0,2-3");
  const OperationResult came = node.apply(R"({"op":"online","cpus":"1"})");
  ASSERT_EQ(came.changed.size(), 1U);
  EXPECT_EQ(came.changed[0].cpus.to_string(), "0-2") << "it has it again";
  EXPECT_EQ(came.changed[0].withheld.to_string(), "3");
}

TEST(SmtSimulated, KeepsASiblingIdleThatWasAwayWhenTheContainerWasResized) {
  SimulatedNode node("numa:1 core:3 pu:2", with({}));
  run(node, "shared", "besteffort", 0);
  EXPECT_EQ(run(node, "isolated", "guaranteed", 3000, kIsolate).withheld.to_string(), "3");
  node.apply(R"({"op":"offline","cpus":"3"})");
  for (const int milli : {1000, 3000}) {
    node.apply(fmt::format(R"({{"op":"update","pod":"isolated","container":"main","cpu_request_milli":{0},)"
                           R"("cpu_limit_milli":{0}}})",
                           milli));
  }
  EXPECT_EQ(cpus_of(node, "isolated").to_string(), "0-2");
  node.apply(R"({"op":"online","cpus":"3"})");
  EXPECT_EQ(cpus_of(node, "shared").to_string(), "4-5");
}

TEST(SmtSimulated, KeepsASiblingIdleThatCameBeforeTheNextAttempt) {
  SimulatedNode node("numa:1 core:3 pu:2", with({}));
  node.apply(R"({"op":"offline","cpus":"1"})");
  EXPECT_EQ(run(node, "isolated", "guaranteed", 1000, kIsolate).cpus.to_string(), "0");
  node.apply(R"({"op":"exit","pod":"isolated","container":"main","exit_code":1})");
  node.apply(R"({"op":"online","cpus":"1"})");
  const OperationResult again = node.apply(
      R"({"op":"create","pod":"isolated","container":"main","cpu_request_milli":1000,"cpu_limit_milli":1000,)"
      R"("memory_limit":4096})");
  EXPECT_EQ(again.cpus.to_string(), "0") << "its old CPU";
  EXPECT_EQ(again.withheld.to_string(), "1");
}

TEST(SmtSimulated, KeepsASiblingIdleThatCameWhileACreateWasInDoubt) {
  SimulatedNode node("numa:1 core:3 pu:2", with({}));
  run(node, "shared", "besteffort", 0);
  node.apply(R"({"op":"offline","cpus":"1"})");
  node.apply(R"({"op":"runtime","next":"lost"})");
  run(node, "isolated", "guaranteed", 1000, kIsolate);
  node.apply(R"({"op":"online","cpus":"1"})");
  node.apply(R"({"op":"clock","advance_s":10})");
  EXPECT_EQ(cpus_of(node, "isolated").to_string(), "0");
  EXPECT_EQ(cpus_of(node, "shared").to_string(), "2-5");
}

TEST(SmtSimulated, GivesAContainerBackWhatItLacks) {
  SimulatedNode node("numa:1 core:2 pu:2", with({}));
  EXPECT_EQ(run(node, "isolated", "guaranteed", 2000, kIsolate).cpus.to_string(), "0-1");
  node.apply(R"({"op":"occupy","cpus":"2"})");
  node.apply(R"({"op":"offline","cpus":"1"})");
  EXPECT_EQ(cpus_of(node, "isolated").to_string(), "0") << "there is no other";
  node.apply(R"({"op":"online","cpus":"1"})");
  EXPECT_EQ(cpus_of(node, "isolated").to_string(), "0-1");
}

TEST(SmtSimulated, LeavesOthersACpuBeforeItGivesBackWhatAContainerLacks) {
  SimulatedNode node("numa:1 core:3 pu:2", with({}));
  run(node, "isolated", "guaranteed", 3000, kIsolate);
  run(node, "other", "guaranteed", 1000);
  node.apply(R"({"op":"occupy","cpus":"5"})");
  node.apply(R"({"op":"offline","cpus":"0-1"})");
  EXPECT_EQ(cpus_of(node, "isolated").to_string(), "2");
  node.apply(R"({"op":"online","cpus":"0-1"})");
  EXPECT_EQ(cpus_of(node, "isolated").to_string(), "2");
  EXPECT_EQ(node.snapshot().ledger.withheld.to_string(), "3") << "it stays isolated";
  EXPECT_EQ(node.snapshot().ledger.pool.to_string(), "0-1");
}

TEST(SmtSimulated, SaysWhyAContainerIsMovedAndThatItIsIsolatedNoMore) {
  SimulatedNode node("numa:1 core:3 pu:2", with({}));
  run(node, "shared", "besteffort", 0);
  run(node, "isolated", "guaranteed", 2000, kIsolate);
  node.apply(R"({"op":"occupy","cpus":"2,4"})");
  const OperationResult offline = node.apply(R"({"op":"offline","cpus":"1"})");
  ASSERT_EQ(offline.changed.size(), 2U);
  EXPECT_THAT(offline.changed[0].reason, HasSubstr("CPU 1 is no longer available; numa: "));
  EXPECT_THAT(offline.changed[0].reason,
              HasSubstr("dropped: smt: CPU 2 cannot be kept idle beside CPUs 0,3: reserved or used by others"));
  EXPECT_EQ(offline.changed[1].reason, "") << "it follows the pool";
}

TEST(SmtSimulated, GoesToTheNodeWhereIsolationFits) {
  SimulatedNode node(kMachine, with({}));
  run(node, "a", "guaranteed", 1000);
  run(node, "b", "guaranteed", 4000);
  EXPECT_EQ(run(node, "isolated", "guaranteed", 3000, kIsolate).cpus.to_string(), "8-10")
      << "node 0 has three CPUs, but one of them is beside another's";
}

TEST(SmtSimulated, DropsIsolationThatThePoolCannotSpareOrDenies) {
  const std::string machine = "numa:1 core:2 pu:2";
  SimulatedNode node(machine, with({}));
  const OperationResult dropped = run(node, "a", "guaranteed", 3000, kIsolate);
  EXPECT_EQ(dropped.outcome, "placed");
  EXPECT_TRUE(dropped.withheld.empty());
  EXPECT_THAT(dropped.reason, HasSubstr("dropped: smt: withholding CPU 3"));
  SimulatedNode strict(machine, with({"--plugins.required.smt=true"}));
  const OperationResult denied = run(strict, "a", "guaranteed", 3000, kIsolate);
  EXPECT_EQ(denied.outcome, "denied");
  EXPECT_THAT(denied.reason, HasSubstr("smt: withholding CPU 3: the pool would keep 0 CPUs, fewer than "
                                       "placement.min-shared-cpus = 1 (plugins.required.smt = true)"));
}

TEST(SmtSimulated, IsolatesAHeavyContainerOnOneCoreIfOthersKeepNoCpuElse) {
  SimulatedNode small("numa:1 core:2 pu:2", with({"--smt.pair=true", "--plugins.required.smt=true"}));
  const std::string both = fmt::format("{},{}", kIsolate, kHeavy);
  const OperationResult isolated = run(small, "a", "guaranteed", 2000, both);
  EXPECT_EQ(isolated.cpus.to_string(), "0-1");
  SimulatedNode larger("numa:1 core:3 pu:2", with({"--smt.pair=true"}));
  const OperationResult spread = run(larger, "a", "guaranteed", 2000, both);
  EXPECT_EQ(spread.cpus.to_string(), "0,2");
  EXPECT_EQ(spread.withheld.to_string(), "1,3");
}

TEST(SmtSimulated, DeniesIsolationWithoutWholeCoresIfItIsRequired) {
  for (const bool required : {false, true}) {
    SimulatedNode node("numa:1 core:2 pu:2", with({fmt::format("--plugins.required.smt={}", required)}));
    node.apply(R"({"op":"occupy","cpus":"1,3"})");
    const OperationResult outcome = run(node, "a", "guaranteed", 1000, kIsolate);
    EXPECT_EQ(outcome.outcome, required ? "denied" : "placed");
    if (required) {
      EXPECT_THAT(
          outcome.reason,
          HasSubstr("CPU 1 cannot be kept idle beside CPU 0: reserved or used by others (topolet.io/smt = isolate)"));
    }
  }
}

TEST(SmtSimulated, DeniesABadAnnotation) {
  SimulatedNode node(kMachine, with({}));
  const OperationResult denied = run(node, "a", "burstable", 500, R"("topolet.io/smt":"off")");
  EXPECT_EQ(denied.outcome, "denied");
  EXPECT_THAT(denied.reason, HasSubstr("annotation topolet.io/smt = 'off': it must be one of 'isolate', 'share'"));
}

TEST(SmtSimulated, LetsOneContainerOfAPodBeIsolated) {
  SimulatedNode node(kMachine, with({}));
  const std::string named = R"("topolet.io/containers":"{\"main\":{\"smt\":\"isolate\"}}")";
  EXPECT_EQ(run(node, "a", "guaranteed", 1000, named).withheld.to_string(), "1");
}

TEST(SmtSimulated, RoundsUpUnderFullPcpusOnlyWhateverThePolicy) {
  for (const char* policy : {"none", "best-effort", "single-numa-node"}) {
    SimulatedNode node(kMachine, with({"--numa.full-pcpus-only=true", fmt::format("--numa.policy={}", policy)}));
    const OperationResult odd = run(node, "odd", "guaranteed", 3000);
    EXPECT_EQ(odd.cpus.to_string(), "0-2") << policy;
    EXPECT_EQ(odd.withheld.to_string(), "3");
    EXPECT_THAT(odd.reason, HasSubstr("CPU 3 is kept idle (numa.full-pcpus-only, smt.round = idle-sibling)"));
    EXPECT_EQ(run(node, "even", "guaranteed", 2000).withheld.to_string(), "");
  }
}

TEST(SmtSimulated, DeniesOddRequestsAsTheKubeletDoesIfToldTo) {
  for (const Flags& flags : {Flags{"--plugins.enable=numa"}, with({"--smt.round=deny"})}) {
    Flags full = flags;
    full.push_back("--numa.full-pcpus-only=true");
    SimulatedNode node(kMachine, full);
    const OperationResult denied = run(node, "odd", "guaranteed", 3000);
    EXPECT_EQ(denied.outcome, "denied");
    EXPECT_THAT(denied.reason, HasSubstr("SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2"));
  }
}

TEST(SmtSimulated, CountsWhatIsBesideReservedCpusAsTaken) {
  SimulatedNode node("pack:2 numa:1 core:2 pu:2",
                     with({"--numa.full-pcpus-only=true", "--placement.reserved-cpus=0,2"}));
  EXPECT_EQ(run(node, "even", "guaranteed", 2000).cpus.to_string(), "4-5") << "1 and 3 are no cores";
  EXPECT_EQ(run(node, "odd", "guaranteed", 1000).cpus.to_string(), "6");
  EXPECT_EQ(run(node, "none", "guaranteed", 1000).outcome, "denied");
}

TEST(SmtSimulated, PairsHeavyAndLightContainers) {
  SimulatedNode node(kMachine, with({"--smt.pair=true"}));
  EXPECT_EQ(run(node, "h1", "guaranteed", 2000, kHeavy).cpus.to_string(), "0,2");
  EXPECT_EQ(run(node, "l1", "guaranteed", 1000, kLight).cpus.to_string(), "1");
  EXPECT_EQ(run(node, "h2", "guaranteed", 2000, kHeavy).cpus.to_string(), "4,6");
  EXPECT_EQ(run(node, "h3", "guaranteed", 2000, kHeavy).cpus.to_string(), "8,10") << "nobody meets as long as";
  EXPECT_EQ(run(node, "h4", "guaranteed", 3000, kHeavy).cpus.to_string(), "12-14") << "there is another way";
  const CpuSet light = run(node, "l2", "burstable", 1500, kLight).cpus;
  const CpuSet heavy = run(node, "h5", "burstable", 500, kHeavy).cpus;
  EXPECT_FALSE(light.empty());
  EXPECT_FALSE(heavy.empty());
}

TEST(SmtSimulated, GoesToAnotherNodeRatherThanTakeBothSiblings) {
  SimulatedNode node(kMachine, with({"--smt.pair=true"}));
  EXPECT_EQ(run(node, "one", "guaranteed", 2000).cpus.to_string(), "0-1");
  EXPECT_EQ(run(node, "heavy", "guaranteed", 4000, kHeavy).cpus.to_string(), "8,10,12,14");
}

TEST(SmtSimulated, KeepsSharedHeavyAndLightContainersApart) {
  SimulatedNode node("numa:1 core:4 pu:2", with({"--smt.pair=true"}));
  EXPECT_EQ(run(node, "h1", "burstable", 500, kHeavy).cpus.to_string(), "0,2,4,6");
  EXPECT_EQ(run(node, "l1", "burstable", 500, kLight).cpus.to_string(), "1,3,5,7");
  EXPECT_EQ(run(node, "h2", "besteffort", 0, kHeavy).cpus.to_string(), "0,2,4,6");
  EXPECT_EQ(run(node, "own", "guaranteed", 1000, kHeavy).cpus.size(), 1U);
  EXPECT_EQ(cpus_of(node, "h1").to_string(), "2,4,6");
}

TEST(SmtSimulated, IsolatesOnCoresOfOneThreadForNothing) {
  const HybridMachine machine({});
  SimulatedNode node(machine.file(), with({}));
  EXPECT_EQ(run(node, "fast", "guaranteed", 1000, kIsolate).withheld.to_string(), "1") << "the faster kind comes first";
  node.apply(R"({"op":"occupy","cpus":"3"})");
  const OperationResult slow = run(node, "slow", "guaranteed", 2000, kIsolate);
  EXPECT_EQ(slow.cpus.to_string(), "4-5");
  EXPECT_TRUE(slow.withheld.empty());
}

TEST(SmtSimulated, FindsWholeCoresAmongSlowerOnes) {
  const HybridMachine machine({});
  SimulatedNode node(machine.file(), with({"--plugins.required.smt=true"}));
  node.apply(R"({"op":"occupy","cpus":"0,2"})");
  EXPECT_EQ(run(node, "a", "guaranteed", 2000, kIsolate).cpus.to_string(), "4-5") << "1 and 3 are beside others";
}

TEST(SmtSimulated, LeavesCoresOfOneThreadToHeavyContainers) {
  const HybridMachine machine({.tells_kinds = false});
  SimulatedNode node(machine.file(), with({"--smt.pair=true"}));
  EXPECT_EQ(run(node, "light", "guaranteed", 2000, kLight).cpus.to_string(), "1,3");
}

TEST(SmtSimulated, TakesNoTwoThreadsOfACoreOfAHybridMachine) {
  const HybridMachine machine({});
  SimulatedNode node(machine.file(), with({"--smt.pair=true"}));
  EXPECT_EQ(run(node, "two", "guaranteed", 2000, kHeavy).cpus.to_string(), "0,2");
  EXPECT_EQ(run(node, "three", "guaranteed", 3000, kHeavy).cpus.to_string(), "4-6");
  EXPECT_EQ(run(node, "light", "guaranteed", 2000, kLight).cpus.to_string(), "1,3");
}

/// Without CPUs that come and go, an isolated container is alone on its cores from start to end, or nothing is
/// withheld.
TEST(SmtSimulated, IsolatesWhollyOrNotAtAll) {
  for (const char* machine : {"pack:2 numa:1 core:4 pu:2", "numa:2 core:2 pu:4", "numa:1 core:2 pu:8"}) {
    SimulatedNode node(machine, with({"--smt.isolate-siblings=exclusive", "--smt.pair=true"}));
    std::mt19937_64 random(5);
    for (int step = 0; step < 150; ++step) {
      const std::string pod = "p" + std::to_string(step);
      if (random() % 3 == 0) {
        node.apply(fmt::format(R"({{"op":"remove_pod","pod":"p{}"}})", random() % static_cast<unsigned>(step + 1)));
        continue;
      }
      const bool shares = random() % 2 == 0;
      run(node, pod, shares ? "burstable" : "guaranteed", static_cast<int>(1000 * (1 + random() % 4)),
          random() % 2 == 0 ? kHeavy : kLight);
      const Snapshot snapshot = node.snapshot();
      for (const placement::LedgerEntry& entry : snapshot.ledger.entries) {
        if (entry.placement.withheld.empty()) continue;
        const CpuSet held = entry.placement.cpus | entry.placement.withheld;
        for (const CpuSet& core : snapshot.topology->cores) {
          EXPECT_TRUE(!core.intersects(held) || core.is_subset_of(held)) << machine << ": " << entry.key.pod_uid;
        }
      }
    }
  }
}

}  // namespace
}  // namespace topolet::simulate
