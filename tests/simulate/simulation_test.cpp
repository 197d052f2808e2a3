#include "core/simulate/simulation.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/simulate/simulated_node.hpp"

namespace topolet::simulate {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kTwoNodes = "pack:2 numa:1 core:4 pu:2";

TEST(Simulation, MovesTheNeighboursOffWhatAContainerGetsForItself) {
  SimulatedNode node(kTwoNodes);
  EXPECT_EQ(node.burstable("web", 500).cpus.to_string(), "0-15");
  const OperationResult trader = node.guaranteed("trader", 4);
  EXPECT_EQ(trader.outcome, "unpinned");  // no plugin is enabled
  EXPECT_EQ(trader.mode, "exclusive");
  EXPECT_EQ(trader.cpus.to_string(), "0-3");
  ASSERT_THAT(trader.changed, SizeIs(1));
  EXPECT_EQ(trader.changed[0].pod, "web");
  EXPECT_EQ(trader.changed[0].cpus.to_string(), "4-15");
  const OperationResult stopped = node.apply(R"({"op":"remove_pod","pod":"trader"})");
  EXPECT_EQ(stopped.outcome, "released");
  ASSERT_THAT(stopped.changed, SizeIs(1));
  EXPECT_EQ(stopped.changed[0].cpus.to_string(), "0-15");
}

TEST(Simulation, SaysWhatAPluginSaid) {
  SimulatedNode node(kTwoNodes, {"--plugins.enable=numa"});
  const OperationResult trader = node.guaranteed("trader", 2);
  EXPECT_EQ(trader.outcome, "placed");
  EXPECT_THAT(trader.reason, HasSubstr("numa: all 2 CPUs requested fit on node 0"));
  ASSERT_TRUE(trader.verdicts.has_value());
  EXPECT_EQ(trader.verdicts->candidates, 3U);
}

TEST(Simulation, DeniesWhatDoesNotFitAndGoesOn) {
  SimulatedNode node(kTwoNodes);
  const OperationResult big = node.guaranteed("big", 16);
  EXPECT_EQ(big.outcome, "denied");
  EXPECT_THAT(big.reason, HasSubstr("requested=16, available=15"));
  EXPECT_TRUE(big.cpus.empty());
  EXPECT_FALSE(big.is_invalid_line);
  EXPECT_EQ(node.guaranteed("small", 1).mode, "exclusive");
}

TEST(Simulation, KeepsOccupiedCpusFromEverybody) {
  SimulatedNode node(kTwoNodes, {"--placement.min-shared-cpus=0"});
  EXPECT_EQ(node.burstable("web", 100).cpus.to_string(), "0-15");
  const OperationResult occupied = node.apply(R"({"op":"occupy","cpus":"0-7"})");
  ASSERT_THAT(occupied.changed, SizeIs(1));
  EXPECT_EQ(occupied.changed[0].cpus.to_string(), "8-15");
  EXPECT_EQ(node.guaranteed("a", 2).cpus.to_string(), "8-9");
  EXPECT_TRUE(node.apply(R"({"op":"occupy","cpus":"8"})").is_invalid_line);
  EXPECT_THAT(node.apply(R"({"op":"occupy","cpus":"8"})").reason, HasSubstr("held by container main of pod a"));
  EXPECT_THAT(node.apply(R"({"op":"occupy","cpus":"99"})").reason, HasSubstr("CPUs 99 are not online"));
  EXPECT_THAT(node.apply(R"({"op":"vacate","cpus":"8"})").reason, HasSubstr("CPUs 8 are not occupied"));
  EXPECT_EQ(node.apply(R"({"op":"vacate","cpus":"0-7"})").changed[0].cpus.to_string(), "0-7,10-15");
}

TEST(Simulation, PlacesAnewWhoLosesCpusThatGoOffline) {
  SimulatedNode node(kTwoNodes);
  node.burstable("web", 100);
  EXPECT_EQ(node.guaranteed("trader", 2).cpus.to_string(), "0-1");
  const OperationResult offline = node.apply(R"({"op":"offline","cpus":"1"})");
  ASSERT_THAT(offline.changed, SizeIs(2));
  EXPECT_EQ(offline.changed[0].pod, "trader");
  EXPECT_EQ(offline.changed[0].mode, "exclusive");
  EXPECT_EQ(offline.changed[1].mode, "shared");
  EXPECT_EQ(offline.changed[0].cpus.to_string(), "0,2");
  EXPECT_EQ(offline.changed[1].cpus.to_string(), "3-15");
  EXPECT_THAT(node.apply(R"({"op":"online","cpus":"2"})").reason, HasSubstr("offline are 1"));
  const OperationResult online = node.apply(R"({"op":"online","cpus":"1"})");
  ASSERT_THAT(online.changed, SizeIs(2));
  EXPECT_EQ(online.changed[0].cpus.to_string(), "0-1");
  EXPECT_EQ(online.changed[1].cpus.to_string(), "2-15");
}

TEST(Simulation, LetsContainersTakeUpCpusThatComeBack) {
  SimulatedNode node(kTwoNodes, {"--plugins.enable=numa"});
  node.apply(R"({"op":"offline","cpus":"0,15"})");
  EXPECT_EQ(node.besteffort("any").cpus.to_string(), "1-14");
  EXPECT_EQ(node.burstable("near", 1000).cpus.to_string(), "1-7");
  const OperationResult online = node.apply(R"({"op":"online","cpus":"0"})");
  ASSERT_THAT(online.changed, SizeIs(2));
  EXPECT_EQ(online.changed[0].cpus.to_string(), "0-14");
  EXPECT_EQ(online.changed[1].cpus.to_string(), "0-7");
  EXPECT_EQ(node.apply(R"({"op":"online","cpus":"15"})").changed[0].cpus.to_string(), "0-15");
}

TEST(Simulation, TakesACpuThatIsGoneFromAContainerOnceItIsFound) {
  SimulatedNode node(kTwoNodes, {"--plugins.enable=numa"});
  node.apply(R"({"op":"runtime","next":"lost"})");
  EXPECT_EQ(node.guaranteed("trader", 4).cpus.to_string(), "0-3");
  node.apply(R"({"op":"offline","cpus":"0"})");
  const OperationResult found = node.apply(R"({"op":"clock","advance_s":2})");
  ASSERT_THAT(found.changed, SizeIs(1));
  EXPECT_EQ(found.changed[0].cpus.to_string(), "1-4");
}

TEST(Simulation, TakesNoMoreFromFailedContainersThanItMust) {
  SimulatedNode node(kTwoNodes, {"--plugins.enable=numa"});
  node.guaranteed("small", 2);
  node.guaranteed("large", 6);
  node.guaranteed("other", 4);
  node.apply(R"({"op":"exit","pod":"small","container":"main","exit_code":1})");
  node.apply(R"({"op":"exit","pod":"large","container":"main","exit_code":1})");
  EXPECT_EQ(node.guaranteed("new", 6).outcome, "placed");
  EXPECT_EQ(node.apply(R"({"op":"create","pod":"small","container":"main","cpu_request_milli":2000,)"
                       R"("cpu_limit_milli":2000,"memory_limit":1048576})")
                .cpus.to_string(),
            "0-1");
}

TEST(Simulation, KeepsWhatIsLeftWhereNothingElseIsFree) {
  SimulatedNode node("numa:1 core:4 pu:1");
  EXPECT_EQ(node.guaranteed("trader", 3).cpus.to_string(), "0-2");
  const OperationResult offline = node.apply(R"({"op":"offline","cpus":"2"})");
  ASSERT_THAT(offline.changed, SizeIs(1));
  EXPECT_EQ(offline.changed[0].cpus.to_string(), "0-1");
}

TEST(Simulation, RefusesToTakeTheLastCpuOffline) {
  SimulatedNode node("numa:1 core:2 pu:1");
  const OperationResult offline = node.apply(R"({"op":"offline","cpus":"0-1"})");
  EXPECT_TRUE(offline.is_invalid_line);
  EXPECT_EQ(node.besteffort("web").cpus.to_string(), "0-1");
}

TEST(Simulation, TakesAFailedCallForNoMistakeOfTheLine) {
  SimulatedNode node(kTwoNodes);
  for (const char* line : {R"({"op":"run_pod","pod":"p"})", R"({"op":"create","pod":"q","container":"c"})",
                           R"({"op":"stop","pod":"q","container":"c"})", R"({"op":"remove_pod","pod":"q"})"}) {
    if (std::string_view(line).find("create") != std::string_view::npos) node.apply(R"({"op":"run_pod","pod":"q"})");
    node.apply(R"({"op":"restart","at":"before-answer","repeat":false})");
    const OperationResult failed = node.apply(line);
    EXPECT_EQ(failed.outcome, "error") << line;
    EXPECT_FALSE(failed.is_invalid_line) << line << ": " << failed.reason;
    EXPECT_THAT(failed.reason, HasSubstr("topoletd was killed at")) << line;
    if (std::string_view(line).find("create") != std::string_view::npos) node.apply(line);
  }
}

TEST(Simulation, HoldsWhatALostAnswerLeavesOpenAndGivesItToTheRetry) {
  SimulatedNode node(kTwoNodes);
  node.apply(R"({"op":"runtime","next":"lost"})");
  const OperationResult lost = node.guaranteed("trader", 2);
  EXPECT_EQ(lost.outcome, "error");
  EXPECT_FALSE(lost.is_invalid_line);
  EXPECT_EQ(lost.cpus.to_string(), "0-1");
  EXPECT_EQ(node.guaranteed("other", 2).cpus.to_string(), "2-3");
  const OperationResult retried = node.apply(
      R"({"op":"create","pod":"trader","container":"main","cpu_request_milli":2000,"cpu_limit_milli":2000,"memory_limit":1048576})");
  EXPECT_EQ(retried.outcome, "placed");
  EXPECT_EQ(retried.cpus.to_string(), "0-1");
}

TEST(Simulation, MakesOneContainerOfALostCreateAndItsRetry) {
  SimulatedNode node(kTwoNodes);
  node.apply(R"({"op":"runtime","next":"lost"})");
  node.guaranteed("trader", 2);
  EXPECT_THAT(node.apply(R"({"op":"create","pod":"trader","container":"main","cpu_request_milli":2000,)"
                         R"("cpu_limit_milli":2000,"memory_limit":1048576})")
                  .reason,
              HasSubstr("repeated create: the container stays where it was placed"));
  EXPECT_EQ(node.apply(R"({"op":"remove_pod","pod":"trader"})").outcome, "released");
  node.apply(R"({"op":"clock","advance_s":60})");
  EXPECT_THAT(node.snapshot().ledger.entries, IsEmpty());
}

TEST(Simulation, SaysWhatIsHeldForACreateThatIsLostAgain) {
  SimulatedNode node(kTwoNodes);
  node.apply(R"({"op":"runtime","next":"lost"})");
  node.guaranteed("trader", 2);
  node.apply(R"({"op":"runtime","next":"lost"})");
  const OperationResult again = node.apply(
      R"({"op":"create","pod":"trader","container":"main","cpu_request_milli":2000,"cpu_limit_milli":2000,"memory_limit":1048576})");
  EXPECT_EQ(again.outcome, "error");
  EXPECT_EQ(again.cpus.to_string(), "0-1");
}

TEST(Simulation, SaysOfADeniedAttemptNothingOfAnEarlierOne) {
  SimulatedNode node(kTwoNodes);
  node.guaranteed("trader", 2);
  node.apply(R"({"op":"exit","pod":"trader","container":"main","exit_code":1})");
  const OperationResult denied = node.apply(
      R"({"op":"create","pod":"trader","container":"main","cpu_request_milli":16000,"cpu_limit_milli":16000,"memory_limit":1048576})");
  EXPECT_EQ(denied.outcome, "denied");
  EXPECT_EQ(denied.mode, "");
  EXPECT_TRUE(denied.cpus.empty());
}

TEST(Simulation, RunsNobodyOnReservedCpusThatAreOccupied) {
  SimulatedNode node(kTwoNodes, {"--placement.reserved-cpus=0-1"});
  node.apply(R"({"op":"run_pod","pod":"dns","namespace":"kube-system","qos":"besteffort"})");
  EXPECT_EQ(node.apply(R"({"op":"create","pod":"dns","container":"main"})").cpus.to_string(), "0-15");
  const OperationResult occupied = node.apply(R"({"op":"occupy","cpus":"1-2"})");
  ASSERT_THAT(occupied.changed, SizeIs(1));
  EXPECT_EQ(occupied.changed[0].cpus.to_string(), "0,3-15");
}

TEST(Simulation, SaysWhyAContainerOfWholeCpusShares) {
  const auto reason = [](const std::vector<std::string>& flags) {
    SimulatedNode node(kTwoNodes, flags);
    return node.guaranteed("trader", 2).reason;
  };
  EXPECT_THAT(reason({"--plugins.enable=numa", "--placement.exclusive=never"}),
              HasSubstr("(2 requested); it shares CPUs: placement.exclusive = never"));
  SimulatedNode full(kTwoNodes, {"--placement.when-full=share"});
  EXPECT_THAT(full.guaranteed("big", 16).reason,
              ::testing::EndsWith("(placement.when-full = share): runs in the shared pool"));
}

TEST(Simulation, BlamesThePoolOnlyIfItIsEmpty) {
  SimulatedNode node(kTwoNodes, {"--plugins.enable=numa"});
  node.apply(R"({"op":"run_pod","pod":"web","qos":"burstable","annotations":{"topolet.io/numa-policy":"single"}})");
  const OperationResult denied =
      node.apply(R"({"op":"create","pod":"web","container":"main","cpu_request_milli":500})");
  EXPECT_EQ(denied.outcome, "denied");
  EXPECT_THAT(denied.reason,
              HasSubstr("default/web/main cannot be placed: numa: annotation topolet.io/numa-policy = 'single'"));
}

TEST(Simulation, FindsFreeNodesAmongManyThatAreEquallyFar) {
  for (const char* taken : {"0-3", "0,32,64,96,128,160", "0,16,48,64,96,112,144,160"}) {
    SimulatedNode node("numa:12 core:8 pu:2", {"--plugins.enable=numa", "--numa.policy=restricted"});
    node.apply(std::string(R"({"op":"occupy","cpus":")") + taken + "\"}");
    const OperationResult big = node.guaranteed("big", 32);
    EXPECT_EQ(big.outcome, "placed") << taken << ": " << big.reason;
  }
}

TEST(Simulation, SendsBackWhoHadToLeaveOnceThereIsRoom) {
  SimulatedNode node(kTwoNodes, {"--plugins.enable=numa"});
  EXPECT_EQ(node.burstable("web", 1000).cpus.to_string(), "0-7");
  const OperationResult big = node.guaranteed("big", 15);
  ASSERT_THAT(big.changed, SizeIs(1));
  EXPECT_EQ(big.changed[0].cpus.to_string(), "15");
  const OperationResult stopped = node.apply(R"({"op":"remove_pod","pod":"big"})");
  ASSERT_THAT(stopped.changed, SizeIs(1));
  EXPECT_EQ(stopped.changed[0].cpus.to_string(), "0-7");
}

TEST(Simulation, GivesBackWhatTheRuntimeRefused) {
  SimulatedNode node(kTwoNodes);
  node.apply(R"({"op":"runtime","next":"refuse"})");
  const OperationResult refused = node.guaranteed("trader", 2);
  EXPECT_EQ(refused.outcome, "error");
  EXPECT_TRUE(refused.cpus.empty());
  EXPECT_EQ(node.guaranteed("other", 2).cpus.to_string(), "0-1");
}

TEST(Simulation, TakesTheCriFormAsItIs) {
  SimulatedNode node(kTwoNodes);
  node.apply(R"({"op":"run_pod","pod":"raw"})");
  const OperationResult raw = node.apply(
      R"({"op":"create","pod":"raw","container":"c","cpu_shares":2048,"cpu_quota":200000,"cpu_period":100000,
          "oom_score_adj":-997,"memory_limit_in_bytes":1048576,"cgroup_parent":"/kubepods/podraw"})");
  EXPECT_EQ(raw.mode, "exclusive");
  EXPECT_EQ(raw.cpus.size(), 2U);
  const OperationResult bound =
      node.apply(R"({"op":"create","pod":"raw","container":"d","cpu_shares":2,"cpuset_cpus":"6-7"})");
  EXPECT_EQ(bound.mode, "shared");
  EXPECT_EQ(bound.cpus.to_string(), "6-7");
}

