#include "plugins/numa/policy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/plugins/numa/machine.hpp"

namespace topolet::numa {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const Policy kPacked{PolicyOptions{.strategy = Strategy::kPacked}};
const Policy kSpread{PolicyOptions{.strategy = Strategy::kSpread}};

std::vector<std::uint32_t> first(const std::vector<std::uint32_t>& order, std::size_t count) {
  return {order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count)};
}

TEST(NumaScore, AbstainsOnSharedContainers) {
  Request request(Machine({.nodes = 2}), 0);
  request.candidate({0}).candidate({0, 1});
  EXPECT_THAT(kPacked.score(request.view()), IsEmpty());
}

TEST(NumaScore, ScoresTheNodeThatFitsEverythingWithOneHundred) {
  Request request(Machine({.nodes = 2, .cores = 2}), 2, set_of({0}));
  request.candidate({0}).candidate({0, 1});
  const auto verdicts = kPacked.score(request.view());
  ASSERT_THAT(verdicts, SizeIs(2));
  EXPECT_EQ(verdicts[0].score, 100);
  EXPECT_EQ(verdicts[0].reason, "all 2 CPUs requested fit on node 0 (3 free)");
  EXPECT_EQ(verdicts[1].score, 70);
  EXPECT_EQ(verdicts[1].reason,
            "all 2 CPUs requested fit on nodes 0-1 (7 free); 1 node would be enough on an empty machine");
}

TEST(NumaScore, RejectsCandidatesThatAreTooSmall) {
  Request request(Machine({.nodes = 2, .cores = 2}), 4, set_of({0}));
  request.candidate({0}).candidate({1}).candidate({0, 1});
  const auto verdicts = kPacked.score(request.view());
  EXPECT_EQ(verdicts[0].kind, TOPOLET_VERDICT_REJECT);
  EXPECT_EQ(verdicts[0].reason, "node 0 has 3 of 4 CPUs free, but the container requests 4");
  EXPECT_EQ(verdicts[1].kind, TOPOLET_VERDICT_SCORE);
  EXPECT_EQ(verdicts[1].score, 100);

  Request larger(Machine({.nodes = 2, .cores = 2}), 6);
  larger.candidate({0}).candidate({0, 1});
  EXPECT_EQ(kPacked.score(larger.view())[0].reason, "node 0 has only 4 CPUs, but the container requests 6");
}

TEST(NumaScore, ScoresTheFewestNodesPossibleBestEvenIfTheyAreMany) {
  Request request(Machine({.nodes = 4, .cores = 2}), 6);
  request.candidate({0}).candidate({0, 1}).candidate({0, 1, 2, 3});
  const auto verdicts = kPacked.score(request.view());
  EXPECT_EQ(verdicts[1].score, 100);
  EXPECT_EQ(verdicts[1].reason, "all 6 CPUs requested fit on nodes 0-1 (8 free)");
  EXPECT_EQ(verdicts[2].score, 40);
}

TEST(NumaScore, ComparesTheNumberOfNodesWithAnEmptyMachine) {
  Request request(Machine({.nodes = 2, .cores = 2}), 4, set_of({0, 4}));
  request.candidate({0}).candidate({1}).candidate({0, 1});
  const auto verdicts = kPacked.score(request.view());
  EXPECT_EQ(verdicts[0].kind, TOPOLET_VERDICT_REJECT);
  EXPECT_EQ(verdicts[1].kind, TOPOLET_VERDICT_REJECT);
  EXPECT_EQ(verdicts[2].score, 70) << "one node could have held it";
}

TEST(NumaScore, PrefersCloserNodesAmongAsManyWhateverTheStrategy) {
  for (const Policy& policy : {kPacked, kSpread}) {
    Request request(Machine({.nodes = 4, .cores = 2}), 6, set_of({0}));
    request.candidate({0, 1}, 16).candidate({2, 3}, 16).candidate({1, 2}, 32);
    const auto verdicts = policy.score(request.view());
    EXPECT_GT(std::min(verdicts[0].score, verdicts[1].score), verdicts[2].score);
    EXPECT_EQ(verdicts[2].score, 100 - 14);
    EXPECT_THAT(verdicts[2].reason, HasSubstr("other sets of as many nodes are closer together"));
  }
}

TEST(NumaScore, PacksOrSpreadsByFewPoints) {
  Request request(Machine({.nodes = 3}), 2, set_of({0, 1, 2, 3, 8}));
  request.candidate({0}).candidate({1}).candidate({2});
  const auto packed = kPacked.score(request.view());
  EXPECT_EQ(packed[0].score, 100);
  EXPECT_EQ(packed[0].reason, "all 2 CPUs requested fit on node 0 (4 free)");
  EXPECT_LT(packed[1].score, 100);
  EXPECT_EQ(packed[2].score, 98);
  EXPECT_EQ(packed[2].reason, "all 2 CPUs requested fit on node 2 (8 free); strategy packed prefers fuller nodes");
  const auto spread = kSpread.score(request.view());
  EXPECT_EQ(spread[0].score, 98);
  EXPECT_EQ(spread[0].reason, "all 2 CPUs requested fit on node 0 (4 free); strategy spread prefers emptier nodes");
  EXPECT_EQ(spread[2].score, 100);
}

