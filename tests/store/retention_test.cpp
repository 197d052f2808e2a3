#include "store/retention.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <numeric>

#include "tests/store/scratch.hpp"

namespace topolet::store {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::int64_t kDay = 24 * 60 * 60 * 1000;
/// Day 0 of what is decided here.
constexpr std::int64_t kStart = 1'700'000'000'000;

class RetentionTest : public StoreTest {
 protected:
  std::unique_ptr<Store> open_with(RetentionLimits limits) const {
    auto store = Store::open(
        {.directory = directory(), .boot_id = "boot-1", .now_ms = kStart, .durability = {}, .retention = limits});
    if (!store) throw std::runtime_error(store.error().message);
    return *std::move(store);
  }
  static constexpr RetentionLimits kThirtyDays{.keep = std::chrono::hours(30 * 24)};

  static DecidedRow at_day(std::int64_t day, const std::string& container, const std::string& event = "placed") {
    DecidedRow row = exclusive_row(container, {1});
    row.at_ms = kStart + day * kDay;
    row.generation = static_cast<std::uint64_t>(day + 1);
    row.event = event;
    row.holds = event == "placed";
    return row;
  }
  /// Returns the decision's number.
  static std::int64_t place(Store& store, std::int64_t day, const std::string& container) {
    const std::int64_t decision = *add_with_allocation(store, at_day(day, container));
    EXPECT_TRUE(store.add(OutcomeRow{decision, kStart + day * kDay, "bound", "id-" + container, 0, ""}).has_value());
    return decision;
  }
  static void end(Store& store, std::int64_t day, std::int64_t decision) {
    const EndedRow row{decision, kStart + day * kDay, static_cast<std::uint64_t>(day + 1), "exited"};
    EXPECT_TRUE(store.add(row).has_value());
  }
  static void set_pool(Store& store, std::int64_t day, const CpuSet& pool, const CpuSet& free_reserved = {}) {
    const PoolRow row{static_cast<std::uint64_t>(day + 1), kStart + day * kDay, pool, free_reserved};
    EXPECT_TRUE(store.add(row).has_value());
  }

