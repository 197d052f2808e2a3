#include "core/engine/converge/rebalancer.hpp"

#include <gmock/gmock.h>

#include "tests/engine/converging.hpp"

namespace topolet::engine {
namespace {

using std::chrono::seconds;

class RebalancerTest : public Converging {
 protected:
  void take_offline(const CpuSet& gone) {
    const CpuSet left = CpuSet::range(0, 7) - gone;
    rebalancer_->change_machine({topology_, make_candidates(*topology_, left), {left, {}, {}}});
    loop_.advance(seconds(1));
  }
};

TEST_F(RebalancerTest, MovesWhoLosesItsCpus) {
  begin({exclusive("a", {0, 1}), shared("b")});
  put_in_place("a");
  put_in_place("b");
  rebalancer_->begin();
  take_offline({0});
  EXPECT_EQ(find("a")->placement.cpus, (CpuSet{1, 2}));
  EXPECT_EQ(runtime_.container("c-a").cpus, (CpuSet{1, 2}));
  EXPECT_EQ(find("a")->vacating, CpuSet());
}

/// The kernel runs a process on all CPUs when none of its set is there, and no update to that set changes it.
TEST_F(RebalancerTest, MovesWhoseOnlyCpuIsGoneThoughTheKernelDoesNotObey) {
  begin({exclusive("a", {3}), shared("b")});
  put_in_place("a");
  put_in_place("b");
  runtime_.container("c-a").ignores_updates = true;
  kernel_.run_on(container_of("a").pid, CpuSet{0, 1, 2, 4, 5, 6, 7});
  mover_->verify("c-a");
  loop_.advance(seconds(3));
  runtime_.container("c-a").ignores_updates = false;
  rebalancer_->begin();
  take_offline({3});
  EXPECT_EQ(find("a")->placement.cpus.size(), 1U);
  EXPECT_FALSE(find("a")->placement.cpus.contains(3));
  EXPECT_EQ(runtime_.container("c-a").cpus, find("a")->placement.cpus);
  loop_.advance(seconds(10));
  EXPECT_EQ(find("a")->vacating, CpuSet());
}

TEST_F(RebalancerTest, TriesAgainWithWhoCouldNotLeave) {
  begin({exclusive("a", {3}), shared("b")});
  put_in_place("a");
  put_in_place("b");
  rebalancer_->begin();
  runtime_.container("c-b").ignores_updates = true;
  take_offline({3});
  loop_.advance(seconds(10));
  EXPECT_EQ(find("a")->placement.cpus, CpuSet{3}) << "the neighbour has not left where it would go";
  runtime_.container("c-b").ignores_updates = false;
  rebalancer_->retry();
  loop_.advance(seconds(10));
  EXPECT_EQ(find("a")->placement.cpus.size(), 1U);
  EXPECT_FALSE(find("a")->placement.cpus.contains(3));
}

}  // namespace
}  // namespace topolet::engine
