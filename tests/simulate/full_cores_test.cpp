// numa.full-pcpus-only on a machine whose cores are not alike, as the daemon runs it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/simulate/hybrid_machine.hpp"
#include "tests/simulate/simulated_node.hpp"

namespace topolet::simulate {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> full(const std::string& policy, bool with_smt) {
  std::vector<std::string> flags = {"--plugins.enable=numa", "--numa.full-pcpus-only=true", "--numa.policy=" + policy};
  if (with_smt) flags.insert(flags.end(), {"--plugins.enable=smt", "--smt.round=deny"});
  return flags;
}

/// On a HybridMachine.
bool are_whole_cores(const CpuSet& cpus) {
  return cpus.contains(0) == cpus.contains(1) && cpus.contains(2) == cpus.contains(3);
}

class FullCoresSimulated : public ::testing::TestWithParam<bool> {
 protected:
  const HybridMachine machine_{{.two_nodes = GetParam()}};
};

TEST_P(FullCoresSimulated, GivesWholeCoresOfOneKindAsLongAsThatWorks) {
  for (const char* const policy : {"none", "best-effort"}) {
    for (const bool with_smt : {false, true}) {
      SCOPED_TRACE(fmt::format("{}, smt {}", policy, with_smt));
      SimulatedNode node(machine_.file(), full(policy, with_smt));
      node.besteffort("any");
      EXPECT_EQ(node.guaranteed("one", 1).cpus.to_string(), "4");
      EXPECT_EQ(node.guaranteed("three", 3).cpus.to_string(), "5-7");
      EXPECT_EQ(node.guaranteed("two", 2).cpus.to_string(), "0-1");
    }
  }
}

TEST_P(FullCoresSimulated, GivesWholeCoresOfSeveralKindsWhereOneIsNotEnough) {
  for (const char* const policy : {"none", "best-effort"}) {
    for (const bool with_smt : {false, true}) {
      SCOPED_TRACE(fmt::format("{}, smt {}", policy, with_smt));
      SimulatedNode node(machine_.file(), full(policy, with_smt));
      node.besteffort("any");
      EXPECT_EQ(node.guaranteed("three", 3).cpus.to_string(), "4-6");
      EXPECT_EQ(node.guaranteed("other", 3).cpus.to_string(), "0-1,7");
    }
  }
}

TEST_P(FullCoresSimulated, DeniesWhatOnlyPartsOfCoresCouldMakeUp) {
  SimulatedNode node(machine_.file(), full("best-effort", true));
  node.apply(R"({"op":"occupy","cpus":"4-7"})");
  const OperationResult denied = node.guaranteed("one", 1);
  EXPECT_EQ(denied.outcome, "denied");
  EXPECT_THAT(denied.reason, HasSubstr("SMT Alignment Error: requested 1 cpus not multiple cpus per core = 2"));
  EXPECT_EQ(node.guaranteed("two", 2).cpus.to_string(), "0-1");
}

TEST_P(FullCoresSimulated, GrowsByWholeCoresOfTheKindThatAContainerHas) {
  SimulatedNode node(machine_.file(), full("best-effort", false));
  EXPECT_EQ(node.guaranteed("pod", 1).cpus.to_string(), "4");
  const OperationResult grown =
      node.apply(R"({"op":"update","pod":"pod","container":"main","cpu_request_milli":2000,"cpu_limit_milli":2000})");
  EXPECT_EQ(grown.cpus.to_string(), "4-5") << grown.reason;
}

TEST_P(FullCoresSimulated, NeverGivesPartsOfCores) {
  for (const char* const policy : {"none", "best-effort", "restricted"}) {
    SimulatedNode node(machine_.file(), full(policy, false));
    std::mt19937 dice(7);
    std::vector<std::string> pods;
    for (int step = 0; step < 120; ++step) {
      if (!pods.empty() && dice() % 3 == 0) {
        const std::size_t gone = dice() % pods.size();
        node.apply(fmt::format(R"({{"op":"remove_pod","pod":"{}"}})", pods[gone]));
        pods.erase(pods.begin() + static_cast<std::ptrdiff_t>(gone));
        continue;
      }
      const std::string pod = fmt::format("pod-{}", step);
      const OperationResult outcome = node.guaranteed(pod, 1 + static_cast<int>(dice() % 5));
      pods.push_back(pod);
      EXPECT_TRUE(are_whole_cores(outcome.cpus)) << policy << ", step " << step << ": " << outcome.cpus.to_string();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OneNodeOrTwo, FullCoresSimulated, ::testing::Bool());

}  // namespace
}  // namespace topolet::simulate
