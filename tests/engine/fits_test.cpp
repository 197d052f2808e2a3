#include "core/engine/planning/fits.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <random>
#include <set>

#include "tests/engine/fits_test.hpp"

namespace topolet::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Node = std::pair<std::uint32_t, std::uint32_t>;

TEST_F(FitsTest, IsWhatIsFreeWherePoliciesAgree) {
  rules_.min_shared_cpus = 0;
  EXPECT_THAT(fits(ledger()), ElementsAre(Node(0, 8), Node(1, 8)));
  EXPECT_THAT(fits(ledger({exclusive("a", {0, 1, 2})})), ElementsAre(Node(0, 5), Node(1, 8)));
  EXPECT_THAT(fits(ledger({exclusive("a", CpuSet::range(0, 7))})), ElementsAre(Node(0, 0), Node(1, 8)));
  EXPECT_EQ(last_.generation, 10U);
  EXPECT_FALSE(last_.lost_votes);
}

TEST_F(FitsTest, PromisesNothingOnWhichSomebodyStaysWhateverItIsTold) {
  rules_.min_shared_cpus = 0;
  Allocation stuck = shared("s", Phase::kRunning, CpuSet::range(0, 15));
  stuck.stuck = Stuck{{0, 1, 2}, "busy"};
  Allocation overruled = shared("o", Phase::kRunning, CpuSet::range(0, 15));
  overruled.overruled = Overruled{std::chrono::milliseconds(1), {}, {8}};
  EXPECT_THAT(fits(ledger({stuck, overruled})), ElementsAre(Node(0, 5), Node(1, 7)));
}

TEST_F(FitsTest, LeavesWhatMustStayShared) {
  rules_.min_shared_cpus = 10;
  EXPECT_THAT(fits(ledger()), ElementsAre(Node(0, 6), Node(1, 6)));
  rules_.min_shared_cpus = 0;
  reserved_ = {0, 1};
  EXPECT_THAT(fits(ledger()), ElementsAre(Node(0, 6), Node(1, 8)));
  EXPECT_TRUE(last_.gives_exclusive_cpus);
  rules_.exclusive = placement::ExclusiveRule::kNever;
  EXPECT_THAT(fits(ledger()), ElementsAre(Node(0, 0), Node(1, 0)));
  EXPECT_FALSE(last_.gives_exclusive_cpus);
}

TEST_F(FitsTest, PromisesFewerCpusOfANodeWhoseReportedCapacityIsLow) {
  rules_.min_shared_cpus = 0;
  const auto with_a = [&](ReportedCapacity told) {
    Ledger with_it = ledger();
    with_it.load({exclusive("a", {8, 9, 10})}, {}, {std::move(told)});
    return with_it;
  };
  EXPECT_THAT(fits(with_a({.node = 1, .milli = 6000, .source = "host", .lowers = true})),
              ElementsAre(Node(0, 8), Node(1, 3)));
  EXPECT_THAT(fits(with_a({.node = 1, .milli = 2000, .source = "host", .lowers = true})),
              ElementsAre(Node(0, 8), Node(1, 0)));
  EXPECT_THAT(fits(with_a({.node = 1, .milli = 6000, .source = "host", .lowers = false})),
              ElementsAre(Node(0, 8), Node(1, 5)));
  EXPECT_THAT(fits(with_a({.node = 7, .milli = 0, .source = "host", .lowers = true})),
              ElementsAre(Node(0, 8), Node(1, 5)));
}

TEST_F(FitsTest, HeedsAPolicyThatGrantsWholeCoresOnlyOrNothing) {
  rules_.min_shared_cpus = 0;
  policy_->step = 2;
  EXPECT_THAT(fits(ledger({exclusive("a", {0})})), ElementsAre(Node(0, 6), Node(1, 8)));
  policy_->closed_node = 1;
  EXPECT_THAT(fits(ledger()), ElementsAre(Node(0, 8), Node(1, 0)));
}

TEST_F(FitsTest, AsksAFewTimesOnlyWhereItIsRefused) {
  use("node:2 core:32 pu:2");
  policy_->closed_node = 1;
  fits(ledger());
  EXPECT_LE(*asked_, 10);
}

