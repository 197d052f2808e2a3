#include "core/engine/planning/placer.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "core/engine/planning/crash_hold.hpp"
#include "core/placement/decide.hpp"
#include "core/placement/zone.hpp"
#include "tests/engine/crowds.hpp"
#include "tests/engine/ledgers.hpp"

namespace topolet::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Allocation failed(const std::string& name, const CpuSet& cpus, int since) {
  Allocation allocation = exclusive(name, cpus, Phase::kCrashed);
  allocation.phase_since = std::chrono::milliseconds(since);
  return allocation;
}

class PlacerTest : public ::testing::Test {
 protected:
  const std::shared_ptr<const topology::Topology> topology_ = testing::machine("node:2 core:4 pu:1");
  const Placer placer_{
      {topology_,
       placement::make_candidates(*topology_, topology_->allowed),
       {},
       [](const auto& request, const placement::PlacementRules& rules) { return decide(*request, rules, {}); }}};
};

TEST_F(PlacerTest, TakesNothingBackWhereThereIsEnough) {
  const Ledger ledger = ledger_of({failed("a", {0}, 1)});
  const Plan plan = reclaim_and_plan(placer_, ledger, guaranteed("new", 2), {});
  EXPECT_FALSE(plan.decision.denied);
  EXPECT_THAT(plan.yielding, IsEmpty());
  EXPECT_FALSE(plan.decision.placement.cpus.contains(0));
}

TEST_F(PlacerTest, TakesBackFromThoseWhoFailedLast) {
  const Ledger ledger = ledger_of({failed("a", {0, 1}, 30), failed("b", {2, 3}, 10), failed("c", {4, 5}, 20)});
  const Plan plan = reclaim_and_plan(placer_, ledger, guaranteed("new", 2), {});
  EXPECT_FALSE(plan.decision.denied);
  EXPECT_THAT(plan.yielding, ElementsAre(guaranteed("a", 2).key));
  const Plan larger = reclaim_and_plan(placer_, ledger, guaranteed("new", 4), {});
  EXPECT_THAT(larger.yielding, ElementsAre(guaranteed("c", 2).key, guaranteed("a", 2).key));
}

/// As happens to containers of one pod.
TEST_F(PlacerTest, TakesBackFromWhoWasRecordedLastOfThoseWhoEndedAtOneTime) {
  Allocation first = failed("b", {0, 1, 2}, 10);
  Allocation last = failed("a", {3, 4, 5}, 10);
  first.phase = Phase::kKept;
  first.generation = 7;
  last.generation = 8;
  const Plan plan = reclaim_and_plan(placer_, ledger_of({first, last}), guaranteed("new", 3), {});
  EXPECT_THAT(plan.yielding, ElementsAre(guaranteed("a", 3).key));
}

TEST_F(PlacerTest, TakesBackWhatKeepsAContainerOnSeveralNodes) {
  const auto one_node =
      std::make_shared<FixedPolicy>(std::vector<std::pair<NodeSet, std::int32_t>>{{{0}, 100}, {{1}, 100}});
  const Placer placer({topology_,
                       placement::make_candidates(*topology_, topology_->allowed),
                       {},
                       [one_node](const auto& request, const placement::PlacementRules& rules) {
                         return decide(*request, rules, {{.policy = one_node}});
                       }});
  const Ledger ledger = ledger_of({failed("a", {0}, 10), exclusive("b", {4, 5})});
  const Plan plan = reclaim_and_plan(placer, ledger, guaranteed("new", 4), {});
  EXPECT_EQ(plan.decision.placement.cpus, CpuSet::range(0, 3));
  EXPECT_THAT(plan.yielding, ElementsAre(guaranteed("a", 1).key));
}

TEST_F(PlacerTest, TakesNothingBackWhereAContainerIsOnSeveralNodesAnyway) {
  const Ledger ledger = ledger_of({failed("a", {0}, 10)});
  const Plan plan = reclaim_and_plan(placer_, ledger, guaranteed("new", 6), {});
  EXPECT_FALSE(plan.decision.denied);
  EXPECT_THAT(plan.yielding, IsEmpty());
}

TEST_F(PlacerTest, TakesNothingBackWhereThatIsOfNoUse) {
  const Ledger ledger = ledger_of({failed("a", {0}, 1), exclusive("b", CpuSet::range(1, 6))});
  const Plan plan = reclaim_and_plan(placer_, ledger, guaranteed("new", 4), {});
  EXPECT_TRUE(plan.decision.denied);
  EXPECT_THAT(plan.yielding, IsEmpty());
}

