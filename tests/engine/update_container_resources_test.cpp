#include "core/engine/handlers/update_container_resources.hpp"

#include <gmock/gmock.h>

#include "core/cri/messages/lens.pb.h"
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

}  // namespace
}  // namespace topolet::engine