TEST(Simulation, KeepsAResizedContainerOnTheNodesOfItsPod) {
  SimulatedNode node(kTwoNodes, {"--plugins.enable=numa", "--numa.scope=pod"});
  node.apply(R"({"op":"run_pod","pod":"p","qos":"guaranteed",
      "resources":{"cpu_request_milli":6000,"cpu_limit_milli":6000,"memory_limit":8192}})");
  const std::string create = R"({"op":"create","pod":"p","container":")";
  node.apply(create + R"(a","cpu_request_milli":2000,"cpu_limit_milli":2000,"memory_limit":4096})");
  node.apply(create + R"(b","cpu_request_milli":4000,"cpu_limit_milli":4000,"memory_limit":4096})");
  const OperationResult resized =
      node.apply(R"({"op":"update","pod":"p","container":"a","cpu_request_milli":2500,"cpu_limit_milli":2500})");
  EXPECT_EQ(resized.mode, "shared");
  EXPECT_TRUE(resized.cpus.is_subset_of(CpuSet::range(0, 7))) << resized.cpus.to_string() << ": " << resized.reason;
}

TEST(Simulation, EndsInitContainersBeforeTheNextContainerOfTheirPod) {
  SimulatedNode node("pack:1 core:8 pu:1", {"--plugins.enable=numa"});
  node.apply(R"({"op":"run_pod","pod":"p","qos":"guaranteed"})");
  const auto create = [&node](const std::string& container, int cpus, const std::string& more) {
    return node.apply(fmt::format(
        R"({{"op":"create","pod":"p","container":"{}","cpu_request_milli":{}000,"cpu_limit_milli":{}000{}}})",
        container, cpus, cpus, more));
  };
  EXPECT_EQ(create("fetch", 4, R"(,"init":true)").outcome, "placed");
  EXPECT_EQ(create("warm", 5, R"(,"init":true)").outcome, "placed") << "the first has ended";
  EXPECT_EQ(create("main", 4, "").outcome, "placed") << "the second, too";
  EXPECT_EQ(create("beside", 4, "").outcome, "denied") << "the main one has not";
}

