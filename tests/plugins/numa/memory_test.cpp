// memory = bind: which nodes have enough memory, and to which ones a container is bound.
#include "plugins/numa/memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <topolet/testing.hpp>

#include <optional>

namespace topolet::numa {
namespace {

using sdk::Set;
using sdk::testing::Container;
using sdk::testing::FakeHost;
using sdk::testing::Ledger;
using sdk::testing::Machine;
using sdk::testing::Plugin;
using sdk::testing::Request;
using sdk::testing::set_of;
using ::testing::HasSubstr;

using Values = std::vector<std::pair<std::string, std::string>>;
constexpr std::int64_t kGiB = std::int64_t{1} << 30;

Container asking(std::int64_t memory, std::vector<std::pair<std::string, std::int64_t>> huge_pages = {}) {
  return {.memory_request_bytes = memory, .huge_page_limits = std::move(huge_pages)};
}

/// Two nodes of 4 GiB and four CPUs.
class NumaMemory : public ::testing::Test {
 protected:
  std::vector<sdk::testing::Verdict> score(const Container& container, std::uint32_t cpus, Values options = {}) {
    options.emplace_back("memory", "bind");
    request_ = std::make_unique<Request>(machine_, ledger_, container, cpus);
    return Plugin(topolet_plugin_v1, host_, options).score(*request_);
  }
  std::string bound(const Container& container, std::uint32_t cpus, const Set& nodes, const Set& on,
                    Values options = {{"memory", "bind"}}) {
    const Request request(machine_, ledger_, container, cpus);
    const auto adjusted = Plugin(topolet_plugin_v1, host_, options).adjust(request, request.position(nodes), on);
    return adjusted.bound ? adjusted.mems.to_string() : adjusted.reason;
  }
  std::size_t at(const Set& nodes) const { return request_->position(nodes); }