TEST_F(FitsTest, PlacesPendingContainersFirst) {
  rules_.min_shared_cpus = 0;
  EXPECT_THAT(fits(ledger(), {guaranteed("p", 8)}), ElementsAre(Node(0, 0), Node(1, 8)));
  EXPECT_THAT(fits(ledger(), {guaranteed("p", 8), guaranteed("q", 6), besteffort("r")}),
              ElementsAre(Node(0, 0), Node(1, 1)))
      << "the BestEffort one needs a CPU";
  EXPECT_THAT(last_.unplaced, IsEmpty());
  EXPECT_THAT(fits(ledger(), {guaranteed("p", 17), guaranteed("q", 2)}), ElementsAre(Node(0, 6), Node(1, 8)));
  ASSERT_THAT(last_.unplaced, SizeIs(1));
  EXPECT_EQ(last_.unplaced.front().key.name, "p");
  EXPECT_THAT(last_.unplaced.front().reason, HasSubstr("requested=17"));
}

TEST_F(FitsTest, CountsNobodyTwice) {
  rules_.min_shared_cpus = 0;
  placement::Workload booked = guaranteed("a", 2);
  booked.key.sandbox_id = "";  // the scheduler does not know it
  EXPECT_THAT(fits(ledger({exclusive("a", {0, 1})}), {booked}), ElementsAre(Node(0, 6), Node(1, 8)));
}

TEST_F(FitsTest, LeavesNobodyWithoutCpus) {
  rules_.min_shared_cpus = 0;
  Allocation pinned = shared("s", Phase::kRunning, CpuSet::range(0, 7));
  EXPECT_THAT(fits(ledger({pinned})), ElementsAre(Node(0, 8), Node(1, 8))) << "it can move to the other node";
  EXPECT_THAT(fits(ledger({pinned, exclusive("a", CpuSet::range(8, 15))})), ElementsAre(Node(0, 7), Node(1, 0)));
}

TEST_F(FitsTest, SaysThatAPolicyWasNotHeard) {
  policy_->is_silent = true;
  fits(ledger());
  EXPECT_TRUE(last_.lost_votes);
}

TEST_F(FitsTest, SaysThatAPolicyWasNotHeardAboutAContainerThatWouldHaveToMove) {
  rules_.min_shared_cpus = 0;
  policy_->is_silent_of_shared = true;
  EXPECT_THAT(fits(ledger()), ElementsAre(Node(0, 8), Node(1, 8)));
  EXPECT_FALSE(last_.lost_votes);
  EXPECT_THAT(fits(ledger({shared("s", Phase::kRunning, CpuSet::range(0, 7))})), ElementsAre(Node(0, 7), Node(1, 8)));
  EXPECT_TRUE(last_.lost_votes) << "it stays only because nobody said where to";
}

TEST_F(FitsTest, LeavesOutIsolatedCpus) {
  isolated_ = {2, 3, 9};
  EXPECT_THAT(fits(ledger()), ElementsAre(Node(0, 6), Node(1, 7)));
}

TEST_F(FitsTest, CountsIsolatedCpusWhereContainersGetThem) {
  rules_.min_shared_cpus = 0;
  isolated_ = {2, 3, 8, 9, 10, 11, 12};
  EXPECT_THAT(fits(ledger()), ElementsAre(Node(0, 6), Node(1, 3)));
  EXPECT_EQ(last_.nodes[1].pool_cpus, 3U);
  EXPECT_EQ(last_.nodes[1].isolated_cpus, 5U);
  rules_.isolated = placement::IsolatedRule::kPrefer;
  EXPECT_THAT(fits(ledger()), ElementsAre(Node(0, 6), Node(1, 5)));
  EXPECT_THAT(fits(ledger({exclusive("a", {8, 9, 10})}), {guaranteed("p", 2)}), ElementsAre(Node(0, 6), Node(1, 3)))
      << "the pending one has isolated CPUs of node 0";
  EXPECT_EQ(last_.nodes[0].isolated_cpus + last_.nodes[1].isolated_cpus, 2U);
  rules_.isolated = placement::IsolatedRule::kAlways;
  EXPECT_THAT(fits(ledger()), ElementsAre(Node(0, 2), Node(1, 5)));
  rules_.reserved_namespaces = {"system"};
  EXPECT_THAT(fits(ledger(), {guaranteed("p", 8)}), ElementsAre(Node(0, 2), Node(1, 5)));
  ASSERT_THAT(last_.unplaced, SizeIs(1));
  EXPECT_THAT(last_.unplaced.front().reason, HasSubstr("placement.isolated = always"));
  EXPECT_THAT(last_.reserved_namespaces, ElementsAre("system"));
  EXPECT_EQ(last_.isolated, placement::IsolatedRule::kAlways);
}

