#include "core/engine/converge/exits.hpp"

#include <gmock/gmock.h>

#include "tests/engine/converge_test.hpp"

namespace topolet::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class ExitsTest : public ConvergeTest {
 protected:
  /// As often as `then` was called.
  int report(const std::string& id, const Exit& exit = {}) {
    int called = 0;
    exits_->report(id, exit, [&called] { ++called; });
    loop_.run();
    return called;
  }
  void on_durable(const Transition& transition) override {
    for (const Change& change : transition.changes) exit_code_ = change.exit_code;
    ConvergeTest::on_durable(transition);
  }

  std::optional<std::int32_t> exit_code_;  ///< as the last change says
};

TEST_F(ExitsTest, AsksForTheExitCodeWhereItDecidesWhatBecomesOfTheCpus) {
  begin({exclusive("a", {0})});
  runtime_.put("c-a", container_of("a"));
  runtime_.exit("c-a", 1);
  EXPECT_EQ(report("c-a"), 1);
  EXPECT_THAT(runtime_.take_calls(), ElementsAre("ContainerStatus"));
  EXPECT_THAT(take_transitions(), ElementsAre(StartsWith("a: phase running>crashed")));
}

TEST_F(ExitsTest, DoesNotAskWhereItMakesNoDifference) {
  Allocation stopping = exclusive("b", {1});
  stopping.stopping = true;
  Allocation kubelets = exclusive("c", {2});
  kubelets.workload.kubelet_cpus = CpuSet{2};
  begin({shared("a"), stopping, kubelets, exclusive("d", {3})});
  for (const char* id : {"c-a", "c-b", "c-c"}) EXPECT_EQ(report(id), 1);
  EXPECT_EQ(report("c-d", {Exit::Kind::kExited, 0}), 1) << "whoever reports it may know";
  EXPECT_THAT(runtime_.take_calls(), IsEmpty());
  for (const auto& [key, allocation] : committer_->ledger().allocations())
    EXPECT_EQ(allocation.phase, Phase::kKept) << key.name;
  EXPECT_EQ(committer_->ledger().allocations().size(), 2U) << "b and d";
}

TEST_F(ExitsTest, AskForEachExitCodeWhereSomebodyWantsToKnow) {
  begin({shared("a"), shared("b"), shared("c"), shared("d", Phase::kCreated)});
  exits_ = std::make_unique<Exits>(*committer_, *cpusets_, [] { return true; });
  for (const char* name : {"a", "b"}) runtime_.put("c-" + std::string(name), container_of(name));
  runtime_.exit("c-a", 3);
  EXPECT_EQ(report("c-a"), 1);
  EXPECT_EQ(exit_code_, 3);
  EXPECT_EQ(report("c-b"), 1) << "it runs, says the runtime, but whoever reported it knows better";
  EXPECT_EQ(exit_code_, std::nullopt);
  EXPECT_EQ(report("c-c"), 1) << "the runtime does not know it";
  EXPECT_THAT(runtime_.take_calls(), ElementsAre("ContainerStatus", "ContainerStatus", "ContainerStatus"));
  EXPECT_EQ(report("c-d"), 1);
  EXPECT_THAT(runtime_.take_calls(), IsEmpty()) << "it never ran";
  EXPECT_THAT(committer_->ledger().allocations(), IsEmpty());
}

TEST_F(ExitsTest, TellOfAnExitOnceThoughManySeeIt) {
  begin({exclusive("a", {0})});
  runtime_.put("c-a", container_of("a"));
  runtime_.exit("c-a", 1);
  int called = 0;
  for (int seen = 0; seen < 3; ++seen) exits_->report("c-a", {}, [&called] { ++called; });
  loop_.run();
  EXPECT_EQ(called, 3);
  EXPECT_EQ(take_transitions().size(), 1U);
  EXPECT_EQ(report("c-a", {Exit::Kind::kGone}), 1);
  EXPECT_THAT(take_transitions(), IsEmpty()) << "what is kept for the next attempt stays without the container";
}

TEST_F(ExitsTest, CallBackOnceItIsWritten) {
  begin({shared("a")});
  bool is_written = false;
  exits_->report("c-a", {}, [&] { is_written = store_->allocations()->empty(); });
  loop_.run();
  EXPECT_TRUE(is_written);
}

TEST_F(ExitsTest, LeaveThingsAsTheyAreWhereTheRuntimeDoesNotKnow) {
  begin({exclusive("a", {0})});
  runtime_.put("c-a", container_of("a"));
  EXPECT_EQ(report("c-a"), 1) << "it runs, says the runtime";
  runtime_.fail("ContainerStatus", cri::RuntimeResponse{Code::kUnavailable, "away", {}});
  EXPECT_EQ(report("c-a"), 1);
  EXPECT_THAT(take_transitions(), IsEmpty());
  EXPECT_EQ(report("unheard-of"), 1);
}

TEST_F(ExitsTest, KeepTheCpusOfWhatTheRuntimeHasNoMore) {
  begin({exclusive("a", {0}), exclusive("b", {1}, Phase::kCreated)});
  EXPECT_EQ(report("c-a"), 1);
  EXPECT_THAT(take_transitions(), ElementsAre(StartsWith("a: phase running>kept")));
  EXPECT_EQ(report("c-b"), 1) << "it never ran";
  EXPECT_THAT(take_transitions(), ElementsAre("b: over: gone", "pool 2-7>1-7"));
}

TEST_F(ExitsTest, SayWhyItIsOver) {
  begin({shared("a"), shared("b"), shared("c")});
  report("c-a", {Exit::Kind::kStopped});
  report("c-b", {Exit::Kind::kRemoved});
  report("c-c", {Exit::Kind::kGone});
  EXPECT_THAT(take_transitions(), ElementsAre("a: over: stopped", "b: over: removed", "c: over: gone"));
}

TEST_F(ExitsTest, EndAllOfAPod) {
  begin({exclusive("a", {0})}, {pod_of("a")});
  bool is_reported = false;
  exits_->pod_stopped("sandbox-a", [&] { is_reported = true; });
  loop_.run();
  EXPECT_TRUE(is_reported);
  EXPECT_EQ(find("a"), nullptr);
  exits_->pod_removed("sandbox-a", [] {});
  loop_.run();
  EXPECT_THAT(committer_->ledger().pods(), IsEmpty());
}

}  // namespace
}  // namespace topolet::engine