TEST_F(PlacerTest, LeavesWhatIsKeptForTheContainerItself) {
  const Ledger ledger = ledger_of({failed("a", CpuSet::range(0, 3), 1), exclusive("b", CpuSet::range(4, 6))});
  placement::Workload next = guaranteed("a", 4);
  next.key.attempt = 1;
  Placer::Constraints constraints;
  constraints.keep = ledger.former_placement(next.key);
  const Plan plan = reclaim_and_plan(placer_, ledger, next, constraints);
  EXPECT_FALSE(plan.decision.denied);
  EXPECT_EQ(plan.decision.placement.cpus, CpuSet::range(0, 3));
  EXPECT_THAT(plan.yielding, IsEmpty()) << "it takes over, nobody yields";
}

TEST_F(PlacerTest, PlacesAnewWhomItWouldLeaveWithoutCpus) {
  Allocation pinned = shared("b", Phase::kRunning, CpuSet::range(0, 3));
  const Ledger ledger = ledger_of({pinned, exclusive("c", CpuSet::range(4, 6))});
  const Plan plan = placer_.plan(ledger, guaranteed("a", 4));
  ASSERT_FALSE(plan.decision.denied) << plan.decision.reason;
  EXPECT_EQ(plan.decision.placement.cpus, CpuSet::range(0, 3));
  ASSERT_EQ(plan.moves.size(), 1U);
  EXPECT_EQ(plan.moves.front().workload.key, pinned.workload.key);
  EXPECT_EQ(plan.moves.front().decision.placement.cpus, CpuSet{7});
  EXPECT_EQ(plan.moves.front().preferred->within, CpuSet::range(0, 3));
}

/// Returns "NAME#ATTEMPT", with a '?' where it is pending, of all containers that the ledger of a request has.
std::vector<std::string> described(const placement::LedgerSnapshot& ledger) {
  std::vector<std::string> names;
  for (const placement::LedgerEntry& entry : ledger.entries)
    names.push_back(fmt::format("{}#{}{}", entry.key.name, entry.key.attempt, entry.pending ? "?" : ""));
  return names;
}

/// Its tags are noted as in a decision for real.
TEST_F(PlacerTest, ShowsPendingContainersButNeverTheOneThatIsPlaced) {
  std::vector<std::vector<std::string>> seen;
  std::vector<SharedStringMap> tags;
  const Placer placer({topology_,
                       placement::make_candidates(*topology_, topology_->allowed),
                       {},
                       [&](const auto& request, const placement::PlacementRules& rules) {
                         seen.push_back(described(request->ledger));
                         for (const placement::LedgerEntry& entry : request->ledger.entries) tags.push_back(entry.tags);
                         placement::Decision decision = decide(*request, rules, {});
                         decision.tags = {{"a/of", request->workload.key.name}};
                         return decision;
                       }});
  const Ledger ledger = ledger_of({shared("a"), exclusive("b", {0}), shared("c", Phase::kPending),
                                   shared("d", Phase::kInDoubt), failed("e", {1}, 10)});
  placer.plan(ledger, besteffort("new"));
  placer.plan(ledger, ledger.find(besteffort("a").key)->workload);  // a move, a repair
  placer.plan(ledger, guaranteed("b", 2));                          // a resize
  placer.plan(ledger, besteffort("d"));                             // decided anew
  placement::Workload next = guaranteed("e", 1);
  next.key.attempt = 1;
  placer.plan(ledger, next);
  EXPECT_THAT(seen, ElementsAre(ElementsAre("a#0", "b#0", "c#0?", "d#0?", "e#0"),
                                ElementsAre("b#0", "c#0?", "d#0?", "e#0"), ElementsAre("a#0", "c#0?", "d#0?", "e#0"),
                                ElementsAre("a#0", "b#0", "c#0?", "e#0"), ElementsAre("a#0", "b#0", "c#0?", "d#0?")));
  seen.clear();
  tags.clear();
  // Who makes room for a newcomer sees that, and its tags.
  const Ledger full = ledger_of({shared("x", Phase::kRunning, CpuSet::range(0, 3)), exclusive("y", {4, 5, 6})});
  EXPECT_EQ(placer.plan(full, guaranteed("new", 4)).moves.size(), 1U);
  EXPECT_THAT(seen, ElementsAre(ElementsAre("x#0", "y#0"), ElementsAre("new#0?", "y#0")));
  EXPECT_EQ(tags.at(2), (SharedStringMap{{"a/of", "new"}}));
}

