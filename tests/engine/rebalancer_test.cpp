#include "core/engine/converge/rebalancer.hpp"

#include <gmock/gmock.h>

#include "tests/engine/converge_test.hpp"

namespace topolet::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class RebalancerTest : public ConvergeTest {
 protected:
  void take_offline(const CpuSet& gone) {
    const CpuSet left = CpuSet::range(0, 7) - gone;
    rebalancer_->change_machine({topology_, placement::make_candidates(*topology_, left), {left, {}, {}}});
    loop_.advance(seconds(1));
  }

  /// `a` has lost its only CPU, and `b` does not leave where it would go.
  void hold_up_a() {
    begin({exclusive("a", {3}), shared("b")});
    start_converged("a");
    start_converged("b");
    rebalancer_->begin();
    runtime_.ignore_updates("c-b");
    take_offline({3});
    loop_.advance(seconds(10));
  }

  /// Counts how often `a` was given other CPUs since the test last took the transitions.
  int count_moves() {
    for (const std::string& line : take_transitions()) {
      const bool is_move = line.rfind("a: ", 0) == 0 && line.find("[re-placed") != std::string::npos;
      if (is_move && line.find("cpus") != std::string::npos) ++moves_;
    }
    // Half of them were undone.
    return moves_ / 2;
  }

  int moves_ = 0;
};

TEST_F(RebalancerTest, MovesWhoLosesItsCpus) {
  begin({exclusive("a", {0, 1}), shared("b")});
  start_converged("a");
  start_converged("b");
  rebalancer_->begin();
  take_offline({0});
  EXPECT_EQ(find("a")->placement.cpus, (CpuSet{1, 2}));
  EXPECT_EQ(runtime_.container("c-a").cpus(), (CpuSet{1, 2}));
  EXPECT_EQ(find("a")->vacating, CpuSet());
}

TEST_F(RebalancerTest, MovesWhoseOnlyCpuIsGoneThoughTheKernelDoesNotObey) {
  begin({exclusive("a", {3}), shared("b")});
  start_converged("a");
  start_converged("b");
  rebalancer_->begin();
  runtime_.take_offline({3});
  kernel_.run_on(container_of("a").pid, CpuSet::range(0, 7) - CpuSet{3});
  mover_->verify("c-a");
  loop_.advance(milliseconds(150));
  take_offline({3});
  EXPECT_EQ(find("a")->placement.cpus.size(), 1U);
  EXPECT_FALSE(find("a")->placement.cpus.contains(3));
  EXPECT_EQ(runtime_.container("c-a").cpus(), find("a")->placement.cpus);
  EXPECT_EQ(find("a")->vacating, CpuSet());
}

TEST_F(RebalancerTest, TriesAgainWithWhoCouldNotLeave) {
  hold_up_a();
  EXPECT_EQ(find("a")->placement.cpus, CpuSet{3}) << "the neighbour has not left where it would go";
  runtime_.ignore_updates("c-b", false);
  rebalancer_->retry();
  loop_.advance(seconds(10));
  EXPECT_EQ(find("a")->placement.cpus.size(), 1U);
  EXPECT_FALSE(find("a")->placement.cpus.contains(3));
}

TEST_F(RebalancerTest, TriesLessAndLessOften) {
  hold_up_a();
  take_transitions();
  for (int i = 0; i < 60; ++i) {
    rebalancer_->retry();
    loop_.advance(seconds(5));
  }
  EXPECT_LE(count_moves(), 6) << "of 60";
  EXPECT_GE(count_moves(), 3);
}

TEST_F(RebalancerTest, TakesAnUndoneMoveForNoGain) {
  Allocation lacking = exclusive("a", {0});
  lacking.workload = guaranteed("a", 2);
  begin({lacking, shared("b"), exclusive("c", {7})});
  for (const char* name : {"a", "b", "c"}) start_converged(name);
  runtime_.ignore_updates("c-b");
  rebalancer_->begin();
  loop_.advance(seconds(60));
  EXPECT_EQ(count_moves(), 1);
}

TEST_F(RebalancerTest, LeavesWhoHasNoCpuLeftToTheKernelUntilOneIsBack) {
  begin({exclusive("a", CpuSet::range(0, 6)), shared("b")});
  start_converged("a");
  start_converged("b");
  rebalancer_->begin();
  loop_.advance(seconds(1));
  ASSERT_EQ(find("b")->placement.cpus, CpuSet{7});
  runtime_.take_offline({7});
  kernel_.run_on(container_of("b").pid, CpuSet::range(0, 6));
  take_offline({7});
  EXPECT_EQ(find("b")->squeeze, Squeeze::kLeftToKernel);
  EXPECT_EQ(find("b")->placement.cpus, CpuSet{7}) << "it has it again when it is back";
  EXPECT_THAT(take_transitions(), Contains(HasSubstr("[squeezed")));
  runtime_.take_calls();
  mover_->verify_in_kernel("c-b");
  mover_->verify_all_in_kernel();
  rebalancer_->retry();
  loop_.advance(seconds(60));
  EXPECT_THAT(runtime_.take_calls(), Not(Contains(HasSubstr("Update"))));
  EXPECT_THAT(take_transitions(), IsEmpty()) << "said once, and no drift";
  runtime_.take_offline({});
  take_offline({});
  EXPECT_EQ(find("b")->squeeze, Squeeze::kNone);
  EXPECT_THAT(runtime_.take_calls(), Contains("UpdateContainerResources c-b 7"))
      << "cgroup v1 has taken it out of the container's cgroup";
  EXPECT_THAT(take_transitions(), Contains(HasSubstr("[re-placed")));
}

TEST_F(RebalancerTest, CarriesOutAtOnceWhatAPluginWishesNow) {
  begin({exclusive("a", {5})});
  start_converged("a");
  rebalancer_->begin();
  runtime_.fail("UpdateContainerResources", cri::RuntimeResponse{Code::kUnavailable, "away", {}});
  mover_->open_queue("c-a", std::nullopt);
  loop_.advance(milliseconds(150));
  plugin::MoveRequest wish{"roomy", find("a")->workload.key, true, "to see it move"};
  rebalancer_->move_as_requested(wish);
  loop_.advance(milliseconds(150));
  EXPECT_EQ(find("a")->placement.cpus, CpuSet{5}) << "it has not been seen where it should be";
  wish.now = true;
  rebalancer_->move_as_requested(wish);
  loop_.advance(milliseconds(150));
  EXPECT_EQ(find("a")->placement.cpus, CpuSet{0});
}

TEST_F(RebalancerTest, LeavesOthersCpusWhileSomebodyMoves) {
  begin({exclusive("a", CpuSet::range(0, 3)), shared("b")});
  const RebalancePlanner plans(committer_->ledger(), placer_);
  const Allocation& a = *find("a");
  EXPECT_TRUE(plans.leaves_others_cpus(a, exclusive_on({4, 5})));
  EXPECT_FALSE(plans.leaves_others_cpus(a, exclusive_on(CpuSet::range(4, 7)))) << "its own are not free before";
  Plan swap = exclusive_on({4, 5});
  placement::Decision to_its_cpus = shared_on(CpuSet::range(0, 3), CpuSet::range(0, 3)).decision;
  swap.moves.push_back({besteffort("b"), to_its_cpus, {}});
  EXPECT_FALSE(plans.leaves_others_cpus(a, swap));
}

}  // namespace
}  // namespace topolet::engine