TEST_F(FitsTest, GivesNothingWhileTheKubeletHandsOutCpus) {
  Allocation bound = exclusive("a", {0, 1});
  bound.workload.kubelet_cpus = {0, 1};
  EXPECT_THAT(fits(ledger({bound})), ElementsAre(Node(0, 0), Node(1, 0)));
  EXPECT_EQ(*asked_, 0);
}

TEST_F(FitsTest, CountsTheCpusOfANodeOnlyWhereOthersAreOutsideAnyNode) {
  rules_.min_shared_cpus = 0;
  use("node:1 core:8 pu:1");
  change_machine([](topology::Topology& machine) {
    machine.nodes[0].cpus = CpuSet::range(4, 7);
    for (topology::Domain& domain : machine.domains) {
      if (domain.kind == topology::DomainKind::kNode) domain.cpus = machine.nodes[0].cpus;
    }
  });
  EXPECT_THAT(fits(ledger()), ElementsAre(Node(0, 4))) << "the lowest CPUs of the machine are 0-3";
}

TEST_F(FitsTest, GivesNothingOfMemoryOnlyNodesAndOfCpusThatMayNotBeUsed) {
  rules_.min_shared_cpus = 0;
  change_machine([](topology::Topology& machine) {
    topology::Node memory;
    memory.os_index = 5;
    memory.memory_only = true;
    machine.nodes.push_back(memory);
    machine.distances = {10, 20, 30, 20, 10, 30, 30, 30, 10};
    machine.allowed = {0, 3, 7};
  });
  EXPECT_THAT(fits(ledger()), ElementsAre(Node(0, 3), Node(1, 0), Node(5, 0)));
}

TEST_F(FitsTest, AddsUpTheMemoryOfWhoIsThereAndWhoIsPending) {
  const auto with_memory = [](Allocation allocation, std::int64_t request, std::int64_t limit, const NodeSet& mems) {
    allocation.workload.demand.memory_request_bytes = request;
    allocation.workload.demand.memory_limit_bytes = limit;
    allocation.placement.mems = mems;
    return allocation;
  };
  Allocation with_pages = exclusive("pages", {2, 3});
  with_pages.workload.demand.hugepage_limit_bytes["2MB"] = 4 << 20;
  const Ledger booked = ledger({with_memory(exclusive("both", {0, 1}), 1001, 5000, {0, 1}),
                                with_memory(exclusive("by-cpus", {6, 7, 8}), 300, 5000, {}),
                                with_memory(exclusive("limit", {9}), 0, 10, {1}),
                                with_memory(exclusive("unknown", {10}), 0, 10, {}), with_pages});
  placement::Workload pending = guaranteed("pending", 4);
  pending.demand.memory_request_bytes = 10000;
  pending.demand.hugepage_limit_bytes["1GB"] = 1 << 30;
  policy_->closed_node = 0;
  fits(booked, {pending});
  EXPECT_EQ(last_.nodes[0].booked_memory_bytes, 501 + 200);
  EXPECT_EQ(last_.nodes[1].booked_memory_bytes, 501 + 100 + 10 + 10000);
  EXPECT_THAT(last_.nodes[0].booked_huge_page_bytes, ElementsAre(std::pair("2MB", 4 << 20)));
  EXPECT_THAT(last_.nodes[1].booked_huge_page_bytes, ElementsAre(std::pair("1GB", 1 << 30)));
}