/// Each decision knows when its plan began.
TEST_F(PlacerTest, CountsTheTimeOfAllDecisionsFromTheBeginningOfThePlan) {
  std::vector<std::optional<std::chrono::steady_clock::time_point>> began;
  const Placer placer({topology_,
                       placement::make_candidates(*topology_, topology_->allowed),
                       {},
                       [&began](const auto& request, const placement::PlacementRules& rules) {
                         began.push_back(request->plan_began);
                         return decide(*request, rules, {});
                       }});
  const Ledger with_move =
      ledger_of({shared("b", Phase::kRunning, CpuSet::range(0, 3)), exclusive("c", CpuSet::range(4, 6))});
  EXPECT_EQ(placer.plan(with_move, guaranteed("a", 4)).moves.size(), 1U);
  ASSERT_EQ(began.size(), 2U);
  ASSERT_TRUE(began[0].has_value());
  EXPECT_EQ(began[1], began[0]);

  const auto first_plan = *began[0];
  began.clear();
  const Ledger with_failed = ledger_of({failed("a", {0, 1}, 30), failed("b", {2, 3}, 10), failed("c", {4, 5}, 20)});
  EXPECT_EQ(reclaim_and_plan(placer, with_failed, guaranteed("new", 4), {}).yielding.size(), 2U);
  EXPECT_GT(began.size(), 3U);
  EXPECT_GT(*began.front(), first_plan);
  EXPECT_EQ(std::count(began.begin(), began.end(), began.front()), static_cast<std::ptrdiff_t>(began.size()));
}

class RequestOfPlanTest : public PlacerTest {
 protected:
  /// Every request of the plan.
  std::vector<std::shared_ptr<const placement::PolicyRequest>> requests(const Ledger& ledger,
                                                                        const placement::Workload& workload,
                                                                        const Placer::Constraints& constraints) const {
    std::vector<std::shared_ptr<const placement::PolicyRequest>> all;
    placement::PlacementRules some_shared;
    some_shared.min_shared_cpus = 2;
    const Placer placer({topology_, placement::make_candidates(*topology_, topology_->allowed), some_shared,
                         [&all](const auto& request, const placement::PlacementRules& rules) {
                           all.push_back(request);
                           return decide(*request, rules, {});
                         }});
    placer.plan(ledger, workload, constraints);
    return all;
  }
};

TEST_F(RequestOfPlanTest, SaysThatCandidatesAreLeftOut) {
  const Ledger ledger = ledger_of({});
  const auto are_cut = [&](const Placer::Constraints& constraints, const placement::Workload& workload) {
    return requests(ledger, workload, constraints).at(0)->candidates_are_cut;
  };
  Placer::Constraints on_node_0;
  on_node_0.within_nodes = NodeSet{0};
  placement::Workload sharing = guaranteed("b", 1);
  sharing.qos = placement::Qos::kBurstable;
  EXPECT_FALSE(are_cut({}, guaranteed("a", 2)));
  EXPECT_TRUE(are_cut(on_node_0, guaranteed("a", 2)));
  EXPECT_FALSE(are_cut({}, sharing));
  EXPECT_TRUE(are_cut(on_node_0, sharing));
}

TEST_F(RequestOfPlanTest, SaysHowManyCpusStayShared) {
  EXPECT_EQ(requests(ledger_of({}), guaranteed("a", 2), {}).at(0)->min_shared_cpus, 2U);
}

TEST_F(RequestOfPlanTest, SaysWhatWhoMakesRoomHas) {
  const Ledger ledger = ledger_of({shared("b", Phase::kRunning, CpuSet::range(0, 3)), exclusive("c", {4, 5})});
  const auto asked = requests(ledger, guaranteed("a", 4), {});
  ASSERT_EQ(asked.size(), 2U);
  EXPECT_EQ(asked[0]->occasion, placement::Occasion::kCreate);
  EXPECT_EQ(asked[0]->had, placement::Had());
  EXPECT_EQ(asked[1]->occasion, placement::Occasion::kRepair);
  EXPECT_EQ(asked[1]->had.cpus.to_string(), "0-3");
  EXPECT_EQ(asked[0]->container_id, "");
  EXPECT_EQ(asked[1]->container_id, "c-b");
}

TEST_F(RequestOfPlanTest, SaysWhatWhoIsPlacedAnewWithAnotherHas) {
  const Allocation neighbour = shared("b", Phase::kRunning, CpuSet::range(0, 3));
  std::vector<placement::PolicyRequest> asked;
  const Placer placer({topology_,
                       placement::make_candidates(*topology_, topology_->allowed),
                       {},
                       [&](const auto& request, const placement::PlacementRules& rules) {
                         asked.push_back(*request);
                         placement::Decision decision = decide(*request, rules, {});
                         if (asked.size() == 1) decision.replace = {{neighbour.workload.key, true, "grows"}};
                         return decision;
                       }});
  placer.plan(ledger_of({neighbour}), guaranteed("a", 1), {});
  ASSERT_EQ(asked.size(), 2U);
  EXPECT_EQ(asked[1].occasion, placement::Occasion::kMove);
  EXPECT_EQ(asked[1].had.cpus.to_string(), "0-3");
}

