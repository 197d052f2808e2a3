#include <gmock/gmock.h>

#include "core/engine/handlers/set_capacity.hpp"
#include "tests/engine/handler_test.hpp"

namespace topolet::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

class MeasuredCapacityTest : public HandlerTest {
 protected:
  MeasuredCapacityTest() { begin({}); }

  void measure(std::optional<std::int64_t> milli, std::uint32_t node = 0) {
    handle_measured_capacity(deps(), node, milli, now_);
    loop_.run();
  }
  void tell(std::int64_t milli) {
    committer_->commit(event::CapacityReported{0, milli, now_ + minutes(1), "operator"});
    loop_.run();
  }
  const ReportedCapacity* known(std::uint32_t node = 0) const {
    const auto& all = committer_->ledger().reported_capacities();
    const auto found = all.find(node);
    return found == all.end() ? nullptr : &found->second;
  }

  const milliseconds now_ = minutes(1'000'000);
};

TEST_F(MeasuredCapacityTest, CountsForTwoMinutes) {
  measure(1500);
  ASSERT_NE(known(), nullptr);
  EXPECT_EQ(known()->milli, 1500);
  EXPECT_EQ(known()->source, "steal");
  EXPECT_EQ(known()->until, now_ + minutes(2));
  measure(std::int64_t{1} << 40);
  EXPECT_EQ(known()->milli, 4000) << "it has no more";
}

TEST_F(MeasuredCapacityTest, EndsWhenNothingIsMissing) {
  measure(1500);
  measure(std::nullopt);
  EXPECT_EQ(known(), nullptr);
  measure(std::nullopt);
  EXPECT_EQ(known(), nullptr);
}

TEST_F(MeasuredCapacityTest, DoesNotContradictTheOutside) {
  tell(500);
  measure(1500);
  EXPECT_EQ(known()->milli, 500);
  measure(std::nullopt);
  EXPECT_EQ(known()->milli, 500);
  EXPECT_EQ(known()->source, "operator");
}

TEST_F(MeasuredCapacityTest, IsOfNoNodeThatTheMachineLacks) {
  measure(1500, 77);
  EXPECT_EQ(known(77), nullptr);
}

}  // namespace
}  // namespace topolet::engine
