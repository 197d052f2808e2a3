// Which zones a pod gets on a node, and which nodes are better than others.
#include "cluster/extender/choose.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/extender/rank.hpp"
#include "tests/extender/support.hpp"

namespace topolet::extender {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

class ChooseTest : public ::testing::Test {
 protected:
  Demand demand(const std::vector<ContainerSpec>& containers, const json& annotations = json::object(),
                const ZoneDefaults& defaults = {}) {
    json pod = pod_object("p", containers, annotations);
    pod["metadata"]["uid"] = "12345678-0000";
    auto read = read_demand(api::read_pod(pod), defaults, book_.names());
    EXPECT_TRUE(read.has_value()) << read.error().message;
    return *std::move(read);
  }
  Demand demand(const std::string& cpu, ZonePolicy policy = ZonePolicy::kFewest,
                ZoneStrategy strategy = ZoneStrategy::kPacked) {
    return demand({{.cpu = cpu}}, json::object(), {policy, strategy});
  }
  void publish(const NodeSpec& node) { book_.set_node(read_node_zones(topology_object(node), book_.names())); }
  /// "main:0,1 side:0", or why there is none.
  std::string zones(const Demand& wanted, const std::string& node = "n1") {
    const Result<Choice> choice = book_.choose(node, wanted);
    // The faster way must come to the same.
    const Result<Fit> fit = book_.fit(node, wanted);
    EXPECT_EQ(fit.has_value(), choice.has_value());
    if (!choice) {
      EXPECT_EQ(fit.error().message, choice.error().message);
      return choice.error().message;
    }
    EXPECT_EQ(fit->most_zones, choice->fit.most_zones);
    EXPECT_EQ(fit->preference, choice->fit.preference);
    EXPECT_EQ(fit->effective, choice->fit.effective);
    std::string text;
    for (const ContainerZones& container : choice->containers)
      text += fmt::format("{}{}:{}", text.empty() ? "" : " ", container.container, fmt::join(container.zones, ","));
    return text;
  }
  std::vector<std::pair<std::string, int>> scores(const Demand& wanted, const std::vector<std::string_view>& names) {
    std::vector<std::pair<std::string, int>> all;
    for (const auto& [name, score] : score_nodes(book_, wanted, names)) all.emplace_back(name, score);
    return all;
  }

