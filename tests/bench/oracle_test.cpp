#include "tests/bench/oracle.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace topolet::bench {
namespace {

using Numbers = std::vector<std::uint32_t>;

/// Tries every bin for every size.
bool fits_by_brute_force(Numbers bins, const Numbers& sizes, std::size_t place = 0) {
  if (place == sizes.size()) return true;
  for (std::uint32_t& bin : bins) {
    if (bin < sizes[place]) continue;
    bin -= sizes[place];
    if (fits_by_brute_force(bins, sizes, place + 1)) return true;
    bin += sizes[place];
  }
  return false;
}

Numbers random_numbers(std::mt19937& random, std::size_t most, std::uint32_t largest) {
  Numbers numbers(1 + random() % most);
  for (std::uint32_t& number : numbers) number = 1 + static_cast<std::uint32_t>(random() % largest);
  return numbers;
}

TEST(Oracle, AgreesWithBruteForceOnBinsOfAnySize) {
  std::mt19937 random(1);
  int tight = 0;
  for (int round = 0; round < 20'000; ++round) {
    const Numbers bins = random_numbers(random, 4, 12);
    const Numbers sizes = random_numbers(random, 7, 8);
    const bool expected = fits_by_brute_force(bins, sizes);
    ASSERT_EQ(fits(bins, sizes), expected) << fmt::format("{} in {}", sizes, bins);
    tight += expected ? 1 : 0;
  }
  EXPECT_GT(tight, 1000);
}

TEST(Oracle, AgreesWithBruteForceOnFullBinsOfOneSize) {
  std::mt19937 random(2);
  int no_by_shape = 0;
  for (int round = 0; round < 5'000; ++round) {
    const Numbers bins(3, 10);
    Numbers sizes;
    for (std::uint32_t room = 30; room > 1;) {
      sizes.push_back(std::min(room, 2 + static_cast<std::uint32_t>(random() % 6)));
      room -= sizes.back();
    }
    const bool expected = fits_by_brute_force(bins, sizes);
    ASSERT_EQ(fits(bins, sizes), expected) << fmt::format("{}", sizes);
    no_by_shape += expected ? 0 : 1;
  }
  EXPECT_GT(no_by_shape, 100);
}

TEST(Oracle, FindsWhatTheLargestFirstWouldMiss) {
  // 6 into the first bin leaves no place for the second 4 beside 4 and 3.
  EXPECT_TRUE(fits({10, 10}, {4, 4, 6, 3, 3}));
  EXPECT_TRUE(fits({12, 12}, {6, 5, 4, 3, 3, 3}));
  EXPECT_FALSE(fits({12, 12}, {7, 7, 6, 4}));
  EXPECT_FALSE(fits({8, 8, 8}, {9}));
  EXPECT_TRUE(fits({}, {}));
}

TEST(Oracle, AnswersForMachinesThatAreNearlyFull) {
  // 16 nodes of 16: threes leave one CPU in each.
  EXPECT_TRUE(fits(Numbers(16, 16), Numbers(80, 3)));
  EXPECT_FALSE(fits(Numbers(16, 16), Numbers(81, 3)));
  Numbers sevens_and_twos(16, 7);
  sevens_and_twos.insert(sevens_and_twos.end(), 64, 2);
  EXPECT_TRUE(fits(Numbers(16, 16), sevens_and_twos));
  sevens_and_twos.push_back(7);
  EXPECT_TRUE(fits(Numbers(16, 16), sevens_and_twos));
}

}  // namespace
}  // namespace topolet::bench