TEST_F(FitsTest, BooksOnTheOtherNodesOfAContainerWhatOneHasNotLeft) {
  change_machine([](topology::Topology& machine) {
    for (topology::Node& node : machine.nodes) node.memory_bytes = 64;
  });
  const auto with_memory = [](Allocation allocation, std::int64_t request, const NodeSet& mems) {
    allocation.workload.demand.memory_request_bytes = request;
    allocation.placement.mems = mems;
    return allocation;
  };
  fits(ledger({with_memory(exclusive("both", {0, 1}), 30, {0, 1}), with_memory(exclusive("one", {2, 3}), 60, {0})}));
  EXPECT_EQ(last_.nodes[0].booked_memory_bytes, 64);
  EXPECT_EQ(last_.nodes[1].booked_memory_bytes, 26);
}

TEST_F(FitsTest, BooksMemoryThatIsOnItsWayWhereItWillBe) {
  change_machine([](topology::Topology& machine) {
    for (topology::Node& node : machine.nodes) node.memory_bytes = 64;
  });
  Allocation moving = exclusive("moving", {8, 9});
  moving.workload.demand.memory_request_bytes = 40;
  moving.placement.mems = NodeSet{0, 1};
  moving.mems_to_keep = NodeSet{1};
  fits(ledger({moving}));
  EXPECT_EQ(last_.nodes[0].booked_memory_bytes, 0);
  EXPECT_EQ(last_.nodes[1].booked_memory_bytes, 40);
}

/// Sizes that are granted, up to 32 CPUs in cores of four threads.
TEST_F(FitsTest, FindsTheLargestSizeThatIsGrantedWhereverItIs) {
  use("node:1 core:8 pu:4");
  rules_.min_shared_cpus = 0;
  const std::vector<std::function<bool(std::uint32_t)>> rules = {
      [](std::uint32_t n) { return n <= 5; },
      [](std::uint32_t n) { return n % 4 == 0 && n <= 21; },
      [](std::uint32_t n) { return n % 4 == 3 && n <= 24; },
      [](std::uint32_t n) { return n % 3 == 0 && n < 12; },  // of cores that miss a thread
      [](std::uint32_t n) { return n >= 6 && n <= 23; },     // none for who asks for little
      [](std::uint32_t n) { return n == 1; },
      [](std::uint32_t n) { return n == 32; },
      [](std::uint32_t n) { return n == 29 || n <= 3; },
  };
  for (const auto& rule : rules) {
    policy_->may_have = rule;
    std::uint32_t most = 0;
    for (std::uint32_t n = 1; n <= 32; ++n) {
      if (rule(n)) most = n;
    }
    *asked_ = 0;
    EXPECT_THAT(fits(ledger()), ElementsAre(Node(0, most)));
    EXPECT_LE(*asked_, 16);
  }
}

TEST_F(FitsTest, CountsCpusAsFreeThatAreKeptForContainersThatHaveEnded) {
  rules_.min_shared_cpus = 0;
  const Ledger held = ledger({exclusive("failed", {0, 1}, Phase::kCrashed), exclusive("stopped", {2, 3}, Phase::kKept),
                              exclusive("a", CpuSet::range(8, 15))});
  EXPECT_THAT(fits(held), ElementsAre(Node(0, 8), Node(1, 0)));
  EXPECT_EQ(last_.nodes.front().shared_cpus, 8U);
  EXPECT_THAT(fits(held, {guaranteed("p", 6)}), ElementsAre(Node(0, 2), Node(1, 0)));
  EXPECT_THAT(last_.unplaced, IsEmpty());
  EXPECT_THAT(fits(held, {guaranteed("p", 2)}), ElementsAre(Node(0, 6), Node(1, 0)));
}

TEST_F(FitsTest, TellsWhatIsSharedWhereTheKubeletGivesOthersCpus) {
  reserved_ = {0};
  Allocation kubelets = exclusive("a", {2, 3});
  kubelets.workload.kubelet_cpus = {2, 3};
  fits(ledger({kubelets}));
  EXPECT_TRUE(last_.kubelet_hands_out_cpus);
  EXPECT_FALSE(last_.gives_exclusive_cpus);
  EXPECT_FALSE(last_.has_own_exclusives);
  EXPECT_EQ(last_.nodes[0].shared_cpus, 5U) << "of eight, without the reserved one";
  EXPECT_EQ(last_.nodes[1].shared_cpus, 8U);
  fits(ledger({exclusive("b", {8})}));
  EXPECT_FALSE(last_.kubelet_hands_out_cpus);
  EXPECT_TRUE(last_.has_own_exclusives);
  EXPECT_EQ(last_.nodes[1].shared_cpus, 7U);
}