TEST_F(RequestOfPlanTest, CountsAsTheNextAttemptWhatHadCpus) {
  const Ledger ledger = ledger_of({failed("a", {0, 1}, 1)});
  Placer::Constraints with_former;
  with_former.keep = {placement::Mode::kExclusive, {0, 1}, {2}, {}};
  const auto again = requests(ledger, guaranteed("a", 2), with_former).at(0);
  EXPECT_EQ(again->occasion, placement::Occasion::kRestart);
  EXPECT_EQ(again->had, (placement::Had{{0, 1}, {2}, {}}));
  placement::Workload next = guaranteed("a", 2);
  next.key.attempt = 1;
  const auto without = requests(ledger, next, {}).at(0);
  EXPECT_EQ(without->occasion, placement::Occasion::kRestart);
  EXPECT_EQ(without->had, placement::Had());
}

TEST_F(RequestOfPlanTest, LeavesItselfOutAlsoWhereItsFormerAttemptIsKept) {
  Allocation again = shared("a");
  again.workload.key.attempt = 1;
  const placement::Workload workload = again.workload;
  const Ledger ledger = ledger_of({failed("a", {0, 1}, 1), again});
  ASSERT_NE(ledger.find_kept(workload.key), nullptr);
  Placer::Constraints moved;
  moved.occasion = placement::Occasion::kMove;
  const auto asked = requests(ledger, workload, moved);
  ASSERT_FALSE(asked.empty());
  for (const placement::LedgerEntry& entry : asked[0]->ledger.entries) EXPECT_NE(entry.key, workload.key);
}

/// 90 containers that are alike must leave node 0 for 47 others.
class ShortListTest : public ::testing::Test {
 protected:
  ShortListTest() {
    std::vector<Allocation> allocations;
    for (int i = 0; i < 90; ++i) allocations.push_back(asking(fmt::format("s{}", i), 1000, CpuSet::range(0, 3)));
    ledger_ = ledger_of(std::move(allocations), {}, {topology_->allowed, {}, {}});
  }

  Plan plan() {
    const Placer placer(
        {topology_, candidates_, {}, [this](const auto& request, const placement::PlacementRules& rules) {
           asked_about_.push_back(request->candidates.size());
           placement::Decision decision = decide(*request, rules, votes_);
           if (loses_votes_) decision.lost_votes = {"least"};
           return decision;
         }});
    Placer::Constraints on_node_0;
    on_node_0.within_nodes = NodeSet{0};
    return placer.plan(ledger_, guaranteed("a", 4), on_node_0);
  }

  const std::shared_ptr<const topology::Topology> topology_ = testing::machine("node:48 core:4 pu:1");
  const std::vector<placement::Candidate> candidates_ = placement::make_candidates(*topology_, topology_->allowed);
  placement::Votes votes_ = {{std::make_shared<LeastAskedPolicy>()}};
  Ledger ledger_{kEightCpus, 0};
  std::vector<std::size_t> asked_about_;  ///< how many candidates
  bool loses_votes_ = false;
};

TEST_F(ShortListTest, AsksAboutAllCandidatesOnlyOnceInAWhile) {
  ASSERT_EQ(plan().moves.size(), 90U);
  const auto all = std::count(asked_about_.begin(), asked_about_.end(), candidates_.size());
  const auto few =
      std::count_if(asked_about_.begin(), asked_about_.end(), [](std::size_t count) { return count <= 32; });
  EXPECT_THAT(all, ::testing::AllOf(::testing::Ge(3), ::testing::Le(6)));
  EXPECT_GE(few, 86);
}

TEST_F(ShortListTest, SpreadsThemAsIfItAskedAboutAllEachTime) {
  std::map<NodeSet::Words, int> containers;
  for (const Move& move : plan().moves) ++containers[move.decision.nodes.words()];
  EXPECT_EQ(containers.size(), 47U);
  for (const auto& [nodes, count] : containers) EXPECT_LE(count, 2) << NodeSet::from_words(nodes).to_string();
}

TEST_F(ShortListTest, KeepsNoListOfWhatWasDecidedWithoutAVote) {
  loses_votes_ = true;
  ASSERT_EQ(plan().moves.size(), 90U);
  EXPECT_EQ(std::count(asked_about_.begin(), asked_about_.end(), candidates_.size()), 90);
}

