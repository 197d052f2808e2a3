// Who gets the CPUs that the kernel isolates, as placement.isolated, annotations and schedulers have it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/simulate/smt_nodes.hpp"

namespace topolet::simulate {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// Two nodes of four CPUs each; of node 0 CPUs 2-3 are isolated, of node 1 CPUs 6-7.
SimulatedNode isolating(const std::string& rule, Flags more = {}) {
  topology::DiscoverOptions machine = machine_named("pack:2 numa:1 core:4 pu:1");
  machine.isolated = *CpuSet::parse("2-3,6-7");
  for (const char* flag : {"--plugins.enable=numa", "--daemon.node-name=n1", "--placement.exclusive-namespaces=rt"})
    more.emplace_back(flag);
  more.push_back("--placement.isolated=" + rule);
  return SimulatedNode(machine, more);
}

std::string zone_of_main(const std::string& nodes, const std::string& more = "") {
  return R"("topolet.io/zone":"{\"v\":1,\"node\":\"n1\",\"containers\":{\"main\":[)" + nodes + "]}" + more + "}\"";
}

TEST(IsolatedRule, GivesThemToAllOrToThoseWhoSaySo) {
  const std::string require = R"("topolet.io/isolated":"require")";
  SimulatedNode annotated = isolating("annotated");
  EXPECT_EQ(annotated.guaranteed("a", 2).cpus.to_string(), "0-1");
  const OperationResult ignored = run(annotated, "b", "guaranteed", 1000, require);
  EXPECT_EQ(ignored.cpus.to_string(), "4") << ignored.reason;
  EXPECT_THAT(ignored.reason, HasSubstr("topolet.io/isolated is ignored"));
  SimulatedNode prefer = isolating("prefer");
  EXPECT_EQ(prefer.guaranteed("a", 2).cpus.to_string(), "2-3");
  const OperationResult required = run(prefer, "b", "guaranteed", 2000, require);
  EXPECT_EQ(required.cpus.to_string(), "6-7") << required.reason;
  EXPECT_THAT(required.reason, Not(HasSubstr("ignored")));
  EXPECT_EQ(prefer.guaranteed("c", 1).cpus.size(), 1U) << "of the pool";
  EXPECT_EQ(run(prefer, "d", "guaranteed", 1000, require).outcome, "denied");
  SimulatedNode always = isolating("always", {"--placement.when-full=share"});
  EXPECT_EQ(always.guaranteed("a", 4).cpus.to_string(), "2-3,6-7");
  EXPECT_EQ(always.guaranteed("b", 1).outcome, "denied");
  EXPECT_EQ(always.burstable("c", 100).cpus.to_string().substr(0, 1), "0");
}

TEST(IsolatedRule, StaysInTheZoneOfAScheduler) {
  SimulatedNode node = isolating("prefer", {"--placement.min-shared-cpus=0"});
  EXPECT_EQ(run(node, "a", "guaranteed", 2000, zone_of_main("1")).cpus.to_string(), "6-7");
  const OperationResult second = run(node, "b", "guaranteed", 2000, zone_of_main("1"));
  EXPECT_EQ(second.cpus.to_string(), "4-5") << "of the pool there, not isolated ones elsewhere: " << second.reason;
  EXPECT_EQ(second.reason_code, "best-score");
  const OperationResult third = run(node, "c", "guaranteed", 2000, zone_of_main("1"));
  EXPECT_EQ(third.cpus.to_string(), "2-3") << "isolated ones, if it cannot be there";
  EXPECT_EQ(third.reason_code, "zone-missed");
}

TEST(IsolatedRule, LeavesThemToThoseForWhomASchedulerHasCountedOnThem) {
  SimulatedNode node = isolating("prefer", {"--placement.min-shared-cpus=0"});
  EXPECT_EQ(run(node, "b", "guaranteed", 1000, zone_of_main("1", R"(,\"pool\":[\"main\"])")).cpus.to_string(), "4");
  EXPECT_EQ(run(node, "a", "guaranteed", 2000, zone_of_main("1")).cpus.to_string(), "6-7");
}

TEST(IsolatedRule, IsThatOfTheCreateForAContainerThatGrows) {
  SimulatedNode node = isolating("prefer", {"--placement.min-shared-cpus=0"});
  EXPECT_EQ(node.guaranteed("a", 3).cpus.to_string(), "2-3,6");
  EXPECT_EQ(node.guaranteed("b", 2).cpus.size(), 2U) << "of the pool";
  const auto grow = [&node](const char* pod, int cpus) {
    return node.apply(std::string(R"({"op":"update","pod":")") + pod + R"(","container":"main","cpu_request_milli":)" +
                      std::to_string(cpus * 1000) + R"(,"cpu_limit_milli":)" + std::to_string(cpus * 1000) + "}");
  };
  EXPECT_EQ(grow("b", 3).cpus.size(), 3U);
  EXPECT_THAT(grow("a", 4).cpus.to_string(), "2-3,6-7");
}

TEST(IsolatedRule, CrowdsNobodyWhoSharesOthers) {
  SimulatedNode node = isolating("prefer");
  EXPECT_EQ(node.burstable("shares", 1500).cpus.to_string(), "0-1");
  const OperationResult isolated = node.guaranteed("a", 2);
  EXPECT_EQ(isolated.cpus.to_string(), "2-3") << "as if nobody shared CPUs there: " << isolated.reason;
  EXPECT_THAT(isolated.reason, Not(HasSubstr("more than would be left")));
}

TEST(IsolatedRule, IsFollowedWhereThePoolHasRoomForTheRestOfThePod) {
  SimulatedNode node = isolating("always");
  EXPECT_EQ(node.burstable("much", 2000).cpus.to_string(), "0-1");
  EXPECT_EQ(node.burstable("little", 200).cpus.to_string(), "4-5");
  node.apply(R"({"op":"run_pod","pod":"p","qos":"guaranteed","resources":{"cpu_request_milli":2500,)"
             R"("cpu_limit_milli":2500}})");
  const OperationResult main = node.apply(R"({"op":"create","pod":"p","container":"main","cpu_request_milli":2000,)"
                                          R"("cpu_limit_milli":2000,"memory_limit":4096})");
  EXPECT_EQ(main.cpus.to_string(), "6-7") << main.reason;
  const OperationResult proxy = node.apply(R"({"op":"create","pod":"p","container":"proxy","cpu_request_milli":500,)"
                                           R"("cpu_limit_milli":500,"memory_limit":4096})");
  EXPECT_EQ(proxy.cpus.to_string(), "4-5") << proxy.reason;
}

/// Two nodes of eight CPUs each; of node 0 CPUs 4-7 are isolated, of node 1 CPUs 10-15.
class IsolatedCpus : public ::testing::Test {
 protected:
  SimulatedNode node(const std::string& isolated = "4-7,10-15") {
    topology::DiscoverOptions machine = machine_named("pack:2 numa:1(memory=64GB) core:8 pu:1");
    machine.isolated = *CpuSet::parse(isolated);
    return SimulatedNode(machine, {"--plugins.enable=numa", "--placement.isolated=prefer"});
  }
  static void start_pod(SimulatedNode& node, int milli) {
    const std::string cpus = std::to_string(milli);
    node.apply(R"({"op":"run_pod","pod":"pod","qos":"guaranteed","resources":{"cpu_request_milli":)" + cpus +
               R"(,"cpu_limit_milli":)" + cpus + R"(,"memory_limit":8192}})");
  }
  static OperationResult create(SimulatedNode& node, const std::string& name, int milli) {
    const std::string cpus = std::to_string(milli);
    return node.apply(R"({"op":"create","pod":"pod","container":")" + name + R"(","cpu_request_milli":)" + cpus +
                      R"(,"cpu_limit_milli":)" + cpus + R"(,"memory_limit":4096})");
  }
};

TEST_F(IsolatedCpus, AreTakenFromNobodyWhoShares) {
  SimulatedNode machine = node();
  EXPECT_EQ(machine.burstable("shared", 3500).cpus.to_string(), "0-3");
  const OperationResult placed = machine.guaranteed("a", 2);
  EXPECT_EQ(placed.cpus.to_string(), "4-5") << "the node with the fewer isolated ones: " << placed.reason;
  EXPECT_THAT(placed.reason, Not(HasSubstr("shared containers")));
}

TEST_F(IsolatedCpus, AreTakenWhereTheRestOfThePodCanShareOthers) {
  SimulatedNode machine = node("4-7,8-15");
  machine.apply(R"({"op":"occupy","cpus":"4"})");
  start_pod(machine, 3100);
  EXPECT_EQ(create(machine, "app", 3000).cpus.to_string(), "5-7") << "node 1 has no other CPUs";
  EXPECT_EQ(create(machine, "proxy", 100).cpus.to_string(), "0-3");
}

TEST_F(IsolatedCpus, AreLookedForByTheProxyThatComesBeforeItsApp) {
  SimulatedNode machine = node();
  start_pod(machine, 5100);
  EXPECT_EQ(create(machine, "proxy", 100).cpus.to_string(), "8-9") << "only there are five";
  EXPECT_EQ(create(machine, "app", 5000).cpus.to_string(), "10-14");
}

TEST_F(IsolatedCpus, AreForTheWholePod) {
  SimulatedNode machine = node();
  start_pod(machine, 5000);
  EXPECT_EQ(create(machine, "app", 3000).cpus.to_string(), "10-12") << "node 0 has four";
  EXPECT_EQ(create(machine, "loader", 2000).cpus.to_string(), "13-14");
}

}  // namespace
}  // namespace topolet::simulate