TEST(Simulation, NamesPodsAndContainersThatAreNotThere) {
  SimulatedNode node(kTwoNodes);
  EXPECT_THAT(node.apply(R"({"op":"create","pod":"x","container":"c"})").reason, HasSubstr("run_pod must come first"));
  EXPECT_THAT(node.apply(R"({"op":"stop","pod":"x","container":"c"})").reason, HasSubstr("pod x is not running"));
  node.besteffort("x");
  EXPECT_THAT(node.apply(R"({"op":"exit","pod":"x","container":"c","exit_code":0})").reason,
              HasSubstr("pod x has no container c"));
  EXPECT_THAT(node.apply(R"({"op":"run_pod","pod":"x"})").reason, HasSubstr("is already running"));
}

TEST(Simulation, TakesDevicesThatTheMachineDoesNotName) {
  SimulatedNode node(kTwoNodes);
  EXPECT_EQ(node.apply(R"({"op":"device","path":"/dev/fpga0","kind":"fpga","nodes":"1"})").outcome, "ok");
  const auto& devices = node.snapshot().topology->os_devices;
  ASSERT_THAT(devices, SizeIs(1));
  EXPECT_EQ(devices[0].name, "/dev/fpga0");
  EXPECT_EQ(devices[0].cpus.to_string(), "8-15");
  EXPECT_TRUE(node.apply(R"({"op":"device","path":"/dev/fpga1","nodes":"7"})").is_invalid_line);
  EXPECT_TRUE(node.apply(R"({"op":"device","path":"/dev/fpga1","pci":"0000:65:00.0"})").is_invalid_line);
  EXPECT_THAT(node.snapshot().topology->os_devices, SizeIs(1));
  EXPECT_EQ(node.apply(R"({"op":"device","path":"/dev/fpga0","kind":"fpga","nodes":"0"})").outcome, "ok");
  ASSERT_THAT(node.snapshot().topology->os_devices, SizeIs(1)) << "a path names one device";
  EXPECT_EQ(node.snapshot().topology->os_devices[0].cpus.to_string(), "0-7");
}

