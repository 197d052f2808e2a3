#include "core/engine/converge/paced_moves.hpp"
#include "core/placement/decide.hpp"

#include <gmock/gmock.h>

#include "tests/engine/converge_test.hpp"
#include "tests/engine/crowds.hpp"
#include "tests/engine/healing.hpp"

namespace topolet::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const CpuSet kFirstNode = CpuSet::range(0, 3);
const CpuSet kSecondNode = CpuSet::range(4, 7);

class CrowdReliefTest : public ConvergeTest {
 protected:
  CrowdReliefTest() {
    placer_ = Placer({topology_,
                      placement::make_candidates(*topology_, topology_->allowed),
                      {},
                      [least = least_](const auto& request, const placement::PlacementRules& rules) {
                        return decide(*request, rules, {{.policy = least}});
                      }});
  }

  /// Node 0 has two CPUs to share, on which all of them are; the four of node 1 idle.
  void crowd(const std::vector<std::string>& names, std::int64_t milli = 2000) {
    std::vector<Allocation> allocations = {exclusive("x", {2, 3})};
    for (const std::string& name : names) allocations.push_back(asking(name, milli, kFirstNode));
    begin(allocations);
    start_converged("x");
    for (const std::string& name : names) start_converged(name);
    rebalancer_->begin();
    loop_.run();
  }
  std::vector<std::string> on_node_1() const {
    std::vector<std::string> names;
    for (const auto& [key, allocation] : committer_->ledger().allocations()) {
      if (allocation.placement.cpus == kSecondNode) names.push_back(key.name);
    }
    return names;
  }

  const std::shared_ptr<LeastAskedPolicy> least_ = std::make_shared<LeastAskedPolicy>();
};

TEST_F(CrowdReliefTest, MovesOneASecondUntilNobodyIsCrowded) {
  crowd({"a", "b", "c"});
  loop_.advance(milliseconds(999));
  EXPECT_THAT(on_node_1(), IsEmpty());
  loop_.advance(milliseconds(1));
  EXPECT_THAT(on_node_1(), SizeIs(1));
  EXPECT_EQ(runtime_.container("c-a").cpus(), kSecondNode);
  loop_.advance(milliseconds(999));
  EXPECT_THAT(on_node_1(), SizeIs(1));
  loop_.advance(milliseconds(1));
  EXPECT_THAT(on_node_1(), SizeIs(2));
  EXPECT_EQ(runtime_.container("c-b").cpus(), kSecondNode);
  EXPECT_EQ(find("b")->vacating, CpuSet());
  take_transitions();
  loop_.advance(seconds(600));
  EXPECT_THAT(take_transitions(), IsEmpty());
}

TEST_F(CrowdReliefTest, AsksNoPolicyWhereNobodyIsCrowded) {
  crowd({"a", "b"}, 1000);
  loop_.advance(seconds(5));
  commit(event::DemandChanged{besteffort("a").key, asking("a", 900).workload.demand, "resized"});
  loop_.advance(seconds(5));
  rebalancer_->retry();
  loop_.advance(seconds(5));
  EXPECT_EQ(least_->take_asked(), 0);
}

TEST_F(CrowdReliefTest, SeesThatMoreIsRequested) {
  crowd({"a", "b"}, 1000);
  loop_.advance(seconds(5));
  commit(event::DemandChanged{besteffort("a").key, asking("a", 3000).workload.demand, "resized"});
  loop_.advance(seconds(1));
  EXPECT_EQ(find("a")->placement.cpus, kSecondNode);
}

TEST_F(CrowdReliefTest, SeesThatCpusBecomeFreeElsewhere) {
  begin({exclusive("x", {2, 3}), exclusive("y", kSecondNode), asking("a", 2000, kFirstNode),
         asking("b", 2000, kFirstNode)});
  for (const char* name : {"x", "y", "a", "b"}) start_converged(name);
  rebalancer_->begin();
  loop_.advance(seconds(5));
  EXPECT_THAT(take_transitions(), IsEmpty());
  commit(event::Ended{exclusive("y", {}).workload.key, "pod-stopped"});
  EXPECT_THAT(on_node_1(), IsEmpty());
  loop_.advance(seconds(1));
  EXPECT_THAT(on_node_1(), SizeIs(1));
}

