#include "core/engine/converge/container_queues.hpp"

#include <gtest/gtest.h>

#include <map>

namespace topolet::engine {
namespace {

using std::chrono::milliseconds;

/// A runtime that answers when the test says so, and a clock that runs when the test says so.
class ContainerQueuesTest : public ::testing::Test {
 protected:
  struct Apply {
    std::string id;
    ContainerCpuset target;
    std::function<void(ApplyResult)> done;
  };

  ContainerQueues make(std::size_t max_in_flight = 16) {
    return ContainerQueues(
        {.apply =
             [this](const std::string& id, const ContainerCpuset& target, std::function<void(ApplyResult)> done) {
               applies_.push_back({id, target, std::move(done)});
             },
         .sendable = [this](const std::string&, const ContainerCpuset& desired) { return bound_.value_or(desired); },
         .converged = [this](const std::string& id, const ContainerCpuset& applied) { converged_[id] = applied; },
         .ended = [this](const std::string& id) { ended_.push_back(id); },
         .after = [this](milliseconds delay,
                         std::function<void()> then) { timers_.emplace(now_ + delay, std::move(then)); },
         .max_in_flight = max_in_flight});
  }

  void answer(const Status& status = {}) {
    ASSERT_FALSE(applies_.empty());
    const Apply apply = applies_.front();
    applies_.pop_front();
    apply.done(status ? ApplyResult() : ApplyResult{ApplyResult::Kind::kFailed, status.error()});
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
  std::map<std::string, ContainerCpuset> converged_;
  std::vector<std::string> ended_;
  /// The part of any desired set that may be sent; none: all of it.
  std::optional<std::optional<ContainerCpuset>> bound_;
  std::multimap<milliseconds, std::function<void()>> timers_;
  milliseconds now_{0};
};

const ContainerCpuset kOne{CpuSet{1}, {}};
const ContainerCpuset kTwo{CpuSet{2}, {}};
const ContainerCpuset kThree{CpuSet{3}, {}};

TEST_F(ContainerQueuesTest, DoNothingForWhatIsApplied) {
  ContainerQueues queues = make();
  queues.open("c", kOne, kOne);
  EXPECT_TRUE(applies_.empty());
  bool converged = false;
  queues.when_converged("c", milliseconds(1000), [&](const Status& status) { converged = status.has_value(); });
  EXPECT_TRUE(converged);
}

TEST_F(ContainerQueuesTest, ApplyOneAtATimeAndTheNewestWins) {
  ContainerQueues queues = make();
  queues.open("c", kOne, kTwo);
  queues.set_desired("c", kOne);
  queues.set_desired("c", kThree);
  ASSERT_EQ(applies_.size(), 1U);
  EXPECT_EQ(applies_.front().target, kTwo);
  EXPECT_EQ(queues.applied("c"), std::nullopt) << "either may be in force while the runtime works";
  answer();
  ASSERT_EQ(applies_.size(), 1U);
  EXPECT_EQ(applies_.front().target, kThree);
  answer();
  EXPECT_EQ(queues.applied("c"), kThree);
  EXPECT_TRUE(applies_.empty());
}

TEST_F(ContainerQueuesTest, SendOnlyWhatIsSendable) {
  ContainerQueues queues = make();
  bound_ = kOne;
  queues.open("c", kThree, ContainerCpuset{CpuSet{1, 2}, {}});
  ASSERT_EQ(applies_.size(), 1U);
  EXPECT_EQ(applies_.front().target, kOne);
  bool converged = false;
  queues.when_converged("c", milliseconds(1000), [&](const Status& status) { converged = status.has_value(); });
  answer();
  EXPECT_TRUE(converged) << "it is as it may be by now";
  EXPECT_TRUE(applies_.empty());
}

TEST_F(ContainerQueuesTest, SendNothingUntilSomethingIsSendable) {
  ContainerQueues queues = make();
  bound_ = std::optional<ContainerCpuset>();
  queues.open("c", kOne, kTwo);
  EXPECT_TRUE(applies_.empty());
  bool converged = false;
  queues.when_converged("c", milliseconds(1000), [&](const Status& status) { converged = status.has_value(); });
  bound_.reset();
  queues.set_desired("c", kThree);
  ASSERT_EQ(applies_.size(), 1U);
  EXPECT_EQ(applies_.front().target, kThree);
  EXPECT_FALSE(converged);
  answer();
  EXPECT_TRUE(converged);
}

TEST_F(ContainerQueuesTest, SayWhenAClosedQueueHasNothingUnderWayAnyMore) {
  ContainerQueues queues = make();
  queues.open("c", kOne, kTwo);
  queues.close("c");
  EXPECT_TRUE(ended_.empty());
  answer();
  EXPECT_EQ(ended_, std::vector<std::string>{"c"});
  queues.open("d", kOne, kTwo);
  queues.close("d");
  queues.open("d", std::nullopt, kThree);
  answer();
  EXPECT_EQ(ended_, std::vector<std::string>{"c"}) << "another queue has taken its place";
}

TEST_F(ContainerQueuesTest, TellWaitersOnlyWhenTheNewestTargetIsApplied) {
  ContainerQueues queues = make();
  queues.open("c", kOne, kTwo);
  int converged = 0;
  queues.when_converged("c", milliseconds(60000),
                        [&](const Status& status) { converged += status.has_value() ? 1 : 0; });
  queues.set_desired("c", kThree);
  answer();
  EXPECT_EQ(converged, 0);
  answer();
  EXPECT_EQ(converged, 1);
}

TEST_F(ContainerQueuesTest, RetryWithAGrowingPauseAndTellWaitersAfterThreeFailures) {
  ContainerQueues queues = make();
  queues.open("c", kOne, kTwo);
  Status reported;
  queues.when_converged("c", milliseconds(60000), [&](const Status& status) { reported = status; });
  const Error busy{Code::kUnknown, "busy"};
  answer(busy);
  EXPECT_TRUE(applies_.empty());
  advance(milliseconds(250));
  answer(busy);
  EXPECT_TRUE(reported.has_value());
  advance(milliseconds(500));
  answer(busy);
  ASSERT_FALSE(reported.has_value());
  EXPECT_EQ(reported.error(), busy);
  advance(milliseconds(5000));
  answer();
  EXPECT_EQ(queues.applied("c"), kTwo);
}

TEST_F(ContainerQueuesTest, RetryWhenTheyAreToldToAndLetNobodyWaitForThat) {
  ContainerQueues queues = make();
  queues.open("c", kOne, kTwo);
  Status reported;
  queues.when_converged("c", milliseconds(60000), [&](const Status& status) { reported = status; });
  const Error overruled{Code::kUnavailable, "something else sets its CPUs"};
  applies_.front().done({ApplyResult::Kind::kFailed, overruled, milliseconds(10000)});
  applies_.clear();
  ASSERT_FALSE(reported.has_value());
  EXPECT_EQ(reported.error(), overruled);
  advance(milliseconds(9999));
  EXPECT_TRUE(applies_.empty());
  advance(milliseconds(1));
  ASSERT_EQ(applies_.size(), 1U);
}

TEST_F(ContainerQueuesTest, WaitForWhatIsPostponedAndCountNoFailure) {
  ContainerQueues queues = make();
  queues.open("c", kOne, kTwo);
  Status reported;
  bool told = false;
  queues.when_converged("c", milliseconds(60000), [&](const Status& status) {
    reported = status;
    told = true;
  });
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(applies_.size(), 1U);
    const Apply apply = applies_.front();
    applies_.clear();
    apply.done({ApplyResult::Kind::kPostponed, {Code::kUnavailable, "too early"}, milliseconds(3000)});
    advance(milliseconds(2999));
    EXPECT_TRUE(applies_.empty());
    advance(milliseconds(1));
  }
  EXPECT_FALSE(told);
  answer();
  EXPECT_TRUE(told && reported.has_value());
}

TEST_F(ContainerQueuesTest, EndAWaitThatTakesTooLong) {
  ContainerQueues queues = make();
  queues.open("c", kOne, kTwo);
  Status reported;
  queues.when_converged("c", milliseconds(1000), [&](const Status& status) { reported = status; });
  advance(milliseconds(1000));
  ASSERT_FALSE(reported.has_value());
  EXPECT_EQ(reported.error().code, Code::kUnavailable);
  EXPECT_NE(reported.error().message.find("container c"), std::string::npos);
  answer();
  EXPECT_EQ(queues.applied("c"), kTwo);
}

TEST_F(ContainerQueuesTest, CallAClosedQueueConverged) {
  ContainerQueues queues = make();
  queues.open("c", kOne, kTwo);
  bool converged = false;
  queues.when_converged("c", milliseconds(1000), [&](const Status& status) { converged = status.has_value(); });
  queues.close("c");
  EXPECT_TRUE(converged);
  answer();  // the late answer of a closed queue hurts nobody
  EXPECT_FALSE(queues.has("c"));
}

TEST_F(ContainerQueuesTest, WaitForAllOfSeveral) {
  ContainerQueues queues = make();
  queues.open("a", kOne, kTwo);
  queues.open("b", kOne, kOne);
  queues.open("c", kOne, kThree);
  int converged = 0;
  queues.when_all_converged({"a", "b", "c", "unknown"}, milliseconds(60000), [&](const Status&) { ++converged; });
  answer();
  EXPECT_EQ(converged, 0);
  answer();
  EXPECT_EQ(converged, 1);
  queues.when_all_converged({}, milliseconds(1), [&](const Status&) { ++converged; });
  EXPECT_EQ(converged, 2);
}

TEST_F(ContainerQueuesTest, RunAnOperationInItsTurn) {
  ContainerQueues queues = make();
  queues.open("c", kOne, kTwo);
  ContainerQueues::OperationDone end;
  EXPECT_TRUE(queues.run("c", ContainerQueues::Needs::kTurn,
                         [&](const Status&, ContainerQueues::OperationDone done) { end = std::move(done); }));
  EXPECT_EQ(end, nullptr);
  answer();
  ASSERT_NE(end, nullptr);
  queues.set_desired("c", kThree);
  EXPECT_TRUE(applies_.empty()) << "the operation has the queue";
  end(false);
  ASSERT_EQ(applies_.size(), 1U);
  EXPECT_EQ(applies_.front().target, kThree);
}

TEST_F(ContainerQueuesTest, ApplyAgainAfterAnOperationThatInvalidated) {
  ContainerQueues queues = make();
  queues.open("c", kOne, kOne);
  queues.run("c", ContainerQueues::Needs::kTurn,
             [](const Status&, const ContainerQueues::OperationDone& done) { done(true); });
  ASSERT_EQ(applies_.size(), 1U);
  EXPECT_EQ(applies_.front().target, kOne);
}

TEST_F(ContainerQueuesTest, StartOnlyWithTheNewestTargetApplied) {
  ContainerQueues queues = make();
  queues.open("c", kOne, kTwo);
  bool ran = false;
  queues.run("c", ContainerQueues::Needs::kConverged,
             [&](const Status& status, const ContainerQueues::OperationDone& done) {
               ran = status.has_value();
               done(false);
             });
  queues.set_desired("c", kThree);
  answer();
  EXPECT_FALSE(ran) << "applied is not the newest";
  answer();
  EXPECT_TRUE(ran);
}

TEST_F(ContainerQueuesTest, TellAnOperationThatTheQueueCannotConverge) {
  ContainerQueues queues = make();
  queues.open("c", kOne, kTwo);
  Status reported;
  queues.run("c", ContainerQueues::Needs::kConverged,
             [&](const Status& status, const ContainerQueues::OperationDone& done) {
               reported = status;
               done(false);
             });
  for (int failure = 0; failure < 3; ++failure) {
    answer(Error{Code::kUnknown, "busy"});
    advance(milliseconds(1000));
  }
  ASSERT_FALSE(reported.has_value());
  EXPECT_EQ(reported.error().message, "busy");
}

TEST_F(ContainerQueuesTest, TellThatNothingIsUnderWayAnyMore) {
  ContainerQueues queues = make();
  queues.open("c", kOne, kOne);
  ContainerQueues::OperationDone end;
  queues.run("c", ContainerQueues::Needs::kTurn,
             [&](const Status&, ContainerQueues::OperationDone done) { end = std::move(done); });
  queues.set_desired("c", kTwo);
  queues.set_desired("c", kOne);
  converged_.clear();
  end(false);
  EXPECT_TRUE(applies_.empty()) << "it was never told of the other set";
  EXPECT_EQ(converged_.at("c"), kOne);
}

TEST_F(ContainerQueuesTest, ApplyAgainWhatWasFoundInvalidDuringAnOperation) {
  ContainerQueues queues = make();
  queues.open("c", kOne, kOne);
  for (const auto needs : {ContainerQueues::Needs::kTurn, ContainerQueues::Needs::kConverged}) {
    ContainerQueues::OperationDone end;
    queues.run("c", needs, [&](const Status&, ContainerQueues::OperationDone done) { end = std::move(done); });
    queues.invalidate("c");
    end(false);
    ASSERT_EQ(applies_.size(), 1U);
    answer();
  }
}

TEST_F(ContainerQueuesTest, TellTheRuntimeAgainBeforeAnOperationThatNeedsThat) {
  ContainerQueues queues = make();
  queues.open("c", std::nullopt, kOne);
  applies_.front().done({ApplyResult::Kind::kUnverified, {}});
  applies_.pop_front();
  queues.invalidate("c");
  bool ran = false;
  queues.run("c", ContainerQueues::Needs::kSent,
             [&](const Status&, const ContainerQueues::OperationDone& done) { done(ran = true); });
  EXPECT_FALSE(ran);
}

TEST_F(ContainerQueuesTest, LetNoOperationWaitForEver) {
  ContainerQueues queues = make();
  queues.open("c", kOne, kTwo);
  applies_.front().done({ApplyResult::Kind::kBlocked, {Code::kUnavailable, "others have not left"}});
  std::vector<Status> reported;
  for (const auto needs : {ContainerQueues::Needs::kSent, ContainerQueues::Needs::kConverged}) {
    queues.run("c", needs, [&](const Status& status, const ContainerQueues::OperationDone& done) {
      reported.push_back(status);
      done(false);
    });
  }
  advance(milliseconds(20000));
  ASSERT_EQ(reported.size(), 2U);
  for (const Status& status : reported) {
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().code, Code::kUnavailable);
    EXPECT_NE(status.error().message.find("others have not left"), std::string::npos);
  }
  applies_.pop_front();
  queues.unblock("c");
  answer();
  EXPECT_EQ(queues.applied("c"), kTwo);
}

TEST_F(ContainerQueuesTest, SetNoTimerForWhatNeedNotWait) {
  ContainerQueues queues = make();
  queues.open("c", kOne, kOne);
  queues.when_converged("c", milliseconds(60000), [](const Status&) {});
  for (const auto needs : {ContainerQueues::Needs::kSent, ContainerQueues::Needs::kConverged}) {
    queues.run("c", needs, [](const Status&, const ContainerQueues::OperationDone& done) { done(false); });
  }
  EXPECT_TRUE(timers_.empty()) << "it would take memory until its time has come";
}

TEST_F(ContainerQueuesTest, KeepFewCallsInFlight) {
  ContainerQueues queues = make(2);
  for (const char* id : {"a", "b", "c", "d"}) queues.open(id, kOne, kTwo);
  EXPECT_EQ(applies_.size(), 2U);
  answer();
  EXPECT_EQ(applies_.size(), 2U);
  answer();
  answer();
  answer();
  EXPECT_EQ(queues.applied("d"), kTwo);
}

}  // namespace
}  // namespace topolet::engine
