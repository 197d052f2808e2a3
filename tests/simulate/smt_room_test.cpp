// Isolation and pairing where room is short: min-shared-cpus, the rest of a pod, what others ask for.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/simulate/hybrid_machine.hpp"
#include "tests/simulate/smt_nodes.hpp"

namespace topolet::simulate {
namespace {

using ::testing::HasSubstr;

TEST(SmtRoom, IsolatesOnCoresThatLeaveMinSharedCpus) {
  const HybridMachine machine({});
  SimulatedNode node(machine.file(), with({"--placement.min-shared-cpus=5", "--plugins.required.smt=true"}));
  const OperationResult isolated = run(node, "isolated", "guaranteed", 3000, kIsolate);
  EXPECT_EQ(isolated.cpus.to_string(), "4-6") << "cores of one thread leave nothing idle";
  EXPECT_EQ(isolated.withheld.to_string(), "");
}

TEST(SmtRoom, IsolatesOnTheNodeThatLeavesMinSharedCpus) {
  SimulatedNode node("numa:2 core:2 pu:2", with({"--placement.min-shared-cpus=6", "--numa.strategy=spread"}));
  node.apply(R"({"op":"offline","cpus":"5"})");
  const OperationResult isolated = run(node, "isolated", "guaranteed", 1000, kIsolate);
  EXPECT_EQ(isolated.cpus.to_string(), "4") << isolated.reason;
  EXPECT_EQ(isolated.withheld.to_string(), "");
}

TEST(SmtRoom, TakesCoresWhoseThreadsAreAllThereIfOthersWouldLeaveTooManyIdle) {
  SimulatedNode node("core:3 pu:2", with({"--placement.min-shared-cpus=3", "--plugins.required.smt=true"}));
  node.apply(R"({"op":"offline","cpus":"1"})");
  EXPECT_EQ(run(node, "isolated", "guaranteed", 2000, kIsolate).cpus.to_string(), "2-3");
}

TEST(SmtRoom, SaysThatMinSharedCpusLeavesNoRoom) {
  SimulatedNode node("numa:2 core:2 pu:2", with({"--placement.min-shared-cpus=7"}));
  const OperationResult plain = run(node, "isolated", "guaranteed", 1000, kIsolate);
  EXPECT_EQ(plain.withheld.to_string(), "");
  EXPECT_THAT(plain.reason, HasSubstr("enough to isolate 1, but placement.min-shared-cpus keeps 7 in the shared pool"));
}

/// A pod of `containers` containers of one CPU each, all isolated; the CPUs they get.
std::string run_pod(SimulatedNode& node, const std::string& pod, int containers, const std::string& annotations) {
  node.apply(fmt::format(R"({{"op":"run_pod","pod":"{}","qos":"guaranteed","annotations":{{{}}},"resources":)"
                         R"({{"cpu_request_milli":{},"cpu_limit_milli":{}}}}})",
                         pod, annotations, containers * 1000, containers * 1000));
  std::string cpus;
  for (int i = 0; i < containers; ++i) {
    const OperationResult outcome = node.apply(fmt::format(
        R"({{"op":"create","pod":"{}","container":"c{}","cpu_request_milli":1000,"cpu_limit_milli":1000,"memory_limit":4096}})",
        pod, i));
    const std::string withheld = outcome.withheld.to_string();
    cpus += (i > 0 ? " " : "") + outcome.cpus.to_string() + (withheld.empty() ? "" : "~" + withheld);
  }
  return cpus;
}

TEST(SmtRoom, PlacesAPodWhereAllOfItCanBeIsolated) {
  const Flags together = with({"--numa.scope=pod", "--numa.policy=single-numa-node"});
  SimulatedNode node("numa:2 core:2 pu:2", together);
  run(node, "other", "guaranteed", 2000);
  EXPECT_EQ(run_pod(node, "pod", 2, kIsolate), "4~5 6~7");
}

TEST(SmtRoom, PrefersTheNodeWhereTheRestOfAPodCanBeIsolatedToo) {
  SimulatedNode node("pack:2 numa:1 core:4 pu:2", with({"--numa.scope=pod", "--numa.policy=single-numa-node"}));
  run(node, "other", "guaranteed", 4000);
  EXPECT_EQ(run_pod(node, "pod", 3, kIsolate), "8~9 10~11 12~13");
}

TEST(SmtRoom, DropsIsolationThatWouldLeaveTheRestOfAPodWithoutCpus) {
  const Flags together = with({"--numa.scope=pod", "--numa.policy=single-numa-node"});
  SimulatedNode node("numa:2 core:2 pu:2", together);
  EXPECT_EQ(run_pod(node, "four", 4, kIsolate), "0 1 2 3");
  SimulatedNode other("numa:2 core:2 pu:2", together);
  EXPECT_EQ(run_pod(other, "three", 3, kIsolate), "0~1 2 3") << "one of them can be";
}

TEST(SmtRoom, SharedHeavyContainersGoWhereCoresAreLeft) {
  SimulatedNode node("numa:2 core:3 pu:2", with({"--smt.pair=true"}));
  EXPECT_EQ(run(node, "first", "burstable", 3000, kHeavy).cpus.to_string(), "0,2,4");
  const OperationResult second = run(node, "second", "burstable", 500, kHeavy);
  EXPECT_EQ(second.cpus.to_string(), "6,8,10") << second.reason;
}

TEST(SmtRoom, LeavesOddRequestsToNumaWhereTheyAreDenied) {
  SimulatedNode node("core:4 pu:2",
                     with({"--numa.full-pcpus-only=true", "--smt.round=deny", "--placement.reserved-cpus=0,2"}));
  run(node, "first", "guaranteed", 4000);
  const OperationResult odd = run(node, "odd", "guaranteed", 1000);
  EXPECT_THAT(odd.reason, HasSubstr("numa: SMT Alignment Error"));
  EXPECT_EQ(odd.reason.find("idle-sibling"), std::string::npos) << odd.reason;
}

}  // namespace
}  // namespace topolet::simulate