OperationResult create_with_handler(SimulatedNode& node, const std::string& handler) {
  node.apply(R"({"op":"run_pod","pod":"of-)" + handler + R"(","qos":"guaranteed","runtime_handler":")" + handler +
             R"("})");
  return node.apply(R"({"op":"create","pod":"of-)" + handler +
                    R"(","container":"main","cpu_request_milli":1000,"cpu_limit_milli":1000,"memory_limit":1048576})");
}

TEST(Simulation, PlacesContainersOfEveryHandlerButThoseOfVirtualMachines) {
  SimulatedNode node(kTwoNodes, {"--plugins.enable=numa"});
  CpuSet exclusive;
  for (const char* handler : {"", "nvidia", "nvidia-cdi", "nvidia-legacy", "high-performance", "runsc", "own"}) {
    const OperationResult placed = create_with_handler(node, handler);
    EXPECT_EQ(placed.mode, "exclusive") << handler;
    EXPECT_FALSE(placed.cpus.intersects(exclusive)) << handler;
    exclusive |= placed.cpus;
  }
  const OperationResult foreign = create_with_handler(node, "kata-qemu");
  EXPECT_EQ(foreign.mode, "foreign");
  EXPECT_TRUE(foreign.cpus.empty());
}

TEST(Simulation, LeavesTheHandlersAloneThatItIsTold) {
  SimulatedNode node(kTwoNodes, {"--placement.foreign-handlers=run*", "--placement.foreign-handlers=default"});
  EXPECT_EQ(create_with_handler(node, "runsc").mode, "foreign");
  EXPECT_EQ(create_with_handler(node, "").mode, "foreign");
  EXPECT_EQ(create_with_handler(node, "kata").mode, "exclusive");
  SimulatedNode none(kTwoNodes, {"--placement.foreign-handlers=none"});
  EXPECT_EQ(create_with_handler(none, "kata").mode, "exclusive");
  SimulatedNode listed(kTwoNodes, {"--placement.handlers=youki"});
  EXPECT_EQ(create_with_handler(listed, "runc").mode, "foreign");
  EXPECT_EQ(create_with_handler(listed, "youki").mode, "exclusive");
}

TEST(Simulation, TakesDistancesAndIsolatedCpusFromItsCaller) {
  topology::DiscoverOptions machine = machine_named(kTwoNodes);
  machine.distances = {10, 32, 32, 10};
  machine.isolated = *CpuSet::parse("15");
  const auto topology = discover(machine);
  ASSERT_TRUE(topology.has_value());
  EXPECT_EQ((*topology)->distance(0, 1), 32U);
  EXPECT_TRUE((*topology)->distances_known);
  machine.distances = {10, 20};
  EXPECT_THAT(discover(machine).error().message, HasSubstr("2 distances for 2 NUMA nodes"));
  EXPECT_THAT((*topology)->isolated.to_string(), "15");
}

}  // namespace
}  // namespace topolet::simulate
