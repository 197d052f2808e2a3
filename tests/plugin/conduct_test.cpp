#include "core/plugin/conduct.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace topolet {
namespace {

using std::chrono::minutes;
const Conduct::Time kStart{};

TEST(Conduct, QuarantinesTheThirdLateCallInTenMinutes) {
  Conduct conduct;
  conduct.strike_late(kStart, "slow");
  conduct.strike_late(kStart + minutes(5), "slow");
  EXPECT_FALSE(conduct.quarantined());
  conduct.strike_late(kStart + minutes(10), "slow again");
  EXPECT_TRUE(conduct.quarantined());
  EXPECT_EQ(conduct.why(), "late 3 times in 10 minutes, last: slow again");
}

TEST(Conduct, ForgetsStrikesAfterTenMinutes) {
  Conduct conduct;
  for (int i = 0; i < 10; ++i) conduct.strike_bad(kStart + minutes(6 * i), "threw");
  EXPECT_FALSE(conduct.quarantined());
  conduct.strike_bad(kStart + minutes(55), "threw");
  EXPECT_EQ(conduct.why(), "failed 3 times in 10 minutes, last: threw");
}

TEST(Conduct, CountsLateAndBadAnswersApart) {
  Conduct conduct;
  conduct.strike_late(kStart, "slow");
  conduct.strike_late(kStart, "slow");
  conduct.strike_bad(kStart, "threw");
  conduct.strike_bad(kStart, "threw");
  EXPECT_FALSE(conduct.quarantined());
}

TEST(Conduct, QuarantinesOneHopelessCallAndKeepsTheFirstCause) {
  Conduct conduct;
  conduct.strike_hopeless("ten times over");
  for (int i = 0; i < 3; ++i) conduct.strike_late(kStart, "slow");
  EXPECT_EQ(conduct.why(), "ten times over");
}

TEST(Conduct, StartsAnewAfterAReset) {
  Conduct conduct;
  for (int i = 0; i < 3; ++i) conduct.strike_late(kStart, "slow");
  conduct.reset();
  EXPECT_FALSE(conduct.quarantined());
  conduct.strike_late(kStart, "slow");
  EXPECT_FALSE(conduct.quarantined());
}

}  // namespace
}  // namespace topolet