  /// By the wall clock `day` has come, and the time since the run began is another day more than that: what waits for a
  /// day has waited. Returns how many decisions and pool versions it deleted.
  std::int64_t tidy_up(Store& store, std::int64_t day, std::int64_t rows = 2) {
    const std::int64_t at_once = tidy_up_at(store, day, day, rows);
    return at_once + tidy_up_at(store, day, day + 1, rows);
  }
  /// `passed`: days by the monotonic clock.
  std::int64_t tidy_up_at(Store& store, double day, double passed, std::int64_t rows = 2) {
    std::int64_t deleted = 0;
    while (true) {
      const auto done = store.run_retention_pass(at(day, passed), rows);
      if (!done) throw std::runtime_error(done.error().message);
      EXPECT_LE(done->deleted, rows);
      deleted += done->deleted;
      notices_.insert(notices_.end(), done->notices.begin(), done->notices.end());
      if (!done->has_more) return deleted;
    }
  }
  static Moment at(double day, double passed) {
    const auto milliseconds = [](double days) { return static_cast<std::int64_t>(days * kDay); };
    return {kStart + milliseconds(day),
            std::chrono::steady_clock::time_point(std::chrono::milliseconds(milliseconds(passed)))};
  }
  /// `count` decisions, one an hour from day 0 on, each of which ends an hour later.
  void place_hourly(Store& store, int count) {
    for (int hour = 0; hour < count; ++hour) {
      DecidedRow row = at_day(0, fmt::format("c{}", hour));
      row.at_ms = kStart + hour * kDay / 24;
      row.generation = static_cast<std::uint64_t>(hour + 1);
      const std::int64_t decision = *add_with_allocation(store, row);
      const EndedRow end{decision, row.at_ms + kDay / 24, row.generation, "exited"};
      EXPECT_TRUE(store.add(end).has_value());
    }
  }
  std::string count() const { return value("SELECT count(*) FROM decided"); }
  std::string days(const std::string& table) const {
    return column(fmt::format("SELECT (at_ms - {}) / {} FROM {} ORDER BY 1, at_ms", kStart, kDay, table));
  }
  std::vector<std::string> notices_;
  std::string containers() const { return column("SELECT container FROM decided ORDER BY decision"); }
};

TEST_F(RetentionTest, DeletesDecisionsWhoseEndIsOlderAndWhatBelongsToThem) {
  const auto store = open_with(kThirtyDays);
  const std::int64_t ended_early = place(*store, 0, "ended-early");
  const std::int64_t ended_late = place(*store, 0, "ended-late");
  place(*store, 0, "runs");
  end(*store, 5, ended_early);
  end(*store, 15, ended_late);
  EXPECT_EQ(tidy_up(*store, 35), 0) << "its end is just as old as what is kept";
  EXPECT_EQ(tidy_up(*store, 36), 1);
  EXPECT_EQ(containers(), "ended-late,runs");
  for (const char* table : {"outcome", "held_cpu", "pod_history"}) {
    EXPECT_EQ(column(fmt::format("SELECT decision FROM {} ORDER BY decision", table)), "2,3") << table;
  }
  for (const char* table : {"ended", "lifetime"}) {
    EXPECT_EQ(column(fmt::format("SELECT decision FROM {} ORDER BY decision", table)), "2") << table;
  }
  EXPECT_EQ(*pruned_until(connect()), kStart + 6 * kDay);
  EXPECT_EQ(tidy_up(*store, 1000), 1);
  EXPECT_EQ(containers(), "runs");
}

TEST_F(RetentionTest, DeletesWhatWasMeasuredWithTheLastDecisionThatReadIt) {
  const auto store = open_with(kThirtyDays);
  const auto place_by = [&](const std::string& container, const std::string& load) {
    DecidedRow row = at_day(0, container);
    row.load = load;
    return *add_with_allocation(*store, row);
  };
  const std::int64_t first = place_by("first", R"({"a":1})");
  const std::int64_t second = place_by("second", R"({"a":1})");
  place_by("runs", R"({"a":2})");
  end(*store, 5, first);
  end(*store, 15, second);
  EXPECT_EQ(tidy_up(*store, 36), 1);
  EXPECT_EQ(column("SELECT sample FROM load_sample ORDER BY sample"), "1,2");
  EXPECT_EQ(tidy_up(*store, 46), 1);
  EXPECT_EQ(column("SELECT sample FROM load_sample ORDER BY sample"), "2");
}

TEST_F(RetentionTest, DeletesWhatHeldNothingOnceItIsToldNoMore) {
  const auto store = open_with(kThirtyDays);
  ASSERT_TRUE(store->add(at_day(0, "denied", "denied")).has_value());
  const std::int64_t again = *store->add(at_day(0, "denied-again", "denied"));
  const std::int64_t counted = *store->add(at_day(0, "counted-on", "denied"));
  ASSERT_TRUE(store->add(at_day(0, "", "gap")).has_value());
  ASSERT_TRUE(store->count_repeat(again, kStart + 20 * kDay).has_value());
  Columns pod = pod_columns("s1", "till");
  pod.emplace_back("denied", fmt::format(R"({{"main":{{"decision":{},"reason":"full"}}}})", counted));
  ASSERT_TRUE(store->put_pod(pod).has_value());
  EXPECT_EQ(tidy_up(*store, 40), 2);
  EXPECT_EQ(containers(), "denied-again,counted-on");
  EXPECT_TRUE(store->count_repeat(counted, kStart + 40 * kDay).has_value());
  ASSERT_TRUE(store->remove_pod("s1").has_value());
  EXPECT_EQ(tidy_up(*store, 60), 1);
  EXPECT_EQ(containers(), "counted-on") << "it was told again";
  EXPECT_EQ(tidy_up(*store, 80), 1);
  EXPECT_EQ(value("SELECT count(*) FROM event_history"), "0");
}

TEST_F(RetentionTest, KeepsThePoolsThatTellWhereSomebodyIs) {
  const auto store = open_with(kThirtyDays);
  for (int day = 0; day < 20; ++day) set_pool(*store, day, CpuSet::range(0, 3));
  end(*store, 19, place(*store, 0, "gone"));
  EXPECT_EQ(tidy_up(*store, 45), 0) << "versions are deleted behind decisions";
  EXPECT_EQ(tidy_up(*store, 50), 20) << "the decision, and all versions but the newest";
  EXPECT_EQ(days("pool_version"), "19");
}

TEST_F(RetentionTest, KeepsThePoolOfThoseForWhomALaterOneHasNothing) {
  const auto store = open_with(kThirtyDays);
  DecidedRow bounded = at_day(0, "bounded");
  bounded.mode = "shared";
  bounded.within = bounded.kubelet_cpus = CpuSet{2, 3};
  ASSERT_TRUE(add_with_allocation(*store, bounded).has_value());
  end(*store, 19, place(*store, 0, "gone"));
  for (int day = 1; day < 6; ++day) set_pool(*store, day, CpuSet{1, 2});
  for (int day = 6; day < 20; ++day) set_pool(*store, day, CpuSet{1});
  EXPECT_EQ(tidy_up(*store, 60), 5);
  EXPECT_EQ(days("pool_version"), "5,6,7,8,9,10,11,12,13,14,15,16,17,18,19");
}

TEST_F(RetentionTest, KeepsTheMachineAndTheSetupOfWhatRuns) {
  const auto store = open_with(kThirtyDays);
  for (int day = 0; day < 6; ++day) {
    const auto generation = static_cast<std::uint64_t>(day + 1);
    const std::int64_t at = kStart + day * kDay;
    TopologyRow machine;
    machine.generation = generation;
    machine.at_ms = at;
    machine.cpus.push_back({.cpu = static_cast<std::uint32_t>(day), .node = 0, .core = 0, .l3 = 0, .package = 0});
    machine.devices.push_back({"nvme0n1", "0000:01:00.0", "storage", NodeSet{0}});
    ASSERT_TRUE(store->add(machine).has_value());
    ASSERT_TRUE(store->add(SetupRow{day + 1, generation, at, "1.0", fmt::format("day = {}", day), "[]"}).has_value());
  }
  const std::int64_t gone = place(*store, 0, "gone");
  DecidedRow runs = at_day(3, "runs");
  runs.setup = 3;
  ASSERT_TRUE(add_with_allocation(*store, runs).has_value());
  end(*store, 10, gone);
  tidy_up(*store, 60);
  EXPECT_EQ(days("topology"), "5") << "the machine at the mark";
  EXPECT_EQ(column("SELECT cpu FROM topology_cpu"), "5");
  EXPECT_EQ(column("SELECT setup FROM setup ORDER BY setup"), "3,4,5,6");
  EXPECT_EQ(column("SELECT text FROM config ORDER BY first_ms"), "day = 2,day = 3,day = 4,day = 5");
}

TEST_F(RetentionTest, KeepsTheNewestThatFitIntoTheSize) {
  constexpr std::int64_t kLimit = 4 << 20;
  const auto store = open_with({.keep_bytes = kLimit});
  const std::int64_t runs = place(*store, 0, "runs");
  std::int64_t newest = 0;
  for (int day = 1; day < 9; ++day) {
    ASSERT_TRUE(store->begin().has_value());
    for (int i = 0; i < 500; ++i) {
      DecidedRow row = at_day(day, "main");
      row.at_ms += i;
      row.reason = std::string(2000, 'r');
      newest = *add_with_allocation(*store, row);
      const EndedRow ended{newest, row.at_ms + 1, row.generation, "exited"};
      ASSERT_TRUE(store->add(ended).has_value());
    }
    ASSERT_TRUE(store->commit().has_value());
    tidy_up(*store, 9, 20);
    // The contents of the log are in the file, too.
    connect(Database::Access::kReadWrite).checkpoint();
  }
  tidy_up(*store, 9, 20);
  const DatabaseSize size = *size_of(connect());
  EXPECT_LE(size.used_bytes, kLimit);
  EXPECT_GT(size.used_bytes, kLimit / 2) << "no more than needed is deleted";
  EXPECT_EQ(value("SELECT min(decision) FROM decided"), std::to_string(runs)) << "what runs is kept";
  EXPECT_EQ(value("SELECT max(decision) FROM ended"), std::to_string(newest));
  const std::int64_t kept = std::stoll(value("SELECT count(*) FROM ended"));
  EXPECT_EQ(value("SELECT min(decision) FROM ended"), std::to_string(newest - kept + 1)) << "the oldest go first";
  constexpr std::int64_t kAtOnce = 2 << 20;  // what is added above before anything is deleted
  EXPECT_LE(static_cast<std::int64_t>(std::filesystem::file_size(file())), kLimit + kAtOnce);
}

TEST_F(RetentionTest, ShrinksANewFileAndReusesThePagesOfAnOlderOne) {
  for (const bool is_new : {true, false}) {
    std::filesystem::remove_all(directory());
    { open(); }
    if (!is_new) {
      Database database = connect(Database::Access::kReadWrite);
      ASSERT_TRUE(database.execute("PRAGMA journal_mode = DELETE; PRAGMA auto_vacuum = NONE; VACUUM", "x").has_value());
    }
    const auto store = open_with(kThirtyDays);
    ASSERT_TRUE(store->begin().has_value());
    for (int i = 0; i < 2000; ++i) {
      DecidedRow row = at_day(0, "main", "denied");
      row.reason = std::string(2000, 'r');
      ASSERT_TRUE(store->add(row).has_value());
    }
    ASSERT_TRUE(store->commit().has_value());
    const std::int64_t before = std::stoll(value("PRAGMA page_count"));
    EXPECT_EQ(tidy_up(*store, 40, 400), 2000);
    const std::int64_t after = std::stoll(value("PRAGMA page_count"));
    if (is_new) {
      EXPECT_LT(after, before / 2);
    } else {
      EXPECT_EQ(after, before);
      EXPECT_GT(std::stoll(value("PRAGMA freelist_count")), before / 2);
    }
  }
}

TEST_F(RetentionTest, GoesOnWhereAStopCameBetween) {
  {
    const auto store = open_with(kThirtyDays);
    for (int day = 0; day < 20; ++day) set_pool(*store, day, CpuSet::range(0, 3));
    end(*store, 19, place(*store, 0, "gone"));
    EXPECT_EQ(tidy_up_at(*store, 60, 0, 5), 0);
    EXPECT_EQ(store->run_retention_pass(at(60, 1), 5)->deleted, 1);
    EXPECT_EQ(containers(), "");
  }
  const auto store = open_with({});
  EXPECT_EQ(tidy_up(*store, 60), 19) << "what was begun is ended, whatever the limits are";
  EXPECT_EQ(days("pool_version"), "19");
}

TEST_F(RetentionTest, TellsHowLargeTheHistoryIsAndHowFarBackItGoes) {
  const auto store = open_with(kThirtyDays);
  EXPECT_FALSE(store->figures()) << "nobody has looked";
  tidy_up(*store, 0);
  ASSERT_TRUE(store->figures());
  EXPECT_GT(store->figures()->bytes, 0);
  EXPECT_FALSE(store->figures()->oldest_decision_ms) << "there is none";
  end(*store, 2, place(*store, 1, "a"));
  place(*store, 3, "b");
  tidy_up(*store, 4);
  EXPECT_EQ(store->figures()->oldest_decision_ms, kStart + kDay);
  EXPECT_EQ(tidy_up(*store, 40), 1);
  tidy_up_at(*store, 40, 42);
  EXPECT_EQ(store->figures()->oldest_decision_ms, kStart + 3 * kDay);
}

TEST_F(RetentionTest, ForecastsWhatItDeletes) {
  const auto store = open_with({});
  for (int day = 0; day < 5; ++day) end(*store, day, place(*store, day, fmt::format("c{}", day)));
  place(*store, 0, "runs");
  ASSERT_TRUE(store->add(at_day(1, "denied", "denied")).has_value());
  Database database = connect(Database::Access::kReadWrite);
  EXPECT_FALSE(prune_slice(database, kStart + 3 * kDay, 100).has_value()) << "it would leave rows of no decision";
  ASSERT_TRUE(database.execute("PRAGMA foreign_keys = ON", "prune").has_value());
  const PruneForecast forecast = *forecast_prune(database, kStart + 3 * kDay);
  EXPECT_EQ(forecast.decisions, 4);
  EXPECT_EQ(forecast.decisions_left, 3);
  EXPECT_EQ(tidy_up(*store, 60), 0) << "without a limit nothing is deleted";
  EXPECT_EQ(*prune_slice(database, kStart + 3 * kDay, 100), 3);
  EXPECT_EQ(*prune_slice(database, kStart + 3 * kDay, 100), 1);
  EXPECT_EQ(*prune_slice(database, kStart + 3 * kDay, 100), 0);
  EXPECT_EQ(containers(), "c3,c4,runs");
}

TEST_F(RetentionTest, DeletesNothingBecauseAClockIsAheadForAWhile) {
  const auto store = open_with(kThirtyDays);
  place_hourly(*store, 400);
  EXPECT_EQ(tidy_up_at(*store, 17, 0), 0);
  EXPECT_EQ(tidy_up_at(*store, 17 + 365, 0.0001), 0) << "a year ahead";
  EXPECT_EQ(tidy_up_at(*store, 17 + 365, 0.0003), 0);
  EXPECT_EQ(tidy_up_at(*store, 17, 0.0003), 0) << "and back";
  EXPECT_EQ(tidy_up_at(*store, 17 - 365, 0.0004), 0);
  EXPECT_EQ(count(), "400");
  EXPECT_EQ(*pruned_until(connect()), 0);
  EXPECT_THAT(notices_, IsEmpty());
  EXPECT_EQ(tidy_up_at(*store, 31, 14), 23) << "the first day's go as they should";
  EXPECT_EQ(*pruned_until(connect()), kStart + kDay);
}

TEST_F(RetentionTest, GoesNoFurtherInARunThanTimeHasPassed) {
  const auto store = open_with(kThirtyDays);
  place_hourly(*store, 400);
  EXPECT_EQ(tidy_up_at(*store, 30, 0), 0);
  EXPECT_EQ(tidy_up_at(*store, 30 + 365, 1), 23) << "a day's, though a year is past by the wall clock";
  EXPECT_EQ(tidy_up_at(*store, 30 + 365, 1.5), 12);
}

TEST_F(RetentionTest, WaitsBeforeMuchGoesAtOnceAndSaysSo) {
  const auto store = open_with(kThirtyDays);
  place_hourly(*store, 400);
  EXPECT_EQ(tidy_up_at(*store, 17 + 365, 0), 0) << "ahead before the time service has set it";
  ASSERT_THAT(notices_, SizeIs(1));
  EXPECT_THAT(notices_[0], HasSubstr("400 decisions that had ended before 2024-"));
  EXPECT_THAT(notices_[0], HasSubstr("topolet prune"));
  EXPECT_EQ(tidy_up_at(*store, 17 + 365, 0.9), 0);
  EXPECT_THAT(notices_, SizeIs(1)) << "once";
  EXPECT_EQ(tidy_up_at(*store, 17, 0.95), 0);
  EXPECT_EQ(tidy_up_at(*store, 17 + 365, 1.2), 0) << "it has to be so for a whole day";
  EXPECT_THAT(notices_, SizeIs(2));
  EXPECT_EQ(*pruned_until(connect()), 0);
  EXPECT_EQ(tidy_up_at(*store, 17 + 366, 2.2), 400);
}

TEST_F(RetentionTest, TakesTwoDaysOfDecisionsForMuch) {
  const auto store = open_with(kThirtyDays);
  place_hourly(*store, 2000);
  EXPECT_EQ(tidy_up_at(*store, 32.5, 0), 0) << "60 hours' are few, but more than two days'";
  EXPECT_THAT(notices_, SizeIs(1));
}

TEST_F(RetentionTest, DeletesAtOnceWhereKeepIsShorterThanBefore) {
  {
    const auto store = open_with(kThirtyDays);
    place_hourly(*store, 400);
    EXPECT_EQ(tidy_up_at(*store, 17, 0), 0);
  }
  const RetentionLimits two_days{.keep = std::chrono::hours(48)};
  {
    const auto store = open_with(two_days);
    EXPECT_EQ(tidy_up_at(*store, 17 + 365, 0), 0) << "the clock is ahead as well";
    EXPECT_THAT(notices_.at(0), HasSubstr("are older than daemon.keep"));
  }
  notices_.clear();
  const auto store = open_with(two_days);
  EXPECT_EQ(tidy_up_at(*store, 17, 0), 359);
  EXPECT_THAT(notices_.at(0), HasSubstr("daemon.keep was 30.0 days and is 2.0 days now: 359 decisions"));
  EXPECT_EQ(value("SELECT mark FROM retention WHERE subject = 'keep_ms'"), "172800000");
}

TEST_F(RetentionTest, LowersAMarkThatIsStillToCome) {
  {
    const auto store = open_with(kThirtyDays);
    place_hourly(*store, 40);
    const std::string ahead = std::to_string(kStart + 400 * kDay);
    ASSERT_TRUE(connect(Database::Access::kReadWrite)
                    .execute("UPDATE retention SET mark = " + ahead + " WHERE subject = 'ended_ms'", "be ahead")
                    .has_value());
  }
  EXPECT_EQ(*believable_pruned_until(connect(), kStart + 3 * kDay), kStart + 3 * kDay - 60'000);
  {
    const auto store = open_with(kThirtyDays);
    EXPECT_EQ(tidy_up_at(*store, 3, 0), 0);
    EXPECT_EQ(*pruned_until(connect()), kStart + 3 * kDay);
    EXPECT_EQ(count(), "40");
  }
  ASSERT_THAT(notices_, SizeIs(1));
  EXPECT_THAT(notices_[0], HasSubstr("a clock was ahead"));
  const auto again = open_with(kThirtyDays);
  EXPECT_EQ(tidy_up_at(*again, 4, 0), 0) << "the lowered mark is not a reason to delete";
  EXPECT_EQ(count(), "40");
}

TEST_F(RetentionTest, KeepsWhatIsThereWhileTheClockIsBehind) {
  const auto store = open_with(kThirtyDays);
  place_hourly(*store, 400);
  EXPECT_EQ(tidy_up_at(*store, -19'000, 0), 0) << "in 1970";
  EXPECT_EQ(tidy_up_at(*store, 40, 0.001), 0) << "set right; by age, this run deletes no more";
  EXPECT_EQ(count(), "400");
}

TEST_F(RetentionTest, FollowsAClockThatWasSetForwardAndStaysSo) {
  const auto store = open_with(kThirtyDays);
  place_hourly(*store, 400);
  tidy_up_at(*store, -19'000, 0);
  EXPECT_EQ(tidy_up_at(*store, 47, 0.1), 0);
  EXPECT_EQ(tidy_up_at(*store, 48.1, 1.2), 0) << "it is followed, and what is old now waits for a day";
  EXPECT_EQ(tidy_up_at(*store, 49.2, 2.3), 400);
}

/// A right one: the clock comes back.
TEST_F(RetentionTest, RaisesAMarkAgainThatAClockBehindHasLowered) {
  for (const bool restarts : {false, true}) {
    SCOPED_TRACE(restarts);
    auto store = open_with(kThirtyDays);
    place_hourly(*store, 400);
    tidy_up_at(*store, 17, 0);
    EXPECT_EQ(tidy_up_at(*store, 31, 14), 23);
    EXPECT_EQ(tidy_up_at(*store, -365, 14.001), 0);
    EXPECT_EQ(*pruned_until(connect()), kStart - 365 * kDay);
    EXPECT_EQ(tidy_up_at(*store, -400, 14.002), 0) << "and further back";
    if (restarts) store.reset();
    if (restarts) store = open_with(kThirtyDays);
    tidy_up_at(*store, 31, 14.003);
    EXPECT_EQ(*pruned_until(connect()), kStart + kDay);
    EXPECT_THAT(notices_.back(), HasSubstr("the clock was behind: the history may have gaps until 2023-11-15"));
    EXPECT_EQ(value("SELECT count(*) FROM retention WHERE subject LIKE 'lowered%'"), "0");
    store.reset();
    std::filesystem::remove(directory() / "state.db");
  }
}

TEST_F(RetentionTest, TheDayGoesOnInTheNextRunAndOnlyWhatHasWaitedGoes) {
  {
    const auto store = open_with(kThirtyDays);
    place_hourly(*store, 400);
    tidy_up_at(*store, 40, 0);
    EXPECT_EQ(tidy_up_at(*store, 40.6, 0.6), 0);
  }
  {
    const auto ahead = open_with(kThirtyDays);
    EXPECT_EQ(tidy_up_at(*ahead, 40 + 365, 100), 0);
    EXPECT_EQ(tidy_up_at(*ahead, 40 + 365, 100.3), 0);
    EXPECT_THAT(notices_, SizeIs(1)) << "the same day";
  }
  const auto ahead = open_with(kThirtyDays);
  EXPECT_EQ(tidy_up_at(*ahead, 40 + 365, 200), 0);
  EXPECT_EQ(tidy_up_at(*ahead, 40 + 365, 200.2), 266) << "what was older on day 40, and has come to be since";
  EXPECT_EQ(tidy_up_at(*ahead, 40 + 365, 200.3), 0);
  EXPECT_EQ(value("SELECT mark FROM retention WHERE subject = 'waited_ms'"), "8640000") << "another day has begun";
}

TEST_F(RetentionTest, OfAFewDecisionsOneNeedNotWait) {
  const auto store = open_with(kThirtyDays);
  for (int day = 0; day < 9; ++day) end(*store, day * 5, place(*store, day * 5, fmt::format("c{}", day)));
  tidy_up_at(*store, 40, 0);
  EXPECT_EQ(tidy_up_at(*store, 41, 1.5), 3) << "of more than two days";
  EXPECT_EQ(tidy_up_at(*store, 46, 6), 1);
  EXPECT_THAT(notices_, SizeIs(1)) << "one of six is few";
}

TEST_F(RetentionTest, AKeepThatIsFiniteNowIsMeantUnlessTheClockMayBeAhead) {
  for (const int ahead : {0, 365}) {
    SCOPED_TRACE(ahead);
    notices_.clear();
    {
      const auto store = open_with({.keep = std::chrono::milliseconds(0)});
      place_hourly(*store, 400);
      tidy_up_at(*store, 17, 0);
    }
    const auto store = open_with({.keep = std::chrono::hours(48)});
    EXPECT_EQ(tidy_up_at(*store, 17 + ahead, 0), ahead == 0 ? 359 : 0);
    EXPECT_THAT(notices_.at(0), HasSubstr(ahead == 0 ? "daemon.keep was for ever" : "are older than daemon.keep"));
    std::filesystem::remove(directory() / "state.db");
  }
}

TEST_F(RetentionTest, DeletesBecauseOfTheSizeWhateverTheClockSays) {
  const auto store = open_with({.keep = std::chrono::hours(30 * 24), .keep_bytes = 4096});
  place_hourly(*store, 400);
  EXPECT_GT(tidy_up_at(*store, -400, 0, 400), 350);
}

}  // namespace
}  // namespace topolet::store