TEST(NumaScore, LeavesTheLeastBehindWhenItMovesWhateverTheStrategy) {
  for (const Policy& policy : {kPacked, kSpread}) {
    // Node 0 is the fullest, and node 3 the emptiest.
    Request request(Machine({.nodes = 4}), 2, set_of({0, 1, 2, 3, 8, 16}));
    request.candidate({0}).candidate({1}).candidate({2}).candidate({3}).candidate({1, 2});
    request.moves_from(set_of({9, 17, 18}));
    const auto verdicts = policy.score(request.view());
    EXPECT_EQ(verdicts[2].score, 100);
    EXPECT_LT(verdicts[1].score, 100);
    EXPECT_LT(verdicts[0].score, verdicts[1].score);
    EXPECT_LT(verdicts[3].score, verdicts[1].score);
    EXPECT_THAT(verdicts[1].reason, HasSubstr("it has more CPUs on nodes as good"));
    EXPECT_LT(verdicts[4].score, verdicts[0].score) << "fewer nodes come first";
  }
}

TEST(NumaScore, StaysInRangeOnTheWidestMachine) {
  Request request(Machine({.nodes = 64, .cores = 1, .threads = 1}), 1);
  std::vector<std::uint32_t> nodes;
  for (std::uint32_t node = 0; node < 64; ++node) {
    nodes.push_back(node);
    request.candidate(nodes);
  }
  std::int32_t before = 101;
  for (const Verdict& verdict : kPacked.score(request.view())) {
    EXPECT_LE(verdict.score, before);
    EXPECT_GE(verdict.score, -100);
    before = verdict.score;
  }
}

TEST(NumaScore, NamesSparseNodesByTheirOsIndex) {
  const Shape power{.nodes = 2,
                    .cores = 2,
                    .os_index = [](std::uint32_t n) { return n * 8; },
                    .node_index = [](std::uint32_t n) { return n * 8; }};
  Request request(Machine(power), 2);
  request.candidate({1}).candidate({0, 1});
  const auto verdicts = kPacked.score(request.view());
  EXPECT_EQ(verdicts[0].reason, "all 2 CPUs requested fit on node 8 (4 free)");
  EXPECT_THAT(verdicts[1].reason, HasSubstr("fit on nodes 0,8"));
}

TEST(NumaScore, CountsCpusOutsideAnyNodeAsANodeOfTheirOwn) {
  Machine machine({.nodes = 1, .cores = 2});
  machine.add_core(40, TOPOLET_NONE, TOPOLET_NONE);
  machine.add_core(41, TOPOLET_NONE, TOPOLET_NONE);
  Request request(machine, 2);
  request.candidate({0}).candidate({}, set_of({40, 41}), 10).candidate(set_of({0}), set_of({0, 1, 2, 3, 40, 41}), 10);
  const auto verdicts = kSpread.score(request.view());
  EXPECT_EQ(verdicts[1].reason,
            "all 2 CPUs requested fit on the CPUs outside any node (2 free); strategy spread prefers emptier nodes");
  EXPECT_EQ(verdicts[0].score, 100);
  EXPECT_EQ(verdicts[1].score, 99) << "as far from its memory as any node from its own, and less empty";
  EXPECT_LT(verdicts[2].score, verdicts[1].score);
  EXPECT_THAT(verdicts[2].reason, HasSubstr("fit on node 0 and the CPUs outside any node"));
}

TEST(NumaPick, AbstainsOnSharedContainers) {
  Request request(Machine({}), 0);
  request.candidate({0});
  EXPECT_THAT(kPacked.pick(request.pick()).cpus, IsEmpty());
}

TEST(NumaPick, TakesWholeCoresOfOneL3) {
  // Thread siblings are n and n + 8, as most x86 machines number them.
  const Shape shape{.l3s = 2, .os_index = [](std::uint32_t n) { return n / 2 + (n % 2) * 8; }};
  Request request(Machine(shape), 4, set_of({0, 1, 2}));
  request.candidate({0});
  const auto order = kPacked.pick(request.pick());
  EXPECT_THAT(first(order.cpus, 4), ElementsAre(4, 12, 5, 13)) << "the first L3 has one whole core left";
  EXPECT_EQ(order.reason, "2 whole cores");
}

