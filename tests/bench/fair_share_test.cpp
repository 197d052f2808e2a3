#include "tests/bench/fair_share.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace topolet::bench {
namespace {

using ::testing::ElementsAre;

TEST(FairShares, GiveEverybodyAllWhereThereIsEnough) {
  EXPECT_THAT(fair_shares({{{0, 1}, 1500, 1}, {{0, 1}, 500, 1}}), ElementsAre(1500, 500));
  EXPECT_THAT(fair_shares({}), ElementsAre());
  EXPECT_THAT(fair_shares({{{0}, 0, 1}, {{}, 300, 1}}), ElementsAre(0, 0));
}

TEST(FairShares, DivideByWeightWhatIsShort) {
  EXPECT_THAT(fair_shares({{{0, 1}, 4000, 300}, {{0, 1}, 4000, 100}}), ElementsAre(1500, 500));
}

TEST(FairShares, GiveToOthersWhatOneDoesNotWant) {
  EXPECT_THAT(fair_shares({{{0, 1}, 200, 300}, {{0, 1}, 4000, 100}}), ElementsAre(200, 1800));
}

/// The second one has a CPU that the first one must not use.
TEST(FairShares, UseEveryCpuThatSomebodyWants) {
  EXPECT_THAT(fair_shares({{{0}, 1000, 1}, {{0, 1}, 2000, 1}}), ElementsAre(1000, 1000));
  EXPECT_THAT(fair_shares({{{0, 1}, 2000, 1}, {{1, 2}, 2000, 1}, {{2}, 1000, 1}}), ElementsAre(1000, 1000, 1000));
}

TEST(FairShares, KeepWallsBetweenNodes) {
  EXPECT_THAT(fair_shares({{{0, 1}, 3000, 1}, {{2, 3}, 500, 1}}), ElementsAre(2000, 500));
}

/// Nobody has more than it wants, no CPU more than a thousand, and nobody lacks what is idle.
TEST(FairShares, LeaveNothingIdleThatIsWanted) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<Claim> claims;
    for (int i = 0; i < 6; ++i) {
      const auto first = static_cast<std::uint32_t>(random() % 4);
      const auto last = static_cast<std::uint32_t>(first + random() % 4);
      claims.push_back({CpuSet::range(first, last), static_cast<std::int64_t>(random() % 3000),
                        1 + static_cast<std::int64_t>(random() % 9)});
    }
    const std::vector<std::int64_t> got = fair_shares(claims);
    for (std::size_t i = 0; i < claims.size(); ++i) {
      ASSERT_LE(got[i], claims[i].milli);
      if (got[i] >= claims[i].milli - 10) continue;
      // All that may use the CPUs of one that lacks something use them up.
      std::int64_t used = 0;
      for (std::size_t other = 0; other < claims.size(); ++other) {
        used += claims[other].cpus.intersects(claims[i].cpus) ? got[other] : 0;
      }
      ASSERT_GE(used, static_cast<std::int64_t>(claims[i].cpus.size()) * 1000 - 10) << "round " << round;
    }
  }
}

}  // namespace
}  // namespace topolet::bench