TEST_F(ShortListTest, AsksAgainForWhoAsksForSomethingElse) {
  std::vector<Allocation> allocations;
  for (int i = 0; i < 9; ++i) allocations.push_back(asking(fmt::format("s{}", i), 100 + i, CpuSet::range(0, 3)));
  ledger_ = ledger_of(std::move(allocations), {}, {topology_->allowed, {}, {}});
  ASSERT_EQ(plan().moves.size(), 9U);
  // About all nodes at least.
  EXPECT_EQ(std::count_if(asked_about_.begin(), asked_about_.end(), [](std::size_t count) { return count > 48; }), 9);
}

/// Gives full marks to the best node.
class BestOfAllPolicy final : public LeastAskedPolicy {
 public:
  Result<std::vector<placement::Verdict>> score(const placement::PolicyRequest& request) override {
    auto verdicts = LeastAskedPolicy::score(request);
    std::int32_t best = -100;
    for (std::size_t i = 0; i < verdicts->size(); ++i) {
      const bool has_cpus = request.candidates[i].cpus.intersects(request.shared_cpus());
      if (has_cpus && (*verdicts)[i].kind == placement::Verdict::Kind::kScore)
        best = std::max(best, (*verdicts)[i].score);
    }
    for (placement::Verdict& verdict : *verdicts) verdict.score = std::min(100, verdict.score + 100 - best);
    return verdicts;
  }
};

/// Has a word on sets of several nodes only.
class WidePolicy final : public LeastAskedPolicy {
 public:
  const std::string& name() const override { return name_; }
  Result<std::vector<placement::Verdict>> score(const placement::PolicyRequest& request) override {
    std::vector<placement::Verdict> verdicts(request.candidates.size());
    for (std::size_t i = 0; i < verdicts.size(); ++i) {
      if (request.candidates[i].nodes.size() > 1) verdicts[i] = {placement::Verdict::Kind::kScore, 50, "is wide"};
    }
    return verdicts;
  }

 private:
  const std::string name_ = "wide";
};

TEST_F(ShortListTest, AsksAboutNoSetsOfSeveralNodesWhereASingleOneIsBest) {
  votes_ = {{std::make_shared<BestOfAllPolicy>()}};
  std::map<NodeSet::Words, int> containers;
  for (const Move& move : plan().moves) ++containers[move.decision.nodes.words()];
  const std::size_t nodes_and_machine = 49;
  for (const std::size_t count : asked_about_) EXPECT_LE(count, nodes_and_machine);
  EXPECT_EQ(containers.size(), 47U);
  for (const auto& [nodes, count] : containers) EXPECT_LE(count, 2) << NodeSet::from_words(nodes).to_string();
}

TEST_F(ShortListTest, AsksAboutAllWhereAnotherPolicyHasAWordOnSeveralNodes) {
  votes_ = {{std::make_shared<BestOfAllPolicy>()}, {std::make_shared<WidePolicy>()}};
  ASSERT_EQ(plan().moves.size(), 90U);
  EXPECT_GT(std::count(asked_about_.begin(), asked_about_.end(), candidates_.size()), 0);
}

TEST_F(ShortListTest, AsksAboutAllForOnesWithDevicesOrAZone) {
  votes_ = {{std::make_shared<BestOfAllPolicy>()}};
  Allocation with_device = asking("device", 1000, CpuSet::range(0, 3));
  with_device.workload.devices = {"/dev/g0"};
  Allocation with_zone = asking("zone", 1000, CpuSet::range(0, 3));
  with_zone.workload = placement::with_zone(with_zone.workload, NodeSet{5});
  ledger_ = ledger_of({with_device, with_zone}, {}, {topology_->allowed, {}, {}});
  ASSERT_EQ(plan().moves.size(), 2U);
  EXPECT_EQ(std::count(asked_about_.begin(), asked_about_.end(), candidates_.size()), 2);
}

TEST_F(PlacerTest, PlacesNobodyOnWhatIsStillBeingLeft) {
  Allocation leaving = exclusive("a", {0});
  leaving.vacating = leaving.vacating_alone = CpuSet::range(1, 3);
  const Ledger ledger = ledger_of({leaving});
  const Plan plan = placer_.plan(ledger, guaranteed("new", 3));
  ASSERT_FALSE(plan.decision.denied);
  EXPECT_TRUE(plan.decision.placement.cpus.is_subset_of(CpuSet::range(4, 7)));
}

}  // namespace
}  // namespace topolet::engine
