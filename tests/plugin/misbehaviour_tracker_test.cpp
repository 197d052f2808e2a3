#include "core/plugin/guard/misbehaviour_tracker.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace topolet::plugin {
namespace {

using std::chrono::minutes;
const MisbehaviourTracker::Time kStart{};
constexpr CallKind kVote = CallKind::kForVote;
constexpr CallKind kTickCall = CallKind::kForTick;

/// Three late votes, at once.
void strike_out(MisbehaviourTracker& misbehaviour, MisbehaviourTracker::Time now) {
  for (int i = 0; i < 3; ++i) misbehaviour.record_late_call(now, kVote, "slow");
}

TEST(MisbehaviourTracker, QuarantinesTheThirdLateCallInTenMinutes) {
  MisbehaviourTracker misbehaviour;
  misbehaviour.record_late_call(kStart, kVote, "slow");
  misbehaviour.record_late_call(kStart + minutes(5), kVote, "slow");
  EXPECT_FALSE(misbehaviour.quarantined());
  misbehaviour.record_late_call(kStart + minutes(10), kVote, "slow again");
  EXPECT_TRUE(misbehaviour.quarantined());
  EXPECT_EQ(misbehaviour.why(), "late 3 times in 10 minutes, last: slow again");
}

TEST(MisbehaviourTracker, ForgetsStrikesAfterTenMinutes) {
  MisbehaviourTracker misbehaviour;
  for (int i = 0; i < 10; ++i) misbehaviour.record_failed_call(kStart + minutes(6 * i), "threw");
  EXPECT_FALSE(misbehaviour.quarantined());
  misbehaviour.record_failed_call(kStart + minutes(55), "threw");
  EXPECT_EQ(misbehaviour.why(), "failed 3 times in 10 minutes, last: threw");
}

TEST(MisbehaviourTracker, TellsWhatWasOfLate) {
  MisbehaviourTracker misbehaviour;
  misbehaviour.record_late_call(kStart, kVote, "slow");
  misbehaviour.record_late_call(kStart + minutes(4), kTickCall, "slow");
  misbehaviour.record_failed_call(kStart + minutes(6), "threw");
  EXPECT_EQ(misbehaviour.late_lately(kStart + minutes(10)), 2U);
  EXPECT_EQ(misbehaviour.late_lately(kStart + minutes(11)), 1U);
  EXPECT_EQ(misbehaviour.failed_lately(kStart + minutes(11)), 1U);
  EXPECT_EQ(misbehaviour.failed_lately(kStart + minutes(17)), 0U);
}

TEST(MisbehaviourTracker, CountsLateAndBadAnswersApart) {
  MisbehaviourTracker misbehaviour;
  misbehaviour.record_late_call(kStart, kVote, "slow");
  misbehaviour.record_late_call(kStart, kVote, "slow");
  misbehaviour.record_failed_call(kStart, "threw");
  misbehaviour.record_failed_call(kStart, "threw");
  EXPECT_FALSE(misbehaviour.quarantined());
}

TEST(MisbehaviourTracker, QuarantinesOneOverlongCallAndKeepsTheFirstCause) {
  MisbehaviourTracker misbehaviour;
  misbehaviour.record_overlong_call(kStart, "ten times over");
  for (int i = 0; i < 3; ++i) misbehaviour.record_late_call(kStart, kVote, "slow");
  EXPECT_EQ(misbehaviour.why(), "ten times over");
}

TEST(MisbehaviourTracker, CountsLateTicksApartAndTenOfThem) {
  MisbehaviourTracker misbehaviour;
  for (int i = 0; i < 2; ++i) misbehaviour.record_late_call(kStart, kVote, "slow");
  for (int i = 0; i < 9; ++i) misbehaviour.record_late_call(kStart + minutes(i), kTickCall, "slow tick");
  EXPECT_FALSE(misbehaviour.quarantined());
  misbehaviour.record_late_call(kStart + minutes(11), kTickCall, "slow tick");
  EXPECT_FALSE(misbehaviour.quarantined()) << "the first of the ten was eleven minutes ago";
  misbehaviour.record_late_call(kStart + minutes(11), kTickCall, "last tick");
  EXPECT_EQ(misbehaviour.why(), "late in ticks 10 times in 10 minutes, last: last tick");
}

TEST(MisbehaviourTracker, TriesAgainAfterTenMinutesWithACallOfTheKindThatWasLate) {
  MisbehaviourTracker misbehaviour;
  EXPECT_FALSE(misbehaviour.may_be_tried(kStart, kVote));
  strike_out(misbehaviour, kStart);
  EXPECT_EQ(misbehaviour.trial_at(), kStart + minutes(10));
  EXPECT_FALSE(misbehaviour.may_be_tried(kStart + minutes(9), kVote));
  EXPECT_TRUE(misbehaviour.may_be_tried(kStart + minutes(10), kVote));
  EXPECT_FALSE(misbehaviour.may_be_tried(kStart + minutes(10), kTickCall));
  misbehaviour.begin_trial();
  misbehaviour.record_good_call(kStart + minutes(12));
  EXPECT_FALSE(misbehaviour.quarantined());
  EXPECT_EQ(misbehaviour.trial_at(), std::nullopt);
  misbehaviour.record_late_call(kStart + minutes(12), kVote, "slow");
  EXPECT_FALSE(misbehaviour.quarantined()) << "earlier strikes are forgotten";
}

TEST(MisbehaviourTracker, DoublesTheTimeFromTrialToTrialUpToADay) {
  MisbehaviourTracker misbehaviour;
  strike_out(misbehaviour, kStart);
  MisbehaviourTracker::Time now = kStart;
  for (const int wait : {10, 20, 40, 80, 160, 320, 640, 1280, 1440, 1440}) {
    now += minutes(wait);
    EXPECT_EQ(misbehaviour.trial_at(), now);
    misbehaviour.begin_trial();
    misbehaviour.record_late_call(now, kVote, "slow");
  }
}

TEST(MisbehaviourTracker, DoublesItAlsoWhereThePluginWasInTimeForAShorterTimeThanItWasOut) {
  MisbehaviourTracker misbehaviour;
  strike_out(misbehaviour, kStart);
  misbehaviour.begin_trial();
  misbehaviour.record_good_call(kStart + minutes(10));
  strike_out(misbehaviour, kStart + minutes(19));
  EXPECT_EQ(misbehaviour.trial_at(), kStart + minutes(39));
  misbehaviour.begin_trial();
  misbehaviour.record_good_call(kStart + minutes(39));
  strike_out(misbehaviour, kStart + minutes(59));
  EXPECT_EQ(misbehaviour.trial_at(), kStart + minutes(69)) << "it was in time for twenty minutes";
}

TEST(MisbehaviourTracker, FailsATrialByABadAnswerToo) {
  MisbehaviourTracker misbehaviour;
  strike_out(misbehaviour, kStart);
  misbehaviour.begin_trial();
  misbehaviour.record_failed_call(kStart + minutes(10), "threw");
  EXPECT_EQ(misbehaviour.why(), "failed in its trial: threw");
  EXPECT_EQ(misbehaviour.trial_at(), kStart + minutes(30));
}

TEST(MisbehaviourTracker, HoldsNothingAgainstATrialThatHappenedBeforeIt) {
  MisbehaviourTracker misbehaviour;
  strike_out(misbehaviour, kStart);
  misbehaviour.record_failed_call(kStart, "a CPU that was not offered");
  EXPECT_EQ(misbehaviour.trial_at(), kStart + minutes(10));
}

TEST(MisbehaviourTracker, IsNotEndedByATrialWhereAnswersWereBadOrThePluginCrashed) {
  MisbehaviourTracker misbehaviour;
  strike_out(misbehaviour, kStart);
  for (int i = 0; i < 3; ++i) misbehaviour.record_failed_call(kStart, "threw");
  EXPECT_EQ(misbehaviour.why(), "failed 3 times in 10 minutes, last: threw");
  EXPECT_EQ(misbehaviour.trial_at(), std::nullopt);
  EXPECT_FALSE(misbehaviour.may_be_tried(kStart + minutes(60 * 48), kVote));
  MisbehaviourTracker other;
  strike_out(other, kStart);
  other.quarantine("crashed");
  EXPECT_EQ(other.why(), "crashed");
  EXPECT_FALSE(other.may_be_tried(kStart + minutes(60 * 48), kVote));
}

TEST(MisbehaviourTracker, StartsAnewAfterAReset) {
  MisbehaviourTracker misbehaviour;
  for (int i = 0; i < 3; ++i) misbehaviour.record_late_call(kStart, kVote, "slow");
  misbehaviour.reset();
  EXPECT_FALSE(misbehaviour.quarantined());
  misbehaviour.record_late_call(kStart, kVote, "slow");
  EXPECT_FALSE(misbehaviour.quarantined());
}

}  // namespace
}  // namespace topolet::plugin
