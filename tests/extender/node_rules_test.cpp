// Choices on nodes that publish who gets CPUs of its own there, and of which kind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/extender/choose.hpp"
#include "cluster/extender/rank.hpp"
#include "cluster/extender/zone_book.hpp"
#include "tests/extender/support.hpp"

namespace topolet::extender {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Attributes = std::vector<std::pair<std::string, std::string>>;

class NodeRulesTest : public ::testing::Test {
 protected:
  Demand demand(const std::vector<ContainerSpec>& containers, const json& annotations = json::object(),
                const std::string& name_space = "default") {
    json pod = pod_object("p", containers, annotations);
    pod["metadata"]["uid"] = "12345678-0000";
    pod["metadata"]["namespace"] = name_space;
    auto read = read_demand(api::read_pod(pod), {}, book_.names(), book_.rules());
    EXPECT_TRUE(read.has_value()) << read.error().message;
    return *std::move(read);
  }
  Demand demand(const std::string& cpu, const json& annotations = json::object(),
                const std::string& name_space = "default") {
    return demand({{.cpu = cpu}}, annotations, name_space);
  }
  void publish(const NodeSpec& node) { book_.set_node(read_node_zones(topology_object(node), book_.names())); }
  /// Zone 0 has 3 CPUs in the pool and 2 isolated ones, zone 1 4 and 4.
  void publish_isolated(const std::string& rule, Attributes more = {}) {
    more.emplace_back("topolet.io/isolated", rule);
    more.emplace_back("topolet.io/reserved-namespaces", "kube-system");
    publish({.zones = {{.available = rule == "always" ? 2 : 3, .pool = "3/4", .isolated = "2/2"},
                       {.available = 4, .pool = "4/4", .isolated = "4/4"}},
             .more = more});
  }
  /// "main:0,1 side:0", or why there is none.
  std::string zones(const Demand& wanted, const std::string& node = "n1") {
    const Result<Choice> choice = book_.choose(node, wanted);
    const Result<Fit> fit = book_.fit(node, wanted);
    EXPECT_EQ(fit.has_value(), choice.has_value());
    EXPECT_EQ(book_.check(node, wanted).has_value(), choice.has_value());
    if (!choice) return choice.error().message;
    std::string text;
    for (const ContainerZones& container : choice->containers)
      text += fmt::format("{}{}:{}", text.empty() ? "" : " ", container.container, fmt::join(container.zones, ","));
    return text;
  }
  std::string reserve(const std::string& uid, Demand wanted) {
    wanted.uid = uid;
    const auto reserved = book_.reserve("n1", wanted, now_);
    return reserved ? reserved->annotation : reserved.error().message;
  }
  std::int64_t free_of(ResourceId resource, std::size_t zone) { return book_.view("n1")->free.at(zone).get(resource); }

