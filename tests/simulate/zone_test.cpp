// The zone that a scheduler has chosen for a pod, when others come first, users write it themselves, or
// time passes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/simulate/smt_nodes.hpp"

namespace topolet::simulate {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kTwoZones = "pack:2 numa:1(memory=4294967296) core:4 pu:1";
constexpr const char* kTwelveZones = "pack:12 numa:1 core:4 pu:1";

SimulatedNode node_n1(const Flags& more = {}, const std::string& machine = kTwoZones) {
  Flags flags = {"--plugins.enable=numa", "--daemon.node-name=n1"};
  flags.insert(flags.end(), more.begin(), more.end());
  return SimulatedNode(machine, flags);
}

/// As the member of a pod's annotations.
std::string zone(const std::string& nodes, const std::string& containers = "", const std::string& node = "n1") {
  const std::string of_containers = containers.empty() ? "" : fmt::format(R"(,\"containers\":{{{}}})", containers);
  return fmt::format(R"("topolet.io/zone":"{{\"v\":1,\"node\":\"{}\",\"zones\":[{}]{}}}")", node, nodes, of_containers);
}

std::string creation_of(const std::string& pod, int cpus, const std::string& container = "main") {
  return fmt::format(R"({{"op":"create","pod":"{}","container":"{}","cpu_request_milli":{},"cpu_limit_milli":{},)"
                     R"("memory_limit":4096}})",
                     pod, container, cpus * 1000, cpus * 1000);
}

TEST(Zone, IsWhereTheContainerIsPlaced) {
  SimulatedNode node = node_n1();
  const OperationResult placed = run(node, "a", "guaranteed", 2000, zone("1"));
  EXPECT_EQ(placed.cpus.to_string(), "4-5") << placed.reason;
  EXPECT_EQ(placed.reason_code, "best-score");
  EXPECT_THAT(placed.reason, AllOf(HasSubstr("in the zone that the scheduler has chosen"), Not(HasSubstr("outside"))));
  EXPECT_EQ(run(node, "b", "burstable", 500, zone("1")).cpus.to_string(), "6-7") << "which shares CPUs there";
  EXPECT_EQ(run(node, "c", "besteffort", 0, zone("1")).cpus.to_string(), "6-7");
  EXPECT_EQ(run(node, "d", "guaranteed", 1000).cpus.to_string(), "6") << "the fullest, without a zone";
}

TEST(Zone, OfEachContainerIsItsOwn) {
  SimulatedNode node = node_n1();
  node.apply(R"({"op":"run_pod","pod":"a","qos":"guaranteed","annotations":{)" +
             zone("0,1", R"(\"main\":[1],\"side\":[0])") + "}}");
  EXPECT_EQ(node.apply(creation_of("a", 1)).cpus.to_string(), "4");
  EXPECT_EQ(node.apply(creation_of("a", 1, "side")).cpus.to_string(), "0");
  const OperationResult other = node.apply(creation_of("a", 1, "other"));
  EXPECT_EQ(other.reason_code, "best-score") << "it is not named, and so misses nothing";
}

TEST(Zone, BindsTheMemoryToo) {
  SimulatedNode node = node_n1({"--numa.memory=bind"});
  const OperationResult placed = run(node, "a", "guaranteed", 2000, zone("1"));
  EXPECT_EQ(placed.mems.to_string(), "1") << placed.reason;
}

TEST(Zone, IsAPlaceThatTheHostMayNotThinkOf) {
  SimulatedNode node = node_n1({}, kTwelveZones);
  const OperationResult placed = run(node, "a", "guaranteed", 8000, zone("3,10"));
  EXPECT_EQ(placed.cpus.to_string(), "12-15,40-43") << placed.reason;
  EXPECT_EQ(placed.reason_code, "best-score");
}

TEST(ZoneRace, LeavesTheNextBestPlaceIfTheZoneIsGone) {
  SimulatedNode node = node_n1();
  node.apply(R"({"op":"occupy","cpus":"4-6"})");
  const OperationResult placed = run(node, "a", "guaranteed", 2000, zone("1"));
  EXPECT_EQ(placed.outcome, "placed");
  EXPECT_EQ(placed.cpus.to_string(), "0-1");
  EXPECT_EQ(placed.reason_code, "zone-missed");
  EXPECT_THAT(placed.reason,
              HasSubstr("; outside the zone that the scheduler has chosen for it, node 1 (topolet.io/zone)"));
}

TEST(ZoneRace, DeniesIfTheZoneIsGoneAndRequired) {
  SimulatedNode node = node_n1({"--numa.zone=require"});
  node.apply(R"({"op":"occupy","cpus":"4-6"})");
  const OperationResult denied = run(node, "a", "guaranteed", 2000, zone("1"));
  EXPECT_EQ(denied.outcome, "denied");
  EXPECT_EQ(denied.reason_code, "plugin-rejected");
  EXPECT_THAT(denied.reason,
              HasSubstr("numa: it is not within node 1, which the scheduler has chosen (zone = require)"));
  EXPECT_THAT(node.snapshot().containers, IsEmpty());
  node.apply(R"({"op":"vacate","cpus":"4-6"})");
  EXPECT_EQ(node.apply(creation_of("a", 2)).cpus.to_string(), "4-5") << "the kubelet tries again";
  EXPECT_EQ(run(node, "b", "guaranteed", 2000).outcome, "placed") << "without a zone";
}

TEST(ZoneRace, WidensNothingForAUserWhoWritesIt) {
  SimulatedNode node = node_n1({"--placement.allowed-cpus=0-5", "--placement.reserved-cpus=4"});
  const OperationResult wide = run(node, "wide", "guaranteed", 2000, zone("1"));
  EXPECT_EQ(wide.cpus.to_string(), "0-1") << "of node 1 only CPU 5 may be used";
  EXPECT_EQ(wide.reason_code, "zone-missed");
  node.apply(R"({"op":"run_pod","pod":"dns","namespace":"kube-system","qos":"guaranteed","annotations":{)" + zone("1") +
             "}}");
  const OperationResult system = node.apply(creation_of("dns", 1));
  EXPECT_EQ(system.mode, "reserved") << "it gives no CPUs of its own";
  EXPECT_EQ(system.cpus.to_string(), "4-5");
  const OperationResult huge = run(node, "huge", "guaranteed", 6000, zone("0,1"));
  EXPECT_EQ(huge.outcome, "denied");
  EXPECT_EQ(huge.reason_code, "too-few-free-cpus");
}

TEST(ZoneRace, CountsForAUserOnlyIfItIsPermitted) {
  SimulatedNode node = node_n1({"--placement.annotations=cpus"});
  const OperationResult placed = run(node, "a", "guaranteed", 2000, zone("1"));
  EXPECT_EQ(placed.cpus.to_string(), "0-1");
  EXPECT_EQ(placed.reason_code, "best-score");
  EXPECT_THAT(placed.reason,
              HasSubstr("; annotation topolet.io/zone is ignored: placement.annotations does not list it"));
}

TEST(ZoneRace, DoesNotCountOnAnotherNode) {
  SimulatedNode node = node_n1({"--numa.zone=require"});
  const OperationResult placed = run(node, "a", "guaranteed", 2000, zone("1", "", "n2"));
  EXPECT_EQ(placed.cpus.to_string(), "0-1");
  EXPECT_EQ(placed.reason_code, "best-score");
  EXPECT_THAT(placed.reason,
              HasSubstr("; annotation topolet.io/zone is ignored: it is for node n2, and this is node n1"));
}

TEST(ZoneRace, IsRefusedIfItIsNonsense) {
  SimulatedNode node = node_n1();
  const OperationResult denied = run(node, "a", "guaranteed", 2000, R"("topolet.io/zone":"node 1")");
  EXPECT_EQ(denied.outcome, "denied");
  EXPECT_EQ(denied.reason_code, "invalid-annotation");
  EXPECT_THAT(denied.reason, HasSubstr("annotation topolet.io/zone = 'node 1': it is not valid JSON"));
}

TEST(ZoneRace, IsHistoryOnceTheContainerIsThere) {
  // Room in the zone comes only after the container is placed elsewhere.
  SimulatedNode node = node_n1({"--numa.zone=prefer"});
  node.apply(R"({"op":"occupy","cpus":"4-6"})");
  EXPECT_EQ(run(node, "a", "guaranteed", 2000, zone("1")).cpus.to_string(), "0-1");
  node.apply(R"({"op":"vacate","cpus":"4-6"})");
  EXPECT_THAT(node.apply(R"({"op":"restart"})").changed, IsEmpty());
  EXPECT_EQ(cpus_of(node, "a").to_string(), "0-1");
  const OperationResult grown =
      node.apply(R"({"op":"update","pod":"a","container":"main","cpu_request_milli":3000,"cpu_limit_milli":3000})");
  EXPECT_EQ(grown.cpus.to_string(), "0-2") << grown.reason;
  EXPECT_EQ(grown.reason_code, "best-score");
  for (const placement::LedgerEntry& entry : node.snapshot().ledger.entries)
    EXPECT_TRUE(entry.settings.empty()) << "nothing of it is kept";
  const OperationResult offline = node.apply(R"({"op":"offline","cpus":"2"})");
  ASSERT_FALSE(offline.changed.empty());
  EXPECT_EQ(offline.changed[0].cpus.to_string(), "0-1,3");
  EXPECT_THAT(offline.changed[0].reason, Not(HasSubstr("zone")));
}

TEST(ZoneRace, IsHistoryForTheNextAttempt) {
  SimulatedNode node = node_n1({"--placement.crash-hold=0", "--numa.zone=require"});
  EXPECT_EQ(run(node, "a", "guaranteed", 2000, zone("1")).cpus.to_string(), "4-5");
  node.apply(R"({"op":"exit","pod":"a","container":"main","exit_code":1})");
  node.apply(R"({"op":"occupy","cpus":"4-7"})");
  const OperationResult again = node.apply(creation_of("a", 2));
  EXPECT_EQ(again.outcome, "placed") << again.reason;
  EXPECT_EQ(again.cpus.to_string(), "0-1");
  EXPECT_EQ(again.reason_code, "best-score");
}

TEST(ZoneRace, IsHistoryForSharedContainersThatMove) {
  SimulatedNode node = node_n1();
  EXPECT_EQ(run(node, "shared", "burstable", 500, zone("1")).cpus.to_string(), "4-7");
  EXPECT_EQ(run(node, "a", "guaranteed", 4000, zone("1")).cpus.to_string(), "4-7");
  EXPECT_EQ(cpus_of(node, "shared").to_string(), "0-3") << "it makes room";
  node.apply(R"({"op":"restart"})");
  EXPECT_EQ(cpus_of(node, "shared").to_string(), "0-3");
}

TEST(ZoneRace, CountsForTheCreateThatIsTriedAgain) {
  SimulatedNode node = node_n1();
  node.apply(R"({"op":"runtime","next":"refuse"})");
  EXPECT_EQ(run(node, "a", "guaranteed", 2000, zone("1")).outcome, "error");
  EXPECT_EQ(node.apply(creation_of("a", 2)).cpus.to_string(), "4-5");
  node.apply(R"({"op":"runtime","next":"lost"})");
  run(node, "b", "guaranteed", 2000, zone("1"));
  EXPECT_EQ(node.apply(creation_of("b", 2)).cpus.to_string(), "6-7");
}

}  // namespace
}  // namespace topolet::simulate
