#include "core/placement/lanes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace topolet {
namespace {

using std::chrono::milliseconds;

/// A runtime that answers when the test says so, and a clock that runs when the test says so.
class LanesTest : public ::testing::Test {
 protected:
  struct Apply {
    std::string id;
    CpusetTarget target;
    std::function<void(Status)> done;
  };

  Lanes make(std::size_t max_in_flight = 16) {
    return Lanes({.apply =
                      [this](const std::string& id, const CpusetTarget& target, std::function<void(Status)> done) {
                        applies_.push_back({id, target, std::move(done)});
                      },
                  .after = [this](milliseconds delay,
                                  std::function<void()> then) { timers_.emplace(now_ + delay, std::move(then)); },
                  .max_in_flight = max_in_flight});
  }

  void answer(const Status& status = {}) {
    ASSERT_FALSE(applies_.empty());
    const Apply apply = applies_.front();
    applies_.pop_front();
    apply.done(status);
  }

  void advance(milliseconds by) {
    const milliseconds until = now_ + by;
    while (!timers_.empty() && timers_.begin()->first <= until) {
      now_ = timers_.begin()->first;
      const auto then = timers_.begin()->second;
      timers_.erase(timers_.begin());
      then();
    }
    now_ = until;
  }

  std::deque<Apply> applies_;
  std::multimap<milliseconds, std::function<void()>> timers_;
  milliseconds now_{0};
};

const CpusetTarget kOne{CpuSet{1}, {}};
const CpusetTarget kTwo{CpuSet{2}, {}};
const CpusetTarget kThree{CpuSet{3}, {}};

TEST_F(LanesTest, DoNothingForWhatIsConfirmed) {
  Lanes lanes = make();
  lanes.open("c", kOne, kOne);
  EXPECT_TRUE(applies_.empty());
  bool settled = false;
  lanes.when_settled("c", milliseconds(1000), [&](const Status& status) { settled = status.ok(); });
  EXPECT_TRUE(settled);
}

TEST_F(LanesTest, ApplyOneAtATimeAndTheNewestWins) {
  Lanes lanes = make();
  lanes.open("c", kOne, kTwo);
  lanes.set_target("c", kOne);
  lanes.set_target("c", kThree);
  ASSERT_EQ(applies_.size(), 1U);
  EXPECT_EQ(applies_.front().target, kTwo);
  EXPECT_EQ(lanes.confirmed("c"), std::nullopt) << "either may be in force while the runtime works";
  answer();
  ASSERT_EQ(applies_.size(), 1U);
  EXPECT_EQ(applies_.front().target, kThree);
  answer();
  EXPECT_EQ(lanes.confirmed("c"), kThree);
  EXPECT_TRUE(applies_.empty());
}

TEST_F(LanesTest, TellWaitersOnlyWhenTheNewestTargetIsConfirmed) {
  Lanes lanes = make();
  lanes.open("c", kOne, kTwo);
  int settled = 0;
  lanes.when_settled("c", milliseconds(60000), [&](const Status& status) { settled += status.ok() ? 1 : 0; });
  lanes.set_target("c", kThree);
  answer();
  EXPECT_EQ(settled, 0);
  answer();
  EXPECT_EQ(settled, 1);
}

TEST_F(LanesTest, RetryWithAGrowingPauseAndTellWaitersAfterThreeFailures) {
  Lanes lanes = make();
  lanes.open("c", kOne, kTwo);
  Status told;
  lanes.when_settled("c", milliseconds(60000), [&](const Status& status) { told = status; });
  const Error busy{Code::kUnknown, "busy"};
  answer(busy);
  EXPECT_TRUE(applies_.empty());
  advance(milliseconds(250));
  answer(busy);
  EXPECT_TRUE(told.ok());
  advance(milliseconds(500));
  answer(busy);
  ASSERT_FALSE(told.ok());
  EXPECT_EQ(told.error(), busy);
  advance(milliseconds(5000));
  answer();
  EXPECT_EQ(lanes.confirmed("c"), kTwo);
}

TEST_F(LanesTest, EndAWaitThatTakesTooLong) {
  Lanes lanes = make();
  lanes.open("c", kOne, kTwo);
  Status told;
  lanes.when_settled("c", milliseconds(1000), [&](const Status& status) { told = status; });
  advance(milliseconds(1000));
  ASSERT_FALSE(told.ok());
  EXPECT_EQ(told.error().code, Code::kUnavailable);
  EXPECT_NE(told.error().message.find("container c"), std::string::npos);
  answer();
  EXPECT_EQ(lanes.confirmed("c"), kTwo);
}

TEST_F(LanesTest, CallAClosedLaneSettled) {
  Lanes lanes = make();
  lanes.open("c", kOne, kTwo);
  bool settled = false;
  lanes.when_settled("c", milliseconds(1000), [&](const Status& status) { settled = status.ok(); });
  lanes.close("c");
  EXPECT_TRUE(settled);
  answer();  // the late answer of a closed lane hurts nobody
  EXPECT_FALSE(lanes.has("c"));
}

TEST_F(LanesTest, WaitForAllOfSeveral) {
  Lanes lanes = make();
  lanes.open("a", kOne, kTwo);
  lanes.open("b", kOne, kOne);
  lanes.open("c", kOne, kThree);
  int settled = 0;
  lanes.when_all_settled({"a", "b", "c", "unknown"}, milliseconds(60000), [&](const Status&) { ++settled; });
  answer();
  EXPECT_EQ(settled, 0);
  answer();
  EXPECT_EQ(settled, 1);
  lanes.when_all_settled({}, milliseconds(1), [&](const Status&) { ++settled; });
  EXPECT_EQ(settled, 2);
}

TEST_F(LanesTest, RunAnOperationInItsTurn) {
  Lanes lanes = make();
  lanes.open("c", kOne, kTwo);
  Lanes::OperationDone end;
  EXPECT_TRUE(
      lanes.run("c", Lanes::Needs::kTurn, [&](const Status&, Lanes::OperationDone done) { end = std::move(done); }));
  EXPECT_EQ(end, nullptr);
  answer();
  ASSERT_NE(end, nullptr);
  lanes.set_target("c", kThree);
  EXPECT_TRUE(applies_.empty()) << "the operation has the lane";
  end(false);
  ASSERT_EQ(applies_.size(), 1U);
  EXPECT_EQ(applies_.front().target, kThree);
}

TEST_F(LanesTest, ApplyAgainAfterAnOperationThatDisturbed) {
  Lanes lanes = make();
  lanes.open("c", kOne, kOne);
  lanes.run("c", Lanes::Needs::kTurn, [](const Status&, const Lanes::OperationDone& done) { done(true); });
  ASSERT_EQ(applies_.size(), 1U);
  EXPECT_EQ(applies_.front().target, kOne);
}

TEST_F(LanesTest, StartOnlyWithTheNewestTargetConfirmed) {
  Lanes lanes = make();
  lanes.open("c", kOne, kTwo);
  bool ran = false;
  lanes.run("c", Lanes::Needs::kSettled, [&](const Status& status, const Lanes::OperationDone& done) {
    ran = status.ok();
    done(false);
  });
  lanes.set_target("c", kThree);
  answer();
  EXPECT_FALSE(ran) << "confirmed is not the newest";
  answer();
  EXPECT_TRUE(ran);
}

TEST_F(LanesTest, TellAnOperationThatTheLaneCannotSettle) {
  Lanes lanes = make();
  lanes.open("c", kOne, kTwo);
  Status told;
  lanes.run("c", Lanes::Needs::kSettled, [&](const Status& status, const Lanes::OperationDone& done) {
    told = status;
    done(false);
  });
  for (int failure = 0; failure < 3; ++failure) {
    answer(Error{Code::kUnknown, "busy"});
    advance(milliseconds(10000));
  }
  ASSERT_FALSE(told.ok());
  EXPECT_EQ(told.error().message, "busy");
}

TEST_F(LanesTest, KeepFewCallsInFlight) {
  Lanes lanes = make(2);
  for (const char* id : {"a", "b", "c", "d"}) lanes.open(id, kOne, kTwo);
  EXPECT_EQ(applies_.size(), 2U);
  answer();
  EXPECT_EQ(applies_.size(), 2U);
  answer();
  answer();
  answer();
  EXPECT_EQ(lanes.confirmed("d"), kTwo);
}

}  // namespace
}  // namespace topolet
