#include "core/engine/handlers/stop_container.hpp"

#include <gmock/gmock.h>

#include "core/cri/messages/lens.pb.h"
#include "tests/engine/handler_test.hpp"

namespace topolet::engine {
namespace {

class StopContainerTest : public HandlerTest {
 protected:
  /// `a`, which has CPU 0 alone.
  void begin_with_a(Phase phase, operations::ContainerState state) {
    begin({exclusive("a", {0}, phase)});
    start_converged("a", state);
  }

  /// Returns the answer to the call that stops `a`; none if it has not been answered.
  std::optional<Code> stop_a(const cri::RuntimeResponse& answer) {
    lens::Target target;
    target.set_id("c-a");
    const auto made = call<StopContainer>("StopContainer", target.SerializeAsString(), cri::read_target);
    EXPECT_TRUE(made->is_forwarded());
    EXPECT_TRUE(find("a")->stopping) << "its exit is no failure from here on";
    made->answer(answer);
    loop_.run();
    return made->kubelet_answer() ? std::optional<Code>(made->kubelet_answer()->code) : std::nullopt;
  }
};

class StopInDoubt : public StopContainerTest, public ::testing::WithParamInterface<Code> {};

TEST_P(StopInDoubt, IsStillUnderWay) {
  begin_with_a(Phase::kRunning, operations::ContainerState::kRunning);
  EXPECT_EQ(stop_a({GetParam(), "no answer", {}}), GetParam());
  EXPECT_TRUE(find("a")->stopping);
}

INSTANTIATE_TEST_SUITE_P(All, StopInDoubt,
                         ::testing::Values(Code::kDeadlineExceeded, Code::kCancelled, Code::kUnavailable));

TEST_F(StopContainerTest, IsOverOnceTheRuntimeHasRefusedIt) {
  begin_with_a(Phase::kRunning, operations::ContainerState::kRunning);
  EXPECT_EQ(stop_a({Code::kUnknown, "cannot stop it", {}}), Code::kUnknown);
  ASSERT_NE(find("a"), nullptr);
  EXPECT_FALSE(find("a")->stopping);
}

TEST_F(StopContainerTest, IsStillUnderWayIfItsAnswerNeverComes) {
  begin_with_a(Phase::kRunning, operations::ContainerState::kRunning);
  lens::Target target;
  target.set_id("c-a");
  const auto made = call<StopContainer>("StopContainer", target.SerializeAsString(), cri::read_target);
  loop_.advance(kOutcomePatience);
  expire_outcomes();
  ASSERT_TRUE(made->kubelet_answer());
  EXPECT_EQ(made->kubelet_answer()->code, Code::kDeadlineExceeded);
  EXPECT_TRUE(find("a")->stopping) << "its exit is no failure";
}

TEST_F(StopContainerTest, LeavesWhatNeverRanAsItIs) {
  begin_with_a(Phase::kCreated, operations::ContainerState::kCreated);
  EXPECT_EQ(stop_a({}), Code::kOk);
  ASSERT_NE(find("a"), nullptr) << "it may yet be started";
  EXPECT_EQ(find("a")->phase, Phase::kCreated);
  EXPECT_FALSE(find("a")->stopping);
}

}  // namespace
}  // namespace topolet::engine