  ZoneBook book_;
  ZoneBook::Time now_{std::chrono::hours(1)};
};

TEST_F(NodeRulesTest, ReservedNamespacesAreThoseOfEachNode) {
  publish({.name = "old", .zones = {{4}}});
  publish({.name = "n1", .zones = {{4}}, .more = {{"topolet.io/reserved-namespaces", "monitoring,system"}}});
  const Demand of_kubernetes = demand("8", json::object(), "kube-system");
  EXPECT_TRUE(of_kubernetes.is_for_zones());
  EXPECT_EQ(zones(of_kubernetes, "old"), "") << "it shares CPUs there";
  EXPECT_THAT(zones(of_kubernetes, "n1"), HasSubstr("its zones have no 8 free CPUs, but 4"));
  const Demand of_monitoring = demand("8", json::object(), "monitoring");
  EXPECT_EQ(zones(of_monitoring, "n1"), "");
  EXPECT_THAT(zones(of_monitoring, "old"), HasSubstr("its zones have no 8 free CPUs"));
  EXPECT_EQ(zones(demand("4", {{"topolet.io/cpus", "exclusive"}}, "monitoring"), "n1"), "main:0");
  const FilterResult passing = filter_nodes(book_, of_monitoring, {"n1", "old", "unknown"});
  EXPECT_THAT(passing.node_names, ElementsAre("n1", "unknown"));
  EXPECT_EQ(score_nodes(book_, of_monitoring, {"n1"}).size(), 1U);
  EXPECT_EQ(reserve("m", of_monitoring), "") << "and is bound without a zone";
  EXPECT_EQ(book_.promise_count(), 0U);
}

TEST_F(NodeRulesTest, APodThatHasNoCpusOfItsOwnAnywhereIsOfNoConcern) {
  publish({.zones = {{4}}, .more = {{"topolet.io/reserved-namespaces", "kube-system"}}});
  EXPECT_FALSE(demand("8", json::object(), "kube-system").is_for_zones());
  publish({.name = "other", .zones = {{4}}, .more = {{"topolet.io/reserved-namespaces", ""}}});
  EXPECT_TRUE(demand("8", json::object(), "kube-system").is_for_zones());
  Demand single = demand("8", {{"topolet.io/zone-policy", "single"}}, "kube-system");
  EXPECT_THAT(filter_nodes(book_, single, {"n1", "other", "unknown"}).node_names, ElementsAre("n1", "unknown"));
}

TEST_F(NodeRulesTest, ExclusiveNamespacesAreThoseOfEachNode) {
  publish({.name = "old", .zones = {{4}}});
  publish(
      {.zones = {{4}},
       .more = {{"topolet.io/reserved-namespaces", "kube-system"}, {"topolet.io/exclusive-namespaces", "rt-*,db"}}});
  const json exclusive = {{"topolet.io/cpus", "exclusive"}};
  EXPECT_EQ(zones(demand("1500m", exclusive, "rt-a")), "main:0");
  EXPECT_EQ(zones(demand("1500m", exclusive, "rt-a"), "old"), "");
  EXPECT_EQ(zones(demand("1500m", exclusive, "web")), "");
}

TEST_F(NodeRulesTest, IsolatedCpusAreForThoseWhoseAnnotationCounts) {
  publish_isolated("annotated", {{"topolet.io/exclusive-namespaces", "rt"}});
  const json require = {{"topolet.io/isolated", "require"}};
  EXPECT_EQ(zones(demand("3")), "main:0");
  EXPECT_EQ(zones(demand("4", require, "rt")), "main:1");
  EXPECT_EQ(zones(demand("2", require, "rt")), "main:0");
  EXPECT_EQ(zones(demand("6", require, "rt")), "main:0,1");
  EXPECT_EQ(
      zones(demand("7", require, "rt")),
      "of the CPUs that the kernel isolates: its zones have no 7 free CPUs, but 6: never, as the empty node has 6");
  EXPECT_EQ(zones(demand("7", require, "web")), "main:0,1") << "it is ignored there";
  EXPECT_EQ(zones(demand({{.cpu = "4"}}, {{"topolet.io/containers", R"({"main": {"isolated": "require"}})"}}, "rt")),
            "main:1");
  publish({.name = "without", .zones = {{8}}, .more = {{"topolet.io/isolated", "annotated"}}});
  EXPECT_THAT(zones(demand("2", require, "kube-system"), "without"), "") << "it shares CPUs";
  publish({.name = "old", .zones = {{8}}});
  EXPECT_EQ(zones(demand("2", require, "rt"), "old"), "main:0") << "CPUs are all alike where nothing is told";
}

TEST_F(NodeRulesTest, IsolatedCpusComeFirstAndThenThoseOfThePool) {
  publish_isolated("prefer");
  EXPECT_EQ(reserve("a", demand("4")), R"({"by":"topolet-extender","containers":{"main":[1]},"gen":7,"node":"n1",)"
                                       R"("v":1,"zones":[1]})");
  EXPECT_EQ(free_of(kIsolatedCpu, 1), 0);
  EXPECT_EQ(free_of(kCpu, 1), 4000);
  const std::string of_pool = reserve("b", demand("4"));
  EXPECT_THAT(of_pool, HasSubstr(R"("pool":["main"])")) << "topoletd is told what was counted on";
  EXPECT_THAT(of_pool, HasSubstr(R"("zones":[1])"));
  EXPECT_EQ(free_of(kCpu, 1), 0);
  EXPECT_EQ(zones(demand("2")), "main:0");
  EXPECT_EQ(zones(demand({{.name = "a", .cpu = "2"}, {.name = "b", .cpu = "3"}})), "a:0 b:0");
  EXPECT_EQ(zones(demand("4")), "its zones have no 4 free CPUs, but 3: not now");
  EXPECT_EQ(zones(demand("3", {{"topolet.io/isolated", "require"}})),
            "of the CPUs that the kernel isolates: its zones have no 3 free CPUs, but 2: not now");
  EXPECT_EQ(zones(demand("2", {{"topolet.io/isolated", "require"}})), "main:0");
}

TEST_F(NodeRulesTest, OnlyIsolatedCpusCountWhereTheNodeGivesNoOthers) {
  publish_isolated("always");
  EXPECT_EQ(zones(demand("2")), "main:0");
  EXPECT_EQ(zones(demand("4")), "main:1");
  EXPECT_THAT(zones(demand("7", {{"topolet.io/isolated", "prefer"}})),
              HasSubstr("of the CPUs that the kernel isolates: its zones have no 7"))
      << "the annotation is ignored there";
  EXPECT_EQ(zones(demand("7", {{"topolet.io/isolated", "prefer"}, {"topolet.io/cpus", "exclusive"}}, "kube-system")),
            "main:0,1");
  reserve("a", demand("4"));
  EXPECT_EQ(free_of(kIsolatedCpu, 1), 0);
  EXPECT_EQ(zones(demand("4")), "of the CPUs that the kernel isolates: its zones have no 4 free CPUs, but 2: not now");
}

TEST_F(NodeRulesTest, WhatAnOlderAgentHasLeftBehindDoesNotCount) {
  const Attributes prefers = {{"topolet.io/isolated", "prefer"}};
  publish({.zones = {{.available = 4, .pool = "3/4", .isolated = "8/8"}}, .more = prefers});
  EXPECT_THAT(zones(demand("8")), HasSubstr("its zones have no 8 free CPUs, but 4"));
  publish({.zones = {{.available = 4, .pool = "3/4", .isolated = "some"}}, .more = prefers});
  EXPECT_EQ(zones(demand("4")), "main:0");
  const Attributes always = {{"topolet.io/isolated", "always"}, {"topolet.io/exclusive-namespaces", "rt"}};
  for (const NodeSpec& node :
       {NodeSpec{.zones = {{4}, {8}}, .more = always},
        NodeSpec{.zones = {{.available = 4, .pool = "3/4", .isolated = "2/2"}, {8}}, .more = always}}) {
    publish(node);
    EXPECT_EQ(zones(demand("8")), "main:1") << "CPUs are all alike";
    EXPECT_EQ(zones(demand("8", {{"topolet.io/isolated", "require"}}, "rt")), "main:1");
  }
}

TEST_F(NodeRulesTest, ContainersOfBothKindsHaveTheMemoryOfAZoneTogether) {
  publish_isolated("prefer");
  const auto pod = [this](const char* memory) {
    return demand({{.name = "a", .cpu = "2", .memory = memory}, {.name = "b", .cpu = "5", .memory = memory}});
  };
  EXPECT_EQ(zones(pod("1Gi")), "a:0 b:0,1");
  EXPECT_THAT(zones(pod("100Gi")), HasSubstr("memory"));
}

TEST_F(NodeRulesTest, APromiseThatIsFoundIsOfTheCpusThatItsAnnotationTells) {
  publish_isolated("prefer");
  const auto remember = [this](const std::string& uid, const char* pool) {
    Demand found = demand("2");
    found.uid = uid;
    const std::string text = fmt::format(R"({{"v":1,"node":"n1","zones":[1],"containers":{{"main":[1]}}{}}})", pool);
    book_.remember(found, *read_zone_annotation(text), now_);
  };
  remember("a", "");
  EXPECT_EQ(free_of(kIsolatedCpu, 1), 2000);
  EXPECT_EQ(free_of(kCpu, 1), 4000);
  remember("b", R"(,"pool":["main"])");
  EXPECT_EQ(free_of(kIsolatedCpu, 1), 2000);
  EXPECT_EQ(free_of(kCpu, 1), 2000);
}

TEST_F(NodeRulesTest, MemoryBesideNoCpusIsNobodys) {
  json object =
      topology_object({.zones = {{16}, {16}, {.available = 0, .memory = "256Gi", .devices = {{"v.com/gpu", 1}}}},
                       .policy = "best-effort",
                       .distances = {{10, 21, 14}, {21, 10, 16}, {14, 16, 10}}});
  object["zones"][2]["resources"].erase(0);
  book_.set_node(read_node_zones(object, book_.names()));
  EXPECT_EQ(zones(demand({{.cpu = "8", .memory = "80Gi"}})), "main:0,1");
  EXPECT_THAT(zones(demand({{.cpu = "8", .memory = "200Gi"}})), HasSubstr("memory"));
  EXPECT_EQ(zones(demand({{.cpu = "8", .memory = "8Gi", .devices = {{"v.com/gpu", 1}}}})), "main:0,2");
}

}  // namespace
}  // namespace topolet::extender
