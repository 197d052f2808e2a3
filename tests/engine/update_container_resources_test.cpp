#include "core/engine/handlers/update_container_resources.hpp"

#include <gmock/gmock.h>

#include "core/cri/messages/lens.pb.h"
#include "tests/engine/awaited_operation.hpp"
#include "tests/engine/handler_test.hpp"

namespace topolet::engine {
namespace {

using std::chrono::seconds;

class UpdateContainerResourcesTest : public HandlerTest {
 protected:
  /// Gives `a`, which has CPU 0 alone, more memory and the same CPUs.
  std::shared_ptr<ScriptedCall> give_memory_to_a() {
    lens::UpdateContainerResourcesRequest request;
    request.set_container_id("c-a");
    request.mutable_linux()->set_memory_limit_bytes(std::int64_t{1} << 30);
    return call<UpdateContainerResources>("UpdateContainerResources", request.SerializeAsString(), cri::read_update);
  }
};

TEST_F(UpdateContainerResourcesTest, LetsOthersHaveTheirTurnIfItsAnswerNeverComes) {
  begin({exclusive("a", {0})});
  start_converged("a", operations::ContainerState::kRunning);
  const auto call = give_memory_to_a();
  ASSERT_TRUE(call->is_forwarded());
  bool has_turn = false;
  mover_->run_in_turn("c-a", ContainerQueues::Needs::kTurn, [&](const Status&, const auto& done) {
    has_turn = true;
    done(false);
  });
  loop_.advance(kOutcomePatience - seconds(1));
  expire_outcomes();
  EXPECT_FALSE(has_turn);
  EXPECT_FALSE(call->kubelet_answer());
  loop_.advance(seconds(1));
  expire_outcomes();
  ASSERT_TRUE(call->kubelet_answer());
  EXPECT_EQ(call->kubelet_answer()->code, Code::kDeadlineExceeded);
  loop_.advance(seconds(30));
  EXPECT_TRUE(has_turn);
  EXPECT_EQ(find("a")->workload.demand.memory_limit_bytes, std::int64_t{1} << 30) << "the runtime may have taken it";
  call->answer({});
  loop_.run();
  EXPECT_EQ(call->kubelet_answer()->code, Code::kDeadlineExceeded) << "it is answered once";
}

/// An update whose runtime waits for the answer, and changes nobody meanwhile.
class WaitingUpdate final : public AwaitedOperation<operations::UpdateOperation> {
 public:
  explicit WaitingUpdate(operations::ResourceUpdate update) : update_(std::move(update)) {}

  const operations::ResourceUpdate& update() const override { return update_; }
  void admit(const ContainerCpuset& told, operations::OnOutcome on_outcome) override {
    set = told;
    outcome = std::move(on_outcome);
  }

  std::optional<ContainerCpuset> set;

 private:
  const operations::ResourceUpdate update_;
};

class WaitingUpdateTest : public HandlerTest {
 protected:
  ~WaitingUpdateTest() override {
    // Who waits for an outcome keeps its operation.
    for (const auto& operation : made_) operation->outcome = nullptr;
  }

  /// `a` runs on CPUs 0 and 1 alone; `b`, which shares all others, is created and not started.
  void begin_beside_unstarted() {
    begin({exclusive("a", {0, 1}), shared("b", Phase::kCreated)}, {pod_of("a"), pod_of("b")});
    start_converged("a");
    start_converged("b", operations::ContainerState::kCreated);
  }
  std::shared_ptr<WaitingUpdate> resize_a(std::int64_t cpus) {
    operations::ResourceUpdate update;
    update.container_id = "c-a";
    update.cpu_period_us = 100000;
    update.cpu_quota_us = 100000 * cpus;
    update.cpu_shares = 1024 * cpus;
    update.has_linux = true;
    made_.push_back(std::make_shared<WaitingUpdate>(std::move(update)));
    UpdateContainerResources::handle(deps(), made_.back());
    loop_.run();
    return made_.back();
  }

 private:
  std::vector<std::shared_ptr<WaitingUpdate>> made_;
};

TEST_F(WaitingUpdateTest, KeepsItsCpusBesideOneThatMayBeStarting) {
  begin_beside_unstarted();
  const auto resize = resize_a(3);
  ASSERT_TRUE(resize->set) << resize->rejected;
  EXPECT_EQ(resize->set->cpus, (CpuSet{0, 1}));
  EXPECT_EQ(find("a")->placement.cpus.size(), 3U);
  resize->outcome({.kind = operations::Outcome::Kind::kDone, .id = "c-a"});
  loop_.run();
  EXPECT_EQ(runtime_.container("c-a").cpus(), find("a")->placement.cpus) << "once the other one has been told to leave";
  EXPECT_EQ(find("a")->workload.demand.cpu_request_milli, 3000);
}

TEST_F(WaitingUpdateTest, HasItsCpusAtOnceWhereNobodyIs) {
  begin({exclusive("a", {0, 1})}, {pod_of("a")});
  start_converged("a");
  const auto resize = resize_a(3);
  ASSERT_TRUE(resize->set) << resize->rejected;
  EXPECT_EQ(resize->set->cpus, find("a")->placement.cpus);
  EXPECT_EQ(resize->set->cpus.size(), 3U);
}

TEST_F(WaitingUpdateTest, IsNotGivenTheCpusOfOneThatIsNotTold) {
  begin_beside_unstarted();
  runtime_.fail("UpdateContainerResources", cri::RuntimeResponse{Code::kUnavailable, "transport is closing", {}});
  const auto resize = resize_a(3);
  ASSERT_TRUE(resize->set) << resize->rejected;
  resize->outcome({.kind = operations::Outcome::Kind::kDone, .id = "c-a"});
  loop_.advance(seconds(10));
  EXPECT_EQ(runtime_.container("c-a").cpus(), (CpuSet{0, 1}));
}

}  // namespace
}  // namespace topolet::engine
