#include "core/engine/converge/paced_moves.hpp"
#include "core/placement/decide.hpp"

#include <gmock/gmock.h>

#include "tests/engine/converge_test.hpp"
#include "tests/engine/crowds.hpp"

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

TEST_F(CrowdReliefTest, LeavesItToTheQueueToRepeatWhatTheRuntimeRefused) {
  crowd({"a", "b"});
  runtime_.ignore_updates("c-a");
  loop_.advance(seconds(10));
  EXPECT_EQ(find("a")->placement.cpus, kSecondNode);
  EXPECT_NE(find("a")->vacating, CpuSet());
  EXPECT_EQ(find("b")->placement.cpus, (CpuSet{0, 1}));
  runtime_.ignore_updates("c-a", false);
  loop_.advance(seconds(60));
  EXPECT_EQ(runtime_.container("c-a").cpus(), kSecondNode);
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

}  // namespace
}  // namespace topolet::engine