TEST_F(CrowdReliefTest, DoesNotAskAgainWhileAllIsAsItWas) {
  // The policies would have each of them on node 0, whatever is asked of it.
  const auto fixed = std::make_shared<FixedPolicy>(std::vector<std::pair<NodeSet, std::int32_t>>{{{0}, 100}});
  int asked = 0;
  placer_ = Placer({topology_,
                    placement::make_candidates(*topology_, topology_->allowed),
                    {},
                    [fixed, &asked](const auto& request, const placement::PlacementRules& rules) {
                      ++asked;
                      return decide(*request, rules, {{.policy = fixed}});
                    }});
  std::vector<std::string> names;
  for (char name = 'a'; name < 'a' + 12; ++name) names.emplace_back(1, name);
  crowd(names, 1000);
  loop_.advance(seconds(1));
  EXPECT_EQ(asked, 8) << "the loop waits for the policies";
  loop_.advance(seconds(1));
  EXPECT_EQ(asked, 12);
  rebalancer_->retry();
  loop_.advance(seconds(60));
  EXPECT_EQ(asked, 12);
  commit(event::DemandChanged{besteffort("a").key, asking("a", 900).workload.demand, "resized"});
  loop_.advance(seconds(10));
  EXPECT_EQ(asked, 24);
}

TEST_F(CrowdReliefTest, AsksAgainWhereAPolicyLostItsVote) {
  bool is_late = true;
  int asked = 0;
  placer_ = Placer({topology_,
                    placement::make_candidates(*topology_, topology_->allowed),
                    {},
                    [this, &is_late, &asked](const auto& request, const placement::PlacementRules& rules) {
                      ++asked;
                      placement::Decision decision = decide(*request, rules, {{.policy = least_}});
                      if (is_late) decision.lost_votes = {"least"};
                      return decision;
                    }});
  crowd({"a", "b"});
  loop_.advance(seconds(5));
  is_late = false;
  loop_.advance(seconds(5));
  EXPECT_EQ(asked, 2);
  EXPECT_THAT(on_node_1(), IsEmpty());
  rebalancer_->retry();
  loop_.advance(seconds(1));
  EXPECT_THAT(on_node_1(), SizeIs(1));
}

TEST_F(CrowdReliefTest, MovesAnotherWhereTheRuntimeDoesNotCarryOutTheMove) {
  crowd({"a", "b"});
  runtime_.ignore_updates("c-a");
  loop_.advance(seconds(1));
  EXPECT_EQ(find("a")->placement.cpus, kSecondNode);
  EXPECT_NE(find("a")->vacating, CpuSet());
  loop_.advance(seconds(30));
  EXPECT_EQ(find("a")->placement.cpus, (CpuSet{0, 1}));
  EXPECT_EQ(find("b")->placement.cpus, kSecondNode);
  runtime_.ignore_updates("c-a", false);
  loop_.advance(seconds(60));
  EXPECT_EQ(runtime_.container("c-a").cpus(), (CpuSet{0, 1}));
  EXPECT_EQ(find("a")->vacating, CpuSet());
}

TEST_F(CrowdReliefTest, GivesTheCpusThatItLeftToNobodyBeforeThat) {
  crowd({"a", "b"});
  runtime_.ignore_updates("c-a");
  loop_.advance(seconds(1));
  ASSERT_EQ(find("a")->placement.cpus, kSecondNode);
  commit(event::CreateAdmitted{guaranteed("new", 1), exclusive_on({1})});
  loop_.advance(seconds(5));
  const Ledger& ledger = committer_->ledger();
  EXPECT_THAT(ledger.neighbours_blocking(guaranteed("new", 1).key), ElementsAre(besteffort("a").key));
  runtime_.ignore_updates("c-a", false);
  loop_.advance(seconds(60));
  EXPECT_THAT(ledger.neighbours_blocking(guaranteed("new", 1).key), IsEmpty());
}

