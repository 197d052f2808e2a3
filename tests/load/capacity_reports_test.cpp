#include "core/load/capacity_reports.hpp"

#include <gmock/gmock.h>

namespace topolet::load {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Reports = std::vector<CapacityReports::Report>;

/// One node of four CPUs, and time that passes by what the test measures.
class CapacityReportsTest : public ::testing::Test {
 protected:
  Reports measure(std::optional<std::int64_t> milli, int seconds = 1) {
    now_ += std::chrono::seconds(seconds);
    Sample sample;
    sample.taken_at = std::chrono::steady_clock::time_point(now_);
    sample.load.measured_for = is_settled_ ? kSettled : std::chrono::seconds(0);
    sample.load.nodes[3].effective_milli = milli;
    return reports_.due(sample, {{3, CpuSet::range(0, 3)}});
  }
  static CapacityReports::Report told(std::optional<std::int64_t> milli) { return {3, milli}; }

  bool is_settled_ = true;
  std::chrono::seconds now_{1000};
  CapacityReports reports_;
};

TEST_F(CapacityReportsTest, TellNothingOfANodeThatHasAll) {
  EXPECT_THAT(measure(4000), IsEmpty());
  EXPECT_THAT(measure(3810, 1000), IsEmpty()) << "less than a twentieth is missing";
}

TEST_F(CapacityReportsTest, TellWhatHasChangedByATwentiethEveryThirtySeconds) {
  EXPECT_THAT(measure(3800), ElementsAre(told(3800)));
  EXPECT_THAT(measure(2000, 29), IsEmpty());
  EXPECT_THAT(measure(2000), ElementsAre(told(2000)));
  EXPECT_THAT(measure(2190, 59), IsEmpty());
}

TEST_F(CapacityReportsTest, TellTheNewestAgainEveryMinuteWhileSomethingIsMissing) {
  measure(2000);
  EXPECT_THAT(measure(2100, 59), IsEmpty());
  EXPECT_THAT(measure(2110), ElementsAre(told(2110)));
  EXPECT_THAT(measure(2110, 59), IsEmpty());
}

TEST_F(CapacityReportsTest, TellOnceThatNothingIsMissingAnyMore) {
  measure(2000);
  EXPECT_THAT(measure(3990, 30), ElementsAre(told(std::nullopt)));
  EXPECT_THAT(measure(3990, 1000), IsEmpty());
}

TEST_F(CapacityReportsTest, TellNothingThatIsNotKnown) {
  EXPECT_THAT(measure(std::nullopt), IsEmpty());
  is_settled_ = false;
  EXPECT_THAT(measure(1000), IsEmpty()) << "it was measured for too short a time";
  is_settled_ = true;
  EXPECT_THAT(measure(1000), ElementsAre(told(1000)));
  EXPECT_THAT(measure(std::nullopt, 1000), IsEmpty()) << "what was told ends by itself";
}

}  // namespace
}  // namespace topolet::load
