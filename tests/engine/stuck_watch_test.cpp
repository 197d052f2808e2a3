#include "core/engine/converge/stuck_watch.hpp"

#include <gmock/gmock.h>

#include <algorithm>

#include "core/placement/reason_codes.hpp"
#include "tests/engine/converge_test.hpp"

namespace topolet::engine {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;

/// `b` shares all CPUs, and `a` is given CPU 0 alone.
class StuckWatchTest : public ConvergeTest {
 protected:
  void begin_with_neighbour() {
    begin({shared("b")});
    start_converged("b");
    mover_->verify("c-b");  // its process is known from then on
    loop_.run();
  }
  void answer_updates(Code code, const std::string& message) {
    runtime_.fail("UpdateContainerResources", cri::RuntimeResponse{code, message, {}});
  }
  void answer_updates() { runtime_.fail("UpdateContainerResources", std::nullopt); }
  std::optional<Status> give_a_its_cpu(const CpuSet& cpus = {0}) {
    commit(event::CreateAdmitted{guaranteed("a", static_cast<std::int64_t>(cpus.size())), exclusive_on(cpus)});
    clear_.reset();
    mover_->await_neighbours(guaranteed("a", 1).key, kNeighboursTimeout,
                             [this](const Status& status) { clear_ = status; });
    loop_.advance(seconds(21));
    return clear_;
  }
  void withdraw_a() { commit(event::CreateWithdrawn{guaranteed("a", 1).key, "neighbours-stuck"}); }
  std::size_t updates() {
    const std::vector<std::string> calls = runtime_.take_calls();
    return static_cast<std::size_t>(std::count_if(calls.begin(), calls.end(), [](const std::string& call) {
      return call.rfind("UpdateContainerResources", 0) == 0;
    }));
  }
  const std::optional<Stuck>& stuck() const { return find("b")->stuck; }

  std::optional<Status> clear_;
};

TEST_F(StuckWatchTest, RemembersWhoIsRefused) {
  begin_with_neighbour();
  answer_updates(Code::kUnknown, "device or resource busy");
  EXPECT_FALSE(give_a_its_cpu()->has_value());
  ASSERT_TRUE(stuck());
  EXPECT_EQ(stuck()->cpus, CpuSet::range(0, 7));
  EXPECT_THAT(stuck()->why, HasSubstr("device or resource busy"));
  EXPECT_EQ(committer_->ledger().barred_for(nullptr), CpuSet::range(0, 7));
  const Plan plan = placer_.plan(committer_->ledger(), guaranteed("z", 1));
  EXPECT_TRUE(plan.decision.denied);
  EXPECT_EQ(plan.decision.reason_code, placement::reason_code::kNeighboursStuck);
  EXPECT_FALSE(placer_.plan(committer_->ledger(), besteffort("y")).decision.denied) << "others may share them";
}

TEST_F(StuckWatchTest, SaysNothingOfAContainerWhereTheRuntimeIsAway) {
  begin_with_neighbour();
  answer_updates(Code::kUnavailable, "connection refused");
  EXPECT_FALSE(give_a_its_cpu()->has_value());
  EXPECT_FALSE(stuck());
}

TEST_F(StuckWatchTest, RemembersWhoIsNotAnswered) {
  begin_with_neighbour();
  runtime_.hold();
  EXPECT_FALSE(give_a_its_cpu()->has_value());
  ASSERT_TRUE(stuck());
  EXPECT_THAT(stuck()->why, HasSubstr("has not answered"));
  runtime_.release();
  loop_.run();
  EXPECT_FALSE(stuck()) << "it has left the CPU after all";
}

TEST_F(StuckWatchTest, TriesAgainAtABoundedRateAndAtOnceWhatIsNew) {
  begin_with_neighbour();
  answer_updates(Code::kUnknown, "device or resource busy");
  give_a_its_cpu();
  withdraw_a();
  updates();
  for (int second = 0; second < 1800; ++second) {
    mover_->try_stuck();
    loop_.advance(seconds(1));
  }
  EXPECT_LE(updates(), 60U);
  EXPECT_GE(stuck()->trials, 4U);
  answer_updates();
  loop_.advance(minutes(11));
  mover_->try_stuck();
  loop_.run();
  EXPECT_FALSE(stuck());
  EXPECT_EQ(*cpusets_->kernel_cpus("c-b"), CpuSet::range(0, 7)) << "it has all its CPUs";
}

TEST_F(StuckWatchTest, IsInNobodysWayWhereTheKernelDoesNotHaveIt) {
  begin({exclusive("a", {0, 1, 2, 3}), shared("b")});
  start_converged("a");
  start_converged("b");
  mover_->verify("c-b");
  loop_.run();
  answer_updates(Code::kUnknown, "the container is paused");
  commit(event::Ended{guaranteed("a", 4).key, "exited"});  // so it should be on all CPUs
  loop_.advance(seconds(2));
  EXPECT_EQ(find("b")->placement.cpus, CpuSet::range(0, 7));
  EXPECT_FALSE(stuck()) << "it is in nobody's way";
  const auto clear = give_a_its_cpu({0, 1});
  ASSERT_TRUE(clear);
  EXPECT_TRUE(clear->has_value()) << "it was never there";
}

TEST_F(StuckWatchTest, IsOverWithTheContainer) {
  begin_with_neighbour();
  answer_updates(Code::kUnknown, "device or resource busy");
  give_a_its_cpu();
  take_transitions();
  commit(event::Ended{besteffort("b").key, "exited"});
  EXPECT_TRUE(committer_->ledger().barred_for(nullptr).empty());
}

TEST(StuckContainers, BarNothingToTheOneThatHasTheCpusAlready) {
  Allocation stuck = shared("s");
  stuck.stuck = Stuck{{2, 3}, "busy"};
  const Ledger ledger = ledger_of({exclusive("a", {2}), stuck});
  EXPECT_EQ(ledger.barred_for(nullptr), (CpuSet{2, 3}));
  const placement::ContainerKey own = guaranteed("a", 1).key;
  EXPECT_EQ(ledger.barred_for(&own), (CpuSet{3}));
  EXPECT_EQ(ledger.snapshot(&own).barred, (CpuSet{3}));
}

}  // namespace
}  // namespace topolet::engine