TEST_F(CrowdReliefTest, WaitsUntilItIsKnownWhatRuns) {
  begin({exclusive("x", {2, 3}), asking("a", 2000, kFirstNode), asking("b", 2000, kFirstNode)});
  for (const char* name : {"x", "a", "b"}) start_converged(name);
  commit(event::DemandChanged{besteffort("a").key, asking("a", 3000).workload.demand, "resized"});
  loop_.advance(seconds(5));
  EXPECT_THAT(on_node_1(), IsEmpty());
}

constexpr std::chrono::minutes kRest{10};

class HealTest : public ConvergeTest {
 protected:
  HealTest() {
    placer_ = Placer({topology_, placement::make_candidates(*topology_, topology_->allowed), healing_all(),
                      [narrow = narrow_](const auto& request, const placement::PlacementRules& rules) {
                        return decide(*request, rules, {{.policy = narrow}});
                      }});
  }

  void run(const std::vector<Allocation>& allocations) {
    begin(allocations);
    for (const Allocation& allocation : allocations) start_converged(allocation.workload.key.name);
    rebalancer_->begin();
    loop_.run();
  }
  void end(const std::string& name) { commit(event::Ended{besteffort(name).key, "pod-stopped"}); }
  CpuSet cpus_of(const std::string& name) const { return find(name)->placement.cpus; }

  const std::shared_ptr<NarrowPolicy> narrow_ = std::make_shared<NarrowPolicy>();
};

TEST_F(HealTest, MovesWhoFitsWhenCpusComeFree) {
  run({exclusive("x", {0, 1, 2}), exclusive("y", {5, 6, 7}), exclusive("wide", {3, 4})});
  loop_.advance(seconds(5));
  EXPECT_EQ(cpus_of("wide"), (CpuSet{3, 4}));
  end("y");
  EXPECT_EQ(cpus_of("wide"), (CpuSet{3, 4})) << "what comes and goes together has gone by then";
  loop_.advance(seconds(1));
  EXPECT_EQ(cpus_of("wide"), (CpuSet{4, 5}));
  EXPECT_EQ(runtime_.container("c-wide").cpus(), (CpuSet{4, 5}));
  EXPECT_EQ(find("wide")->vacating, CpuSet());
  EXPECT_EQ(find("wide")->last_move->cause, MoveCause::kHeal);
}

TEST_F(HealTest, MovesOneASecond) {
  run({exclusive("a", {0, 4}), exclusive("b", {1, 5})});
  loop_.advance(milliseconds(1000));
  EXPECT_EQ(topology_->nodes_of(cpus_of("a")).size() + topology_->nodes_of(cpus_of("b")).size(), 3U);
  loop_.advance(milliseconds(999));
  EXPECT_EQ(topology_->nodes_of(cpus_of("a")).size() + topology_->nodes_of(cpus_of("b")).size(), 3U);
  loop_.advance(milliseconds(1));
  EXPECT_EQ(topology_->nodes_of(cpus_of("a")).size() + topology_->nodes_of(cpus_of("b")).size(), 2U);
  take_transitions();
  loop_.advance(seconds(900));
  EXPECT_THAT(take_transitions(), IsEmpty());
}

TEST_F(HealTest, LeavesAloneForTenMinutesWhoWasMoved) {
  Allocation moved = exclusive("wide", {3, 4});
  moved.last_move = LastMove{loop_.clock().wall(), MoveCause::kPlugin};
  run({moved});
  loop_.advance(kRest - seconds(1));
  EXPECT_EQ(cpus_of("wide"), (CpuSet{3, 4}));
  loop_.advance(seconds(2));
  EXPECT_NE(cpus_of("wide"), (CpuSet{3, 4})) << "nothing else has happened meanwhile";
}

