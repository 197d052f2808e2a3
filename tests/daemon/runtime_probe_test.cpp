// The verdict on a runtime, answering or not, from the outcome of the calls made to it.
#include "core/daemon/runtime_probe.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/manual_clock.hpp"

namespace topolet::daemon {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Keeps the calls until a test ends them.
class SilentRuntime final : public cri::Runtime {
 public:
  void call(std::string path, std::string /*request*/, milliseconds timeout,
            std::function<void(const cri::RuntimeResponse&)> done) override {
    path_ = std::move(path);
    timeout_ = timeout;
    calls_.push_back(std::move(done));
  }
  void end_call(Code code) {
    const auto done = std::exchange(calls_, {}).at(0);
    done({code, "", ""});
  }

  std::string path_;
  milliseconds timeout_{0};
  std::vector<std::function<void(const cri::RuntimeResponse&)>> calls_;
};

class RuntimeProbeTest : public ::testing::Test {
 protected:
  testing::ManualClock clock_;
  SilentRuntime runtime_;
  RuntimeProbe probe_{runtime_, {.every = seconds(5), .patience = seconds(15), .clock = clock_.clock()}};
};

TEST_F(RuntimeProbeTest, AsksAgainOnceItWasAnsweredAndTheTimeIsOver) {
  probe_.check();
  EXPECT_EQ(runtime_.path_, "/runtime.v1.RuntimeService/Version");
  EXPECT_EQ(runtime_.timeout_, seconds(15));
  clock_.advance(seconds(60));
  probe_.check();
  EXPECT_EQ(runtime_.calls_.size(), 1U) << "one at a time";
  runtime_.end_call(Code::kOk);
  clock_.advance(milliseconds(4999));
  probe_.check();
  EXPECT_TRUE(runtime_.calls_.empty());
  clock_.advance(milliseconds(1));
  probe_.check();
  EXPECT_EQ(runtime_.calls_.size(), 1U);
}

TEST_F(RuntimeProbeTest, OnlyWhoLeavesACallUnansweredDoesNotAnswer) {
  EXPECT_TRUE(probe_.answers()) << "nobody knows yet";
  for (const Code code : {Code::kDeadlineExceeded, Code::kUnimplemented, Code::kUnavailable, Code::kOk}) {
    probe_.check();
    runtime_.end_call(code);
    EXPECT_EQ(probe_.answers(), code != Code::kDeadlineExceeded) << static_cast<int>(code);
    clock_.advance(seconds(5));
  }
  probe_.check();
  runtime_.end_call(Code::kDeadlineExceeded);
  clock_.advance(seconds(5));
  probe_.check();
  EXPECT_FALSE(probe_.answers()) << "asking is no answer";
}

TEST_F(RuntimeProbeTest, AnAnswerMayComeWhenNobodyLooksAnyMore) {
  {
    RuntimeProbe gone(runtime_, {.clock = clock_.clock()});
    gone.check();
  }
  runtime_.end_call(Code::kOk);
}

}  // namespace
}  // namespace topolet::daemon