TEST_F(FitsTest, TellsWhoseZonesCount) {
  rules_.node_name = "n1";
  fits(ledger());
  EXPECT_EQ(last_.node_name, "n1");
  EXPECT_FALSE(last_.ignores_zones);
  rules_.annotations = {{"cpus", "zone"}};
  fits(ledger());
  EXPECT_FALSE(last_.ignores_zones);
  rules_.annotations = {{"cpus"}};
  fits(ledger());
  EXPECT_TRUE(last_.ignores_zones);
}

TEST_F(FitsTest, EndsBeforeTheNextDecisionWhenItMayNotGoOn) {
  std::vector<PendingContainer> pending;
  for (const char* pod : {"p", "q", "r"}) pending.push_back(guaranteed(pod, 1));
  for (const int decisions : {0, 2, 4}) {
    *asked_ = 0;
    const auto found = compute_fits(placer(), ledger(), pending, [&]() -> Status {
      if (*asked_ < decisions) return {};
      return Error{Code::kCancelled, "enough"};
    });
    ASSERT_FALSE(found.has_value());
    EXPECT_EQ(found.error().message, "enough");
    EXPECT_EQ(*asked_, decisions);
  }
}

/// Each plan may take as long as a decision does.
TEST_F(FitsTest, GivesEachPlanTimeOfItsOwn) {
  std::set<std::chrono::steady_clock::time_point> began;
  const Placer placer({topology_, placement::make_candidates(*topology_, topology_->allowed), rules_,
                       [&began](const auto& request, const placement::PlacementRules& rules) {
                         began.insert(*request->plan_began);
                         return decide(*request, rules, {});
                       }});
  compute_fits(placer, ledger(), {guaranteed("p", 2)});
  EXPECT_THAT(began, SizeIs(3));
}

/// The reported number is granted, and nothing more is, whatever is held, and whatever a policy grants.
TEST_F(FitsTest, IsTheMostThatIsGranted) {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    use(round % 2 == 0 ? "node:3 core:3 pu:2" : "node:2 core:4 pu:1");
    policy_->step = topology_->cores.front().size() == 2 ? 1 + random() % 2 : 1;
    policy_->closed_node = random() % 4 == 0 ? std::optional<std::uint32_t>(0) : std::nullopt;
    rules_.min_shared_cpus = static_cast<std::uint32_t>(random() % 4);
    std::vector<Allocation> allocations;
    CpuSet left = topology_->allowed;
    for (int i = 0; i < 4; ++i) {
      CpuSet cpus;
      for (const std::uint32_t cpu : left) {
        if (random() % 6 == 0) cpus.insert(cpu);
      }
      if (cpus.empty() || left.size() - cpus.size() < 2) continue;
      left -= cpus;
      allocations.push_back(exclusive(fmt::format("e{}", i), cpus));
    }
    for (const topology::Node& node : topology_->nodes) {
      if (random() % 2 == 0 && node.cpus.intersects(left))
        allocations.push_back(shared(fmt::format("s{}", node.os_index), Phase::kRunning, node.cpus));
    }
    const Ledger held = ledger(std::move(allocations));
    const Placer placer = this->placer();
    for (const auto& [node, found] : fits(held)) {
      std::uint32_t most = 0;
      for (std::uint32_t cpus = 1; cpus <= topology_->node(node)->cpus.size(); ++cpus) {
        Placer::Constraints here;
        here.within_nodes = NodeSet{node};
        if (!placer.plan(held, guaranteed("new", cpus), here).decision.denied) most = cpus;
      }
      EXPECT_EQ(found, most) << "round " << round << ", node " << node;
    }
  }
}

}  // namespace
}  // namespace topolet::engine
