#include "core/plugin/call/misbehaviour_tracker.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace topolet::plugin {
namespace {

using std::chrono::minutes;
const MisbehaviourTracker::Time kStart{};

TEST(MisbehaviourTracker, QuarantinesTheThirdLateCallInTenMinutes) {
  MisbehaviourTracker misbehaviour;
  misbehaviour.record_late_call(kStart, "slow");
  misbehaviour.record_late_call(kStart + minutes(5), "slow");
  EXPECT_FALSE(misbehaviour.quarantined());
  misbehaviour.record_late_call(kStart + minutes(10), "slow again");
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

TEST(MisbehaviourTracker, CountsLateAndBadAnswersApart) {
  MisbehaviourTracker misbehaviour;
  misbehaviour.record_late_call(kStart, "slow");
  misbehaviour.record_late_call(kStart, "slow");
  misbehaviour.record_failed_call(kStart, "threw");
  misbehaviour.record_failed_call(kStart, "threw");
  EXPECT_FALSE(misbehaviour.quarantined());
}

TEST(MisbehaviourTracker, QuarantinesOneOverlongCallAndKeepsTheFirstCause) {
  MisbehaviourTracker misbehaviour;
  misbehaviour.record_overlong_call("ten times over");
  for (int i = 0; i < 3; ++i) misbehaviour.record_late_call(kStart, "slow");
  EXPECT_EQ(misbehaviour.why(), "ten times over");
}

TEST(MisbehaviourTracker, StartsAnewAfterAReset) {
  MisbehaviourTracker misbehaviour;
  for (int i = 0; i < 3; ++i) misbehaviour.record_late_call(kStart, "slow");
  misbehaviour.reset();
  EXPECT_FALSE(misbehaviour.quarantined());
  misbehaviour.record_late_call(kStart, "slow");
  EXPECT_FALSE(misbehaviour.quarantined());
}

}  // namespace
}  // namespace topolet::plugin