  ZoneBook book_;
};

TEST_F(ChooseTest, OneZoneThatIsFullestIfPackedAndEmptiestIfSpread) {
  publish({.zones = {{8}, {5}, {3}, {6}}});
  EXPECT_EQ(zones(demand("4")), "main:1");
  EXPECT_EQ(zones(demand("4", ZonePolicy::kFewest, ZoneStrategy::kSpread)), "main:0");
  EXPECT_EQ(zones(demand("8", ZonePolicy::kSingle)), "main:0");
  EXPECT_EQ(zones(demand("9", ZonePolicy::kSingle)),
            "no zone has 9 free CPUs, the best has 8: never, as the largest has 8");
}

TEST_F(ChooseTest, BalancedLeavesCpusAndMemoryInLikeParts) {
  publish({.zones = {{.available = 8, .allocatable = 16, .memory = "32Gi"},
                     {.available = 8, .allocatable = 16, .memory = "16Gi"}}});
  const auto wanted = [&](const std::string& memory) {
    return demand({{.cpu = "4", .memory = memory}}, {{"topolet.io/zone-strategy", "balanced"}});
  };
  EXPECT_EQ(zones(wanted("16Gi")), "main:0") << "a quarter is left of both";
  EXPECT_EQ(zones(wanted("1Gi")), "main:1");
}

TEST_F(ChooseTest, FewestZonesAndNearTogether) {
  publish({.zones = {{4}, {4}, {4}, {4}},
           .distances = {{10, 32, 12, 32}, {32, 10, 32, 12}, {12, 32, 10, 32}, {32, 12, 32, 10}}});
  EXPECT_EQ(zones(demand("4")), "main:0");
  EXPECT_EQ(zones(demand("8")), "main:0,2");
  EXPECT_EQ(zones(demand("12")), "main:0,1,2");
  EXPECT_EQ(zones(demand("16", ZonePolicy::kAny)), "main:0,1,2,3");
  EXPECT_EQ(zones(demand("17")), "its zones have no 17 free CPUs, but 16: never, as the empty node has 16");
}

TEST_F(ChooseTest, NearSetsOfManyZonesAreGrown) {
  NodeSpec node;
  for (int i = 0; i < 24; ++i) {
    node.zones.push_back({4});
    node.distances.emplace_back();
    for (int j = 0; j < 24; ++j) node.distances.back().push_back(i == j ? 10 : (i / 6 == j / 6 ? 12 : 32));
  }
  node.zones[0].available = node.zones[1].available = 1;
  publish(node);
  EXPECT_EQ(zones(demand("20")), "main:6,7,8,9,10") << "of the first six, two have little";
  EXPECT_EQ(zones(demand("90")), "main:0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23");
}

TEST_F(ChooseTest, WhatANodeEnforcesCounts) {
  publish({.zones = {{10}, {10}}, .policy = "single-numa-node"});
  EXPECT_EQ(zones(demand("20", ZonePolicy::kAny)),
            "no zone has 20 free CPUs, the best has 10: never, as the largest has 10");
  publish({.zones = {{.available = 4, .allocatable = 8}, {.available = 4, .allocatable = 8}}, .policy = "restricted"});
  EXPECT_THAT(zones(demand("8")), HasSubstr("restricted: "));
  EXPECT_EQ(zones(demand("4")), "main:0");
  publish({.zones = {{.available = 8, .allocatable = 8}, {.available = 4, .allocatable = 8}}, .policy = "restricted"});
  EXPECT_EQ(zones(demand("12")), "main:0,1");
}

TEST_F(ChooseTest, MemoryHugePagesAndDevicesCountInTheSameZone) {
  publish({.zones = {{.available = 8, .memory = "1Gi", .devices = {{"vendor.com/gpu", 2}}},
                     {.available = 8, .memory = "32Gi", .devices = {{"vendor.com/gpu", 0}}},
                     {.available = 8, .memory = "32Gi", .devices = {{"vendor.com/gpu", 1}}}}});
  EXPECT_EQ(zones(demand({{.memory = "2Gi"}})), "main:1");
  EXPECT_EQ(zones(demand({{.memory = "2Gi", .devices = {{"vendor.com/gpu", 1}}}})), "main:2");
  EXPECT_EQ(zones(demand({{.memory = "512Mi", .devices = {{"vendor.com/gpu", 2}}}})), "main:0");
  EXPECT_EQ(zones(demand({{.memory = "1536Mi", .devices = {{"vendor.com/gpu", 2}}}})), "main:0,1");
  EXPECT_EQ(zones(demand({{.devices = {{"vendor.com/gpu", 4}}}})),
            "no zones with 4 free CPUs and the memory and devices asked for: never, even when the node is empty");
  EXPECT_EQ(zones(demand({{.devices = {{"other.com/nic", 1}}}})), "main:0") << "no zone tells of it";
}

TEST_F(ChooseTest, TellsWhetherItIsOfUseToWait) {
  publish({.zones = {{.available = 4, .allocatable = 16}, {.available = 2, .allocatable = 8}}});
  EXPECT_EQ(zones(demand("12", ZonePolicy::kSingle)), "no zone has 12 free CPUs, the best has 4: not now");
  EXPECT_EQ(zones(demand("17", ZonePolicy::kSingle)),
            "no zone has 17 free CPUs, the best has 4: never, as the largest has 16");
  EXPECT_EQ(zones(demand("17")), "its zones have no 17 free CPUs, but 6: not now");
  EXPECT_EQ(zones(demand("25")), "its zones have no 25 free CPUs, but 6: never, as the empty node has 24");
  EXPECT_EQ(zones(demand({{.cpu = "4", .memory = "65Gi"}}, {{"topolet.io/zone-policy", "single"}})),
            "no zone with 4 free CPUs and the memory and devices asked for: never, even when the node is empty");
  EXPECT_EQ(zones(demand({{.name = "a", .cpu = "3"}, {.name = "b", .cpu = "6"}})),
            "its zones have no 3 free CPUs, but 0: not now");
  EXPECT_EQ(
      zones(demand({{.name = "a", .cpu = "12"}, {.name = "b", .cpu = "12"}}, {{"topolet.io/zone-policy", "single"}})),
      "no zone has 12 free CPUs, the best has 4: never, even when the node is empty");
}

TEST_F(ChooseTest, SeveralContainersHaveEachTheirOwnZone) {
  publish({.zones = {{6}, {8}}});
  EXPECT_EQ(zones(demand({{.name = "a", .cpu = "6"}, {.name = "b", .cpu = "8"}})), "a:0 b:1");
  // The one that is taken first has to make room for the other.
  publish({.zones = {{.available = 8, .memory = "4Gi"}, {.available = 8, .memory = "64Gi"}}});
  EXPECT_EQ(zones(demand({{.name = "a", .cpu = "7", .memory = "1Gi"}, {.name = "b", .cpu = "6", .memory = "8Gi"}})),
            "a:0 b:1");
  EXPECT_EQ(zones(demand({{.name = "a", .cpu = "8"}, {.name = "b", .cpu = "8"}, {.name = "c", .cpu = "1"}})),
            "its zones have no 1 free CPU, but 0: never, even when the node is empty");
  publish({.zones = {{10}, {10}}, .scope = "pod"});
  EXPECT_EQ(zones(demand({{.name = "a", .cpu = "4"}, {.name = "b", .cpu = "8"}})), "a:0,1 b:0,1");
}

TEST_F(ChooseTest, ThoseOfOnePodHaveOneZoneWhereThereIsRoom) {
  publish({.zones = {{5}, {10}, {8}, {12}}});
  EXPECT_EQ(zones(demand({{.name = "a", .cpu = "4"}, {.name = "b", .cpu = "4"}})), "a:2 b:2");
  EXPECT_EQ(zones(demand({{.name = "a", .cpu = "1"}, {.name = "b", .cpu = "4"}}, json::object(),
                         {ZonePolicy::kFewest, ZoneStrategy::kSpread})),
            "a:3 b:3");
  EXPECT_EQ(zones(demand({{.name = "a", .cpu = "4"}, {.name = "b", .cpu = "9"}})), "a:0 b:1") << "in no zone together";
}

TEST_F(ChooseTest, ThoseThatShareCpusAreToHaveRoomBesideTheOthers) {
  publish({.zones = {{5}, {4}, {6}}});
  EXPECT_EQ(zones(demand("4")), "main:1");
  EXPECT_EQ(zones(demand({{.name = "main", .cpu = "4"}, {.name = "proxy", .cpu = "100m"}})), "main:0");
  EXPECT_EQ(zones(demand({{.name = "main", .cpu = "4"}, {.name = "proxy", .cpu = "1500m"}})), "main:2");
  EXPECT_EQ(zones(demand({{.name = "main", .cpu = "6"}, {.name = "proxy", .cpu = "100m"}})), "main:2")
      << "rather there than nowhere";
  EXPECT_EQ(zones(demand({{.name = "main", .cpu = "4"}, {.name = "init", .cpu = "1500m", .kind = "init"}})), "main:1")
      << "it has ended by then";
}

TEST_F(ChooseTest, AnInitContainerHasWhatAMainOneWillHave) {
  publish({.zones = {{4}, {6}}});
  EXPECT_EQ(zones(demand({{.name = "main", .cpu = "6"}, {.name = "init", .cpu = "6", .kind = "init"}})),
            "init:1 main:1");
  EXPECT_EQ(
      zones(demand({{.name = "side", .cpu = "4", .kind = "sidecar"}, {.name = "init", .cpu = "6", .kind = "init"}})),
      "side:0 init:1");
  EXPECT_THAT(
      zones(demand({{.name = "side", .cpu = "6", .kind = "sidecar"}, {.name = "init", .cpu = "5", .kind = "init"}},
                   {{"topolet.io/zone-policy", "single"}})),
      HasSubstr("no zone has 5"));
}

TEST_F(ChooseTest, AnInitContainerMayBeAsLargeAsTheNode) {
  publish({.zones = {{4}, {4}}});
  EXPECT_EQ(zones(demand({{.name = "main", .cpu = "8"}, {.name = "init", .cpu = "8", .kind = "init"}})),
            "init:0,1 main:0,1");
}

TEST_F(ChooseTest, ManyEqualContainersDoNotTakeLong) {
  publish({.zones = {{10}, {10}, {10}, {10}, {10}, {10}, {10}, {10}}});
  std::vector<ContainerSpec> containers;
  for (int i = 0; i < 24; ++i) containers.push_back({.name = fmt::format("c{}", i), .cpu = "3"});
  EXPECT_TRUE(book_.choose("n1", demand(containers)).has_value()) << "three in each zone";
  containers.push_back({.name = "one more", .cpu = "3"});
  EXPECT_FALSE(book_.choose("n1", demand(containers, {{"topolet.io/zone-policy", "single"}})).has_value());
}

TEST_F(ChooseTest, OnlyWholeCpusOfGuaranteedPodsAreForZones) {
  EXPECT_TRUE(demand("4").is_for_zones());
  EXPECT_FALSE(demand("1500m").is_for_zones());
  EXPECT_FALSE(demand({{.cpu = "4"}}, {{"topolet.io/cpus", "shared"}}).is_for_zones());
  EXPECT_EQ(demand({{.cpu = "2"}}, {{"topolet.io/cpus", "exclusive"}}).containers.at(0).asks.get(kCpu), 2000);
  EXPECT_FALSE(demand({{.cpu = "1500m"}}, {{"topolet.io/cpus", "exclusive"}}).is_for_zones());
  EXPECT_FALSE(
      demand({{.cpu = "10m"}}, {{"topolet.io/containers", R"({"main": {"cpus": "exclusive"}})"}}).is_for_zones());
  const Demand one = demand({{.name = "a", .cpu = "2"}, {.name = "b", .cpu = "2"}},
                            {{"topolet.io/containers", R"({"b": {"cpus": "none"}})"}});
  ASSERT_EQ(one.containers.size(), 1U);
  EXPECT_EQ(one.containers[0].name, "a");
  json of_system = pod_object("p", {{.cpu = "2"}});
  of_system["metadata"]["namespace"] = "kube-system";
  EXPECT_FALSE(read_demand(api::read_pod(of_system), {}, book_.names())->is_for_zones());
  const auto wrong =
      read_demand(api::read_pod(pod_object("p", {{}}, {{"topolet.io/zone-policy", "few"}})), {}, book_.names());
  ASSERT_FALSE(wrong.has_value());
  EXPECT_EQ(wrong.error().message, "annotation topolet.io/zone-policy: 'few' is none of single, fewest, any");
}

TEST_F(ChooseTest, RequestsAreRoundedUpWhereTheNodesDoThat) {
  const auto cpus = [this](const char* name_space, const std::vector<std::string>& patterns) {
    json pod = pod_object("p", {{.cpu = "1500m"}}, {{"topolet.io/cpus", "exclusive"}});
    pod["metadata"]["namespace"] = name_space;
    const auto read = read_demand(api::read_pod(pod), {.exclusive_namespaces = patterns}, book_.names());
    return read->is_for_zones() ? read->containers.at(0).asks.get(kCpu) : 0;
  };
  EXPECT_EQ(cpus("kube-system", {}), 2000);
  EXPECT_EQ(cpus("trading-eu", {}), 0);
  EXPECT_EQ(cpus("trading-eu", {"db", "trading-*"}), 2000);
  EXPECT_EQ(cpus("trading", {"db", "trading-*"}), 0);
}

TEST_F(ChooseTest, ANodeWithoutZonesIsForPodsThatNeedNoSingleOne) {
  publish({.name = "with", .zones = {{8}}});
  const auto wanted = demand("4");
  const FilterResult passing = filter_nodes(book_, wanted, {"with", "without"});
  EXPECT_THAT(passing.node_names, ElementsAre("with", "without"));
  EXPECT_THAT(scores(wanted, {"with", "without"}), ElementsAre(Pair("with", 10), Pair("without", 0)));
  const FilterResult single = filter_nodes(book_, demand("4", ZonePolicy::kSingle), {"with", "without"});
  EXPECT_THAT(single.node_names, ElementsAre("with"));
  EXPECT_THAT(single.unresolvable, ElementsAre(Pair("without", "topolet: publishes no NodeResourceTopology")));
}

/// The example of the field: 20 CPUs, a node of 2 × 10 and one of 2 × 20.
TEST_F(ChooseTest, TheNodeWithAZoneThatIsLargeEnoughIsTheOnlyOneOrTheBest) {
  publish({.name = "small", .zones = {{10}, {10}}, .policy = "single-numa-node"});
  publish({.name = "large", .zones = {{20}, {20}}, .policy = "single-numa-node"});
  EXPECT_THAT(filter_nodes(book_, demand("20"), {"small", "large"}).node_names, ElementsAre("large"));
  publish({.name = "small", .zones = {{10}, {10}}});
  publish({.name = "large", .zones = {{20}, {20}}});
  EXPECT_THAT(filter_nodes(book_, demand("20"), {"small", "large"}).node_names, ElementsAre("small", "large"));
  EXPECT_THAT(scores(demand("20"), {"small", "large"}), ElementsAre(Pair("small", 6), Pair("large", 10)));
}

TEST_F(ChooseTest, FewestZonesThenWhatIsLeftThenWhatCanBeHad) {
  publish({.name = "full", .zones = {{4}}});
  publish({.name = "weak", .zones = {{.available = 6, .effective_milli = "3000"}}});
  publish({.name = "strong", .zones = {{.available = 6}}});
  publish({.name = "empty", .zones = {{16}}});
  publish({.name = "split", .zones = {{2}, {2}}});
  publish({.name = "pieces", .zones = {{1}, {1}, {1}, {1}}});
  const std::vector<std::string_view> names = {"pieces", "split", "empty", "strong", "weak", "full"};
  EXPECT_THAT(scores(demand("4"), names), ElementsAre(Pair("pieces", 3), Pair("split", 6), Pair("empty", 7),
                                                      Pair("strong", 9), Pair("weak", 8), Pair("full", 10)));
  EXPECT_THAT(scores(demand("4", ZonePolicy::kFewest, ZoneStrategy::kSpread), {"full", "empty"}),
              ElementsAre(Pair("full", 7), Pair("empty", 10)));
  EXPECT_THAT(scores(demand("4", ZonePolicy::kAny), {"pieces", "empty"}),
              ElementsAre(Pair("pieces", 10), Pair("empty", 1)))
      << "packed, and the number of zones does not count";
}

TEST_F(ChooseTest, ZonesAreReadAsOthersWriteThemToo) {
  json object = topology_object({.zones = {{8}, {8}}});
  object.erase("attributes");
  object["topologyPolicies"] = {"SingleNUMANodePodLevel"};
  object["zones"][1]["name"] = "package-0";
  object["zones"].push_back({{"name", "node-7"}, {"type", "Die"}});
  object["zones"].push_back(
      {{"name", "node-8"}, {"type", "Node"}, {"resources", {{{"name", "cpu"}, {"available", "many"}}, 3}}});
  object["zones"].push_back("nothing");
  const NodeZones read = read_node_zones(object, book_.names());
  EXPECT_EQ(read.policy, NodePolicy::kSingleNumaNode);
  EXPECT_TRUE(read.is_pod_scope);
  ASSERT_EQ(read.zones.size(), 2U);
  EXPECT_EQ(read.zones[1].os_index, 8U);
  json many = topology_object({});
  for (int i = 0; i < 5000; ++i) many["zones"].push_back({{"name", fmt::format("node-{}", i)}, {"type", "Node"}});
  EXPECT_EQ(read_node_zones(many, book_.names()).zones.size(), 256U);
  EXPECT_EQ(read_node_zones(json::array({1, 2}), book_.names()).name, "");
}

}  // namespace
}  // namespace topolet::extender