  Machine machine_{"pack:2 numa:1(memory=4294967296) core:4 pu:1"};
  Ledger ledger_{machine_};
  FakeHost host_;
  std::unique_ptr<Request> request_;
};

TEST(NumaMemoryOutsideNodes, IsOnTheEmptiestNodeOfThePackage) {
  const Machine machine("pack:2 numa:2(memory=4294967296) core:2 pu:1");
  topolet_topology view = machine.view();
  std::vector<topolet_node> nodes(view.nodes, view.nodes + view.node_count);
  nodes[3].cpus = {nullptr, 0};  // CPUs 6 and 7 are outside any node
  view.nodes = nodes.data();
  Ledger ledger(machine);
  const Set outside = set_of({6, 7});
  const Set all = set_of({0, 1, 2});
  const auto bound = [&](std::int64_t bytes) {
    const NodeMemory memory(view, ledger.view(), {}, true, {});
    const auto chosen = choose_memory_nodes(
        view, memory, {.bytes = bytes, .cpus = outside.view(), .preferred = {}, .allowed = all.view()});
    return chosen ? chosen->to_string() : "";
  };
  EXPECT_EQ(bound(kGiB), "2") << "of the same package";
  ledger.place_exclusive(asking(kGiB), set_of({0}), {}, set_of({0}));
  EXPECT_EQ(bound(6 * kGiB), "1-2") << "node 0 has less left";
  EXPECT_EQ(bound(12 * kGiB), "") << "3 GiB of node 0 are free";
}

TEST_F(NumaMemory, ThatIsNotBoundIsSaid) {
  EXPECT_EQ(bound(asking(kGiB), 2, set_of({0}), set_of({0}), {}), "memory counts as a preference only (memory = none)");
  EXPECT_EQ(bound(asking(0), 2, set_of({0}), set_of({0}), {}), "") << "it asks for none";
}

TEST_F(NumaMemory, RejectsANodeWithTooLittleMemoryAndSaysWhatItHas) {
  ledger_.place_exclusive(asking(kGiB * 5 / 2), set_of({0}), {}, set_of({0}));
  const auto verdicts = score(asking(2 * kGiB), 2);
  EXPECT_EQ(verdicts[at(set_of({0}))].kind, TOPOLET_VERDICT_REJECT);
  EXPECT_EQ(verdicts[at(set_of({0}))].reason,
            "node 0 has 1.5 GiB of 4.0 GiB memory free, but the container needs 2.0 GiB");
  EXPECT_EQ(verdicts[at(set_of({1}))].score, 100);
}

TEST_F(NumaMemory, NamesCpusAndMemoryThatAreBothShort) {
  ledger_.place_exclusive(asking(3 * kGiB), set_of({0, 1}), {}, set_of({0}));
  EXPECT_EQ(score(asking(2 * kGiB), 3)[0].reason,
            "node 0 has 2 of 4 CPUs free, but the container requests 3; it has 1.0 GiB of 4.0 GiB memory free, but the "
            "container needs 2.0 GiB");
}

TEST_F(NumaMemory, ChoosesMoreNodesForWhatFitsOnNone) {
  const auto verdicts = score(asking(6 * kGiB), 2);
  EXPECT_EQ(verdicts[at(set_of({0}))].reason,
            "node 0 has 4.0 GiB of 4.0 GiB memory free, but the container needs 6.0 GiB");
  EXPECT_EQ(verdicts[at(set_of({0, 1}))].score, 100) << "the narrowest that could hold it";
  EXPECT_EQ(score(asking(6 * kGiB), 2, {{"policy", "restricted"}})[at(set_of({0, 1}))].score, 100);
  EXPECT_EQ(score(asking(6 * kGiB), 2, {{"policy", "single-numa-node"}})[at(set_of({0, 1}))].kind,
            TOPOLET_VERDICT_REJECT);
}

TEST_F(NumaMemory, RestrictedMayDenySharedContainersForMemoryOnly) {
  ledger_.place_exclusive(asking(3 * kGiB), set_of({0}), {}, set_of({0}));
  ledger_.place_exclusive(asking(3 * kGiB), set_of({4}), {}, set_of({1}));
  Container shared = asking(2 * kGiB);
  shared.qos = TOPOLET_QOS_BURSTABLE;
  shared.cpu_request_milli = 500;
  EXPECT_EQ(score(shared, 0, {{"policy", "restricted"}})[at(set_of({0, 1}))].kind, TOPOLET_VERDICT_REJECT);
  EXPECT_EQ(score(shared, 0)[at(set_of({0, 1}))].kind, TOPOLET_VERDICT_SCORE);
}

TEST_F(NumaMemory, CountsReservedMemory) {
  EXPECT_EQ(score(asking(2 * kGiB), 2, {{"reserved-memory", "0:3Gi"}})[0].reason,
            "node 0 has 1.0 GiB of 1.0 GiB memory free, but the container needs 2.0 GiB");
  EXPECT_EQ(score(asking(2 * kGiB), 2, {{"reserved-memory", "99Gi"}})[0].reason,
            "node 0 has 0 B of 0 B memory free, but the container needs 2.0 GiB");
}

TEST_F(NumaMemory, WithoutBindOnlyPrefersNodesWithEnoughMemory) {
  ledger_.place_exclusive(asking(3 * kGiB), set_of({0}));
  const Request request(machine_, ledger_, asking(2 * kGiB), 2);
  const auto verdicts = Plugin(topolet_plugin_v1, host_).score(request);
  EXPECT_EQ(verdicts[0].kind, TOPOLET_VERDICT_SCORE);
  EXPECT_LE(verdicts[0].score, -60);
  EXPECT_THAT(verdicts[0].reason, HasSubstr("only 1.0 GiB of 4.0 GiB memory free, 2.0 GiB needed"));
  EXPECT_EQ(verdicts[1].score, 100);
}

TEST_F(NumaMemory, WithoutBindIgnoresMemoryThatNoCandidateHas) {
  const Request request(machine_, ledger_, asking(100 * kGiB), 2);
  const auto verdicts = Plugin(topolet_plugin_v1, host_).score(request);
  EXPECT_EQ(verdicts[request.position(set_of({0}))].score, 100);
  EXPECT_EQ(verdicts[request.position(set_of({0, 1}))].score, 70);
}

TEST_F(NumaMemory, SaysThatItTakesMoreNodesForTheMemory) {
  EXPECT_THAT(score(asking(6 * kGiB), 2)[at(set_of({0, 1}))].reason,
              HasSubstr("; fewer nodes cannot hold the 6.0 GiB of memory needed"));
}

TEST_F(NumaMemory, BindsToTheNodesOfTheCpus) {
  EXPECT_EQ(bound(asking(kGiB), 2, set_of({1}), set_of({4, 5})), "1");
  EXPECT_EQ(bound(asking(kGiB), 2, set_of({0, 1}), set_of({0, 4})), "0-1");
  EXPECT_EQ(bound(asking(kGiB), 0, set_of({0}), machine_.cpus_of_node(0)), "0");
}

TEST_F(NumaMemory, AddsNodesUntilTheMemorySuffices) {
  EXPECT_EQ(bound(asking(6 * kGiB), 2, set_of({0, 1}), set_of({0, 1})), "0-1");
  EXPECT_THAT(bound(asking(9 * kGiB), 2, set_of({0, 1}), set_of({0, 1})), HasSubstr("9.0 GiB"));
}

TEST_F(NumaMemory, BindsOnlyContainersWithALimitAndOnlyWithTheOption) {
  EXPECT_EQ(bound({}, 2, set_of({0}), set_of({0, 1})), "");
  EXPECT_EQ(bound(asking(kGiB), 2, set_of({0}), set_of({0, 1}), {}),
            "memory counts as a preference only (memory = none)");
  EXPECT_EQ(bound(asking(kGiB), 2, set_of({0}), set_of({0, 1}), {{"memory", "bind"}, {"policy", "none"}}), "0");
}

TEST(NumaMemoryNodes, LeavesMemoryOnlyNodesAloneAndFindsTheNearestOfNodesWithoutMemory) {
  // Nodes 0 and 2 have the CPUs, 1 and 3 are memory beside them.
  const Machine machine("pack:2 [numa(memory=4294967296)] [numa(memory=1073741824)] core:2 pu:1");
  Ledger ledger(machine);
  FakeHost host;
  Plugin plugin(topolet_plugin_v1, host, {{"memory", "bind"}});
  const auto nodes = sdk::nodes(machine.view());
  Set memory_only;
  Set cpu_nodes;
  for (const topolet_node& node : nodes) (node.memory_only != 0 ? memory_only : cpu_nodes).insert(node.os_index);
  ASSERT_EQ(memory_only.size(), 2U);
  const Request request(machine, ledger, asking(3 * kGiB), 1);
  const auto adjusted = plugin.adjust(request, 0, set_of({0}));
  EXPECT_TRUE((adjusted.mems & memory_only).empty());
  EXPECT_EQ(adjusted.mems.size(), 1U);
  const Request wide(machine, ledger, asking(7 * kGiB), 1);
  EXPECT_EQ(plugin.adjust(wide, 0, set_of({0})).mems.to_string(), cpu_nodes.to_string());

  topolet_topology view = machine.view();
  std::vector<topolet_node> changed(view.nodes, view.nodes + view.node_count);
  changed[cpu_nodes.indices()[0]].memory_bytes = 0;
  view.nodes = changed.data();
  const NodeMemory memory(view, ledger.view(), {}, true, {});
  EXPECT_EQ(memory.local_memory_node(cpu_nodes.indices()[0]), cpu_nodes.indices()[1]);
  const Set cpus = set_of({0});
  const auto mems =
      choose_memory_nodes(view, memory, {.bytes = kGiB, .cpus = cpus.view(), .allowed = cpu_nodes.view()});
  ASSERT_TRUE(mems);
  EXPECT_EQ(mems->to_string(), Set({cpu_nodes.view()}).to_string().substr(2));
}

/// A machine of two nodes whose pages can be told.
class NumaHugePages : public ::testing::Test {
 protected:
  NumaHugePages() : nodes_(machine_.view().nodes, machine_.view().nodes + machine_.view().node_count) {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      nodes_[i].huge_pages = &pages_[i];
      nodes_[i].huge_pages_count = 1;
    }
    view_.nodes = nodes_.data();
  }
  NodeMemory memory(const HugePages& requested) { return {view_, ledger_.view(), {}, true, requested}; }