TEST_F(HealTest, WithdrawsAMoveThatTheRuntimeDoesNotCarryOut) {
  run({exclusive("x", {0, 1, 2}), exclusive("wide", {3, 4})});
  runtime_.fail("UpdateContainerResources", cri::RuntimeResponse{Code::kUnknown, "it does not want to", {}});
  loop_.advance(seconds(1));
  ASSERT_EQ(cpus_of("wide"), (CpuSet{4, 5}));
  EXPECT_FALSE(committer_->ledger().pool().contains(3)) << "it has not left that";
  loop_.advance(seconds(60));
  EXPECT_EQ(cpus_of("wide"), (CpuSet{3, 4}));
  EXPECT_EQ(find("wide")->vacating, CpuSet());
  EXPECT_EQ(runtime_.container("c-wide").cpus(), (CpuSet{3, 4}));
  runtime_.fail("UpdateContainerResources", std::nullopt);
  loop_.advance(kRest - seconds(120));
  EXPECT_EQ(cpus_of("wide"), (CpuSet{3, 4})) << "it is not tried again so soon";
  loop_.advance(seconds(120));
  EXPECT_EQ(cpus_of("wide"), (CpuSet{4, 5}));
}

TEST_F(HealTest, GoesOnWhereTheDaemonBeforeItEnded) {
  Allocation moved = exclusive("a", {0, 1});
  moved.last_move = LastMove{loop_.clock().wall() - milliseconds(300), MoveCause::kHeal};
  run({moved, exclusive("wide", {3, 4})});
  loop_.advance(milliseconds(699));
  EXPECT_EQ(cpus_of("wide"), (CpuSet{3, 4})) << "one a second, whoever made the last";
  loop_.advance(seconds(1));
  EXPECT_NE(cpus_of("wide"), (CpuSet{3, 4}));
}

TEST_F(HealTest, LeavesAContainerThatWasMovedWhereItIsThoughItIsDueToReturn) {
  Allocation displaced = asking("d", 1000, kSecondNode);
  displaced.preferred = Preferred{{}, kFirstNode, NodeSet{0}};
  displaced.last_move = LastMove{loop_.clock().wall(), MoveCause::kCrowd};
  run({displaced, exclusive("x", {0, 1, 2, 3})});
  end("x");
  EXPECT_EQ(find("d")->within, kSecondNode);
  EXPECT_TRUE(find("d")->preferred->is_due);
  loop_.advance(kRest + seconds(2));
  EXPECT_EQ(find("d")->within, kFirstNode);
  EXPECT_EQ(find("d")->last_move->cause, MoveCause::kReturn);
}

TEST_F(HealTest, HealsAllAtOnceWhenItIsAskedTo) {
  run({exclusive("a", {0, 4}), exclusive("b", {1, 5})});
  std::optional<Result<HealReport>> would;
  rebalancer_->heal(true, [&would](const auto& report) { would = report; });
  loop_.run();
  ASSERT_TRUE(would && *would);
  EXPECT_THAT((*would)->moved, SizeIs(2));
  EXPECT_EQ(cpus_of("a"), (CpuSet{0, 4}));
  std::optional<Result<HealReport>> done;
  rebalancer_->heal(false, [&done](const auto& report) { done = report; });
  loop_.run();
  ASSERT_TRUE(done && *done);
  ASSERT_THAT((*done)->moved, SizeIs(2));
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ((*done)->moved[i].to, (*would)->moved[i].to);
    EXPECT_EQ((*done)->moved[i].reason, (*would)->moved[i].reason);
  }
  EXPECT_EQ(topology_->nodes_of(cpus_of("a")).size() + topology_->nodes_of(cpus_of("b")).size(), 2U);
}

}  // namespace
}  // namespace topolet::engine