TEST(NumaPick, FillsPartlyUsedCoresWithTheOddThread) {
  Request request(Machine({}), 3, set_of({4}));
  request.candidate({0});
  const auto order = kPacked.pick(request.pick());
  EXPECT_THAT(first(order.cpus, 3), ElementsAre(5, 0, 1));
  EXPECT_EQ(order.reason, "1 whole core and 1 thread of partly used cores");
}

TEST(NumaPick, OrdersAsManyAsAreToBeTakenThere) {
  Request request(Machine({}), 3, set_of({4}));
  request.candidate({0});
  topolet_pick_request two = request.pick();
  two.count = 2;
  EXPECT_THAT(first(kPacked.pick(two).cpus, 2), ElementsAre(0, 1)) << "a whole core, and no single thread";
}

TEST(NumaPick, TakesTheOddThreadFromAFreeCoreIfNoneIsPartlyUsed) {
  Request request(Machine({}), 3);
  request.candidate({0});
  const auto order = kPacked.pick(request.pick());
  EXPECT_THAT(first(order.cpus, 3), ElementsAre(0, 1, 2));
  EXPECT_EQ(order.reason, "1 whole core and 1 thread of one more free core");
}

TEST(NumaPick, LeavesPartlyUsedCoresAloneIfTheRequestFillsItsCores) {
  Request request(Machine({}), 2, set_of({0}));
  request.candidate({0});
  EXPECT_THAT(first(kPacked.pick(request.pick()).cpus, 2), ElementsAre(2, 3));
}

TEST(NumaPick, TakesSingleThreadsWhenNoCoreIsWhole) {
  Request request(Machine({.cores = 3}), 2, set_of({0, 3, 5}));
  request.candidate({0});
  EXPECT_THAT(first(kPacked.pick(request.pick()).cpus, 2), ElementsAre(1, 2));
}

TEST(NumaPick, WithFourThreadsPutsTheRestIntoTheCoreItFillsBest) {
  Request request(Machine({.cores = 4, .threads = 4}), 6, set_of({0, 4, 5}));
  request.candidate({0});
  // Core 0 has three threads left, core 1 two: two single threads fill core 1.
  EXPECT_THAT(first(kPacked.pick(request.pick()).cpus, 6), ElementsAre(6, 7, 8, 9, 10, 11));
}

TEST(NumaPick, WithEightThreadsDoesNotScatterWhatOneFreshCoreHolds) {
  Request request(Machine({.cores = 3, .threads = 8}), 13, set_of({0, 1, 2, 3, 4, 5}));
  request.candidate({0});
  // Five are left after the whole core 1; core 0 has two, so they come from core 2 together.
  EXPECT_THAT(first(kPacked.pick(request.pick()).cpus, 13),
              ElementsAre(8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20));
}

TEST(NumaPick, WithoutSmtEveryCpuIsAWholeCore) {
  Request request(Machine({.threads = 1}), 3, set_of({1}));
  request.candidate({0});
  const auto order = kPacked.pick(request.pick());
  EXPECT_THAT(order.cpus, ElementsAre(0, 2, 3));
  EXPECT_EQ(order.reason, "3 whole cores");
}

TEST(NumaPick, OnHybridCoresGivesTheOddThreadACoreOfOneThread) {
  Machine machine({.cores = 2});
  machine.add_core(4, 0, 0);
  machine.add_core(5, 0, 0);
  Request request(machine, 3);
  request.candidate({0});
  EXPECT_THAT(first(kPacked.pick(request.pick()).cpus, 3), ElementsAre(0, 1, 4));
}

TEST(NumaPick, TreatsACpuWhoseCoreIsUnknownAsACore) {
  Machine machine({.cores = 1});
  for (topolet_pu& pu : machine.pus) pu.core = TOPOLET_NONE;
  Request request(machine, 1);
  request.candidate({0});
  EXPECT_THAT(kPacked.pick(request.pick()).cpus, ElementsAre(0, 1));
}

TEST(NumaPick, OrdersEveryUsableCpuOnceOnAnyMachine) {
  for (const std::uint32_t threads : {1U, 2U, 4U, 8U}) {
    for (std::uint32_t wanted = 1; wanted <= 20; ++wanted) {
      const Shape shape{
          .l3s = 2, .cores = 4, .threads = threads, .os_index = [](std::uint32_t n) { return n * 3 + 5; }};
      Request request(Machine(shape), wanted, set_of({5, 11, 14, 23, 50}));
      request.candidate({0});
      const topolet_pick_request pick = request.pick();
      const std::vector<std::uint32_t> order = kPacked.pick(pick).cpus;
      EXPECT_THAT(sdk::Set(pick.usable).indices(),
                  ElementsAreArray(std::set<std::uint32_t>(order.begin(), order.end())));
      EXPECT_EQ(order.size(), sdk::size_of(pick.usable));
    }
  }
}

}  // namespace
}  // namespace topolet::numa