  const Machine machine_{"pack:2 numa:1(memory=4294967296) core:4 pu:1"};
  Ledger ledger_{machine_};
  topolet_topology view_ = machine_.view();
  std::vector<topolet_huge_pages> pages_ = {{2 << 20, 512}, {2 << 20, 0}};
  std::vector<topolet_node> nodes_;
};

TEST_F(NumaHugePages, DoNotCountAsMemory) {
  EXPECT_EQ(memory({}).amount({0}).capacity_bytes, 3 * kGiB);
  EXPECT_EQ(memory({}).amount({1}).capacity_bytes, 4 * kGiB);
  EXPECT_EQ(memory({}).amount({0, 1}).capacity_bytes, 7 * kGiB);
}

TEST_F(NumaHugePages, AreCountedByNode) {
  ledger_.place_exclusive(asking(kGiB, {{"2MB", 512 << 20}}), set_of({0}), {}, set_of({0}));
  const NodeMemory counted = memory({{2 << 20, 1}});
  EXPECT_EQ(counted.huge_pages({0}, 2 << 20).free_bytes, 512 << 20);
  EXPECT_EQ(counted.huge_pages({1}, 2 << 20).capacity_bytes, 0);
  EXPECT_FALSE(counted.huge_pages({1}, 2 << 20).fits(1));
}

TEST_F(NumaHugePages, OfASizeThatNoNodeNamesAreNotLimited) {
  EXPECT_TRUE(memory({{kGiB, 1}}).huge_pages({0}, kGiB).fits(kGiB));
}

TEST(NumaHugePageSizes, AreReadAsTheCriWritesThem) {
  const auto read = [](const char* size) {
    const topolet_huge_page_limit limit{sdk::borrow(size), 7};
    topolet_demand demand{};
    demand.huge_page_limits = &limit;
    demand.huge_page_limit_count = 1;
    demand.huge_page_limit_stride = sizeof(limit);
    return huge_pages_of(demand);
  };
  EXPECT_EQ(read("2MB"), (HugePages{{2 << 20, 7}}));
  EXPECT_EQ(read("1GB"), (HugePages{{kGiB, 7}}));
  EXPECT_EQ(read("64KB"), (HugePages{{64 << 10, 7}}));
  for (const char* const odd : {"", "B", "MB", "2", "huge", "-2MB"}) EXPECT_TRUE(read(odd).empty()) << odd;
}

}  // namespace
}  // namespace topolet::numa
