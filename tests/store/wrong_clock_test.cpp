// Random histories of a wall clock that is set forward and back, during runs and between them.
#include <fmt/format.h>

#include <array>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "store/retention.hpp"
#include "tests/store/scratch.hpp"

namespace topolet::store {
namespace {

constexpr std::int64_t kHourLong = 3'600'000;
constexpr std::int64_t kDayLong = 24 * kHourLong;
constexpr std::int64_t kKeepLong = 30 * kDayLong;

/// A node and its clocks. True time begins at 0 and is the monotonic clock; decisions end as soon as they are made.
class WrongClock : public StoreTest, public ::testing::WithParamInterface<unsigned> {
 protected:
  void start() {
    store_.reset();
    store_ = *Store::open({.directory = directory(),
                           .boot_id = "boot-1",
                           .now_ms = wall(),
                           .retention = {.keep = std::chrono::milliseconds(kKeepLong)}});
  }
  std::int64_t wall() const { return kStart + now_ + offset_; }

  void decide() {
    DecidedRow row = exclusive_row(fmt::format("c{}", ++generation_), {1});
    row.at_ms = wall();
    row.generation = generation_;
    const std::int64_t decision = *add_with_allocation(*store_, row);
    ASSERT_TRUE(store_->add(EndedRow{decision, row.at_ms, row.generation, "exited"}).has_value());
    made_[decision] = now_;
  }

  void tidy_up() {
    while (true) {
      const auto done = store_->run_retention_pass(
          {wall(), std::chrono::steady_clock::time_point(std::chrono::milliseconds(now_))}, 100);
      ASSERT_TRUE(done);
      if (!done->has_more) break;
    }
    EXPECT_LE(*believable_pruned_until(connect(), wall()), wall()) << "the present can be told";
  }

  /// Those that are not older than that by true time.
  void expect_kept(std::int64_t age) {
    std::istringstream left(column("SELECT decision FROM decided ORDER BY decision"));
    std::set<std::int64_t> there;
    for (std::string number; std::getline(left, number, ',');) there.insert(std::stoll(number));
    for (const auto& [decision, made] : made_) {
      if (now_ - made > age) continue;
      ASSERT_EQ(there.count(decision), 1U) << "of " << (now_ - made) / kDayLong << " days ago";
    }
  }

  static constexpr std::int64_t kStart = 1'700'000'000'000;
  std::unique_ptr<Store> store_;
  std::int64_t now_ = 0;
  std::int64_t offset_ = 0;
  std::uint64_t generation_ = 0;
  std::map<std::int64_t, std::int64_t> made_;  ///< when, by true time
};

TEST_P(WrongClock, DeletesNothingTooEarlyAndIsNeverStuck) {
  std::mt19937 random(GetParam());
  const auto below = [&random](std::int64_t limit) { return static_cast<std::int64_t>(random() % limit); };
  constexpr std::array<std::int64_t, 6> kOffsets = {365 * kDayLong, -365 * kDayLong, 45 * kDayLong,
                                                    -45 * kDayLong, 4000 * kDayLong, -19'000 * kDayLong};
  start();
  std::int64_t wrong_since = 0;
  for (int step = 0; step < 250; ++step) {
    now_ += offset_ == 0 ? below(10 * kHourLong) : below(2 * kHourLong);
    // A decision that is stamped by a clock that is behind is as old as it says.
    if (offset_ >= 0 && below(3) != 0) decide();
    const bool was_wrong_for_long = offset_ != 0 && now_ - wrong_since > 12 * kHourLong;
    if (was_wrong_for_long || below(12) == 0) {
      if (offset_ == 0) wrong_since = now_;
      offset_ = was_wrong_for_long || below(2) == 0 ? 0 : kOffsets[below(kOffsets.size())];
    }
    if (below(15) == 0) start();
    tidy_up();
    expect_kept(kKeepLong);
    if (HasFatalFailure()) return;
  }
  offset_ = 0;
  for (int hour = 0; hour < 24 * 6; ++hour) {
    now_ += kHourLong;
    if (hour % 24 == 7) start();
    tidy_up();
  }
  EXPECT_LE(*pruned_until(connect()), wall());
  const auto oldest = connect().integer(fmt::format("SELECT coalesce(min(at_ms), {0}) FROM decided", wall()), "look");
  EXPECT_GE(*oldest, wall() - kKeepLong - 6 * kDayLong) << "what is too old has gone";
}

INSTANTIATE_TEST_SUITE_P(Histories, WrongClock, ::testing::Range(1U, 7U));

}  // namespace
}  // namespace topolet::store
