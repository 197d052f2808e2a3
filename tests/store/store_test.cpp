#include "store/store.hpp"

#include <fmt/format.h>

#include <chrono>

#include "tests/store/scratch.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/file_size_limit.hpp"

namespace topolet::store {
namespace {

using testing::FileSizeLimit;

using Rows = std::vector<std::vector<std::string>>;

TEST_F(StoreTest, GivesBackWhatIsHeld) {
  std::int64_t decision = 0;
  {
    const auto store = open();
    decision = *store->add(exclusive_row("app", {2, 3, 6}));
    Columns columns = allocation_columns(exclusive_row("app", {2, 3, 6}));
    columns.emplace_back("container", "app");
    columns.emplace_back("phase", "created");
    columns.emplace_back("attempt", std::int64_t{2});
    const Status put = store->put_allocation(decision, columns);
    ASSERT_TRUE(put.has_value()) << message(put);
  }
  const auto rows = open()->allocations();
  ASSERT_TRUE(rows.has_value()) << message(rows);
  ASSERT_EQ(rows->size(), 1U);
  const AllocationRow& held = rows->front();
  EXPECT_EQ(held.decision, decision);
  EXPECT_EQ(held.columns.at("cpus"), Value("2-3,6"));
  EXPECT_EQ(held.columns.at("pending_since_ms"), Value(std::int64_t{1'700'000'000'123}));
  EXPECT_EQ(held.columns.at("attempt"), Value(std::int64_t{2}));
  EXPECT_EQ(held.columns.at("container"), Value("app"));
  EXPECT_EQ(held.columns.at("phase"), Value("created"));
  EXPECT_EQ(held.columns.at("withheld"), Value("")) << "what was not written is as the schema says";
  EXPECT_EQ(std::to_string(held.columns.size() + 1), value("SELECT count(*) FROM pragma_table_info('allocation')"));
  EXPECT_EQ(held.columns.count("decision"), 0U);
}

TEST_F(StoreTest, HasItsLogWrittenIntoTheFileThoughNothingMoreFollows) {
  constexpr std::uintmax_t kEnough = 5 << 20;  // less than what makes a writer do it itself
  const auto store = open();
  const auto size_at_first = std::filesystem::file_size(file());
  const auto is_written = [&] { return std::filesystem::file_size(file()) > size_at_first; };
  while (!is_written() && std::filesystem::file_size(file().string() + "-wal") < kEnough) {
    ASSERT_TRUE(store->begin().has_value());
    for (int row = 0; row < 50; ++row) ASSERT_TRUE(store->add(exclusive_row("app", {1})).has_value());
    ASSERT_TRUE(store->commit().has_value());
  }
  EXPECT_TRUE(testing::eventually(is_written));
}

TEST_F(StoreTest, PutsWhatIsHeldInThePlaceOfWhatWasThere) {
  const auto store = open();
  const DecidedRow row = exclusive_row("app", {1});
  const auto decision = store->add(row);
  Columns columns = allocation_columns(row);
  columns.emplace_back("within", "0-7");
  ASSERT_TRUE(store->put_allocation(*decision, columns).has_value());
  ASSERT_TRUE(store->put_allocation(*decision, allocation_columns(exclusive_row("app", {2}))).has_value());
  ASSERT_EQ(store->allocations()->size(), 1U);
  EXPECT_EQ(shown(store->allocations()->at(0).columns, "cpus"), "2");
  EXPECT_EQ(shown(store->allocations()->at(0).columns, "within"), "");
}

TEST_F(StoreTest, ChangesSomeColumnsOfWhatIsHeld) {
  const auto store = open();
  const auto first = add_with_allocation(*store, shared_row("log", {0, 1, 2, 3}, CpuSet::range(0, 7)));
  const auto second = add_with_allocation(*store, shared_row("till", {0, 1, 2, 3}, CpuSet::range(0, 7)));
  ASSERT_TRUE(store->update_allocation(*first, {{"cpus", "2-3"}, {"stopping", std::int64_t{1}}}).has_value());
  ASSERT_TRUE(store->update_allocation(*second, {{"stopping", std::int64_t{1}}, {"cpus", "4"}}).has_value());
  ASSERT_TRUE(store->update_allocation(*first, {{"cpus", "5"}, {"stopping", std::int64_t{0}}}).has_value());
  EXPECT_EQ(rows("SELECT decision, cpus, stopping, state FROM allocation", 4),
            (Rows{{"1", "5", "0", "pending"}, {"2", "4", "1", "pending"}}));
  EXPECT_EQ(value("SELECT cpus FROM decided WHERE decision = 1"), "0-3") << "the audit is left alone";
  const Status unknown = store->update_allocation(*first, {{"colour", "grey"}});
  EXPECT_THAT(message(unknown), ::testing::HasSubstr("no such column: colour"));
}

TEST_F(StoreTest, HoldsNothingBeforeItIsTold) {
  const auto store = open();
  ASSERT_TRUE(store->add(exclusive_row("app", {1})).has_value());
  EXPECT_TRUE(store->allocations()->empty());
}

TEST_F(StoreTest, KeepsWhatDecisionsWereMadeByOnce) {
  const auto store = open();
  for (const char* load : {R"({"a":1})", "", R"({"a":1})", R"({"a":2})", R"({"a":1})"}) {
    DecidedRow row = exclusive_row("app", {2});
    row.load = load;
    row.holds = false;
    ASSERT_TRUE(store->add(row).has_value());
  }
  EXPECT_EQ(rows("SELECT sample, at_ms, load FROM load_sample ORDER BY sample", 3),
            (Rows{{"1", "1700000000123", R"({"a":1})"},
                  {"2", "1700000000123", R"({"a":2})"},
                  {"3", "1700000000123", R"({"a":1})"}}));
  EXPECT_EQ(rows("SELECT decision, sample FROM decided_load ORDER BY decision", 2),
            (Rows{{"1", "1"}, {"3", "1"}, {"4", "2"}, {"5", "3"}}));
}

TEST_F(StoreTest, KeepsTheWholeDecision) {
  DecidedRow row = exclusive_row("app", {2, 3, 6});
  row.withheld = {4, 5};
  row.within = {7};
  row.kubelet_cpus = {0, 1, 2, 3};
  row.kubelet_mems = {0, 2};
  row.container_id = "c-1";
  row.memory_request_estimated = true;
  row.hugepage_limit_bytes = {{"1GB", std::int64_t{1} << 30}, {"2MB", 0}};
  row.settings = {{"cpus", "exclusive"}, {"theirs", "a \"quoted\" word"}};
  const auto store = open();
  ASSERT_TRUE(store->add(row).has_value());
  EXPECT_EQ(
      rows("SELECT decision, at_ms, generation, event, holds, pod_uid, pod_namespace, pod_name, container, "
           "attempt, sandbox_id, container_id FROM decided",
           12),
      (Rows{{"1", "1700000000123", "5", "placed", "1", "uid-1", "shop", "till", "app", "2", "sandbox-1", "c-1"}}));
  EXPECT_EQ(rows("SELECT runtime_handler, qos, cpu_request_milli, cpu_limit_milli, memory_request_bytes, "
                 "memory_limit_bytes, memory_request_estimated, hugepages, settings FROM decided",
                 9),
            (Rows{{"runc", "guaranteed", "2000", "2000", "1073741824", "8589934592", "1",
                   R"({"1GB":1073741824,"2MB":0})", R"({"cpus":"exclusive","theirs":"a \"quoted\" word"})"}}));
  EXPECT_EQ(
      rows("SELECT mode, cpus, within, withheld, mems, kubelet_cpus, kubelet_mems, nodes, reason FROM decided", 9),
      (Rows{{"exclusive", "2-3,6", "7", "4-5", "0", "0-3", "0,2", "0", "numa: fits one node"}}));
  EXPECT_EQ(rows("SELECT count(*) FROM decided WHERE supersedes IS NULL AND verdicts IS NULL").at(0).at(0), "1");
}

TEST_F(StoreTest, GivesADecisionTheNumberItIsTo) {
  const auto store = open();
  EXPECT_EQ(*store->last_decision(), 0);
  DecidedRow row = denied_row("app");
  row.decision = 7;
  EXPECT_EQ(*store->add(row), 7);
  EXPECT_EQ(*store->last_decision(), 7);
  EXPECT_EQ(*store->add(denied_row("app")), 8) << "the next one, where it has no number of its own";
  row.decision = 9;
  EXPECT_EQ(*store->add(row), 9);
  EXPECT_EQ(*store->last_decision(), 9);
  const auto again = store->add(row);
  EXPECT_THAT(message(again), ::testing::HasSubstr("rows of decided are never replaced"));
  EXPECT_EQ(column("SELECT decision FROM decided"), "7,8,9");
}

TEST_F(StoreTest, KeepsIntervalsOfHeldCpus) {
  const auto store = open();
  DecidedRow exclusive = exclusive_row("app", {0, 1, 2, 64});
  exclusive.held_cpus.push_back({"withheld", {8, 9}});
  DecidedRow reserved = exclusive_row("dns", {10, 12});
  reserved.held_cpus = {{"reserved", {10, 12}}, {"withheld", {}}};
  ASSERT_TRUE(store->add(exclusive).has_value());
  ASSERT_TRUE(store->add(shared_row("log", {3, 4}, {3, 4})).has_value());
  ASSERT_TRUE(store->add(reserved).has_value());
  const std::vector<std::vector<std::string>> expected{{"1", "exclusive", "0", "2"},
                                                       {"1", "exclusive", "64", "64"},
                                                       {"1", "withheld", "8", "9"},
                                                       {"3", "reserved", "10", "10"},
                                                       {"3", "reserved", "12", "12"}};
  EXPECT_EQ(rows("SELECT decision, kind, first, last FROM held_cpu", 4), expected);
}

TEST_F(StoreTest, AuditsOutcomesAndLeavesWhatIsHeldAlone) {
  const auto store = open();
  const auto decision = add_with_allocation(*store, exclusive_row("app", {1}));
  ASSERT_TRUE(decision.has_value()) << message(decision);
  ASSERT_TRUE(store->add(OutcomeRow{*decision, 2000, "in_doubt", "", 14, "connection lost"}).has_value());
  ASSERT_TRUE(store->add(OutcomeRow{*decision, 3000, "bound", "c-9", 0, ""}).has_value());
  EXPECT_EQ(rows("SELECT at_ms, state, container_id, code, message FROM outcome ORDER BY outcome", 5),
            (Rows{{"2000", "in_doubt", "", "14", "connection lost"}, {"3000", "bound", "c-9", "0", ""}}));
  EXPECT_EQ(rows("SELECT state, container_id FROM live", 2), (Rows{{"pending", ""}}));
}

TEST_F(StoreTest, HoldsWhatWasRefusedUntilItIsEnded) {
  const auto store = open();
  const auto decision = add_with_allocation(*store, exclusive_row("app", {1}));
  ASSERT_TRUE(decision.has_value());
  ASSERT_TRUE(store->add(OutcomeRow{*decision, 2000, "refused", "", 3, "no such image"}).has_value());
  EXPECT_EQ(store->allocations()->size(), 1U);
  ASSERT_TRUE(store->add(EndedRow{*decision, 2000, 6, "refused"}).has_value());
  EXPECT_TRUE(store->allocations()->empty());
  EXPECT_EQ(value("SELECT cause FROM ended"), "refused");
}

TEST_F(StoreTest, EndsWhatIsSuperseded) {
  const auto store = open();
  const auto old = add_with_allocation(*store, exclusive_row("app", {1}));
  ASSERT_TRUE(old.has_value());
  DecidedRow row = exclusive_row("app", {1, 2});
  row.event = "resized";
  row.generation = 9;
  row.supersedes = *old;
  const auto next = add_with_allocation(*store, row);
  ASSERT_TRUE(next.has_value()) << message(next);
  ASSERT_EQ(store->allocations()->size(), 1U);
  EXPECT_EQ(store->allocations()->at(0).decision, *next);
  EXPECT_EQ(value("SELECT supersedes FROM decided WHERE decision = 2"), std::to_string(*old));
  EXPECT_EQ(rows("SELECT decision, generation, cause FROM ended", 3),
            (Rows{{std::to_string(*old), "9", "superseded"}}));

  const auto again = store->add(row);
  EXPECT_EQ(message(again), "decision 1 has no allocation: it was never made or has ended");
  EXPECT_EQ(value("SELECT count(*) FROM decided"), "2");
}

TEST_F(StoreTest, SaysWhichDecisionDoesNotExist) {
  const auto store = open();
  const auto denied = store->add(denied_row("app"));
  ASSERT_TRUE(denied.has_value());
  for (const std::int64_t nothing : {std::int64_t{77}, *denied}) {
    EXPECT_EQ(store->add(EndedRow{nothing, 1, 1, "exited"}).error().code, Code::kNotFound);
    const Status updated = store->update_allocation(nothing, {{"cpus", "1"}});
    ASSERT_FALSE(updated.has_value());
    EXPECT_EQ(updated.error().code, Code::kNotFound);
    EXPECT_THAT(message(updated), ::testing::HasSubstr(std::to_string(nothing) + " has no allocation"));
  }
  const Status put = store->put_allocation(77, allocation_columns(exclusive_row("app", {1})));
  EXPECT_EQ(put.error().code, Code::kNotFound);
  EXPECT_THAT(message(put), ::testing::HasSubstr("no decision 77"));
  EXPECT_THAT(message(store->add(OutcomeRow{77, 1, "bound", "c", 0, ""})), ::testing::HasSubstr("no decision 77"));
  EXPECT_THAT(message(store->count_repeat(77, 1)), ::testing::HasSubstr("no decision 77"));
}

TEST_F(StoreTest, AuditsAnOutcomeThatComesAfterTheEnd) {
  const auto store = open();
  const auto decision = add_with_allocation(*store, exclusive_row("app", {1}));
  ASSERT_TRUE(store->add(EndedRow{*decision, 2, 6, "pending-timeout"}).has_value());
  EXPECT_TRUE(store->add(OutcomeRow{*decision, 3, "bound", "late", 0, ""}).has_value());
  EXPECT_TRUE(store->allocations()->empty());
}

TEST_F(StoreTest, CountsAThousandEqualDenialsInOneRow) {
  const auto store = open();
  const auto decision = store->add(denied_row("app"));
  ASSERT_TRUE(decision.has_value());
  for (int i = 1; i < 1000; ++i) ASSERT_TRUE(store->count_repeat(*decision, 1'700'000'000'123 + i).has_value());
  EXPECT_TRUE(store->allocations()->empty());
  EXPECT_EQ(value("SELECT count(*) FROM decided"), "1");
  EXPECT_EQ(rows("SELECT times, first, last FROM denials", 3),
            (std::vector<std::vector<std::string>>{{"1000", "2023-11-14T22:13:20.123Z", "2023-11-14T22:13:21.122Z"}}));
}

TEST_F(StoreTest, KeepsOnePoolPerGeneration) {
  const auto store = open();
  ASSERT_TRUE(store->add(PoolRow{3, 10, {0, 1}}).has_value());
  EXPECT_TRUE(store->add(PoolRow{3, 11, {0, 1}}).has_value());
  const Status other = store->add(PoolRow{3, 12, {0}});
  ASSERT_FALSE(other.has_value());
  EXPECT_EQ(other.error().code, Code::kAlreadyExists);
  EXPECT_EQ(other.error().message, "generation 3 has the pool '0-1' already; '0' needs a generation of its own");
  EXPECT_EQ(rows("SELECT generation, at_ms, cpus FROM pool_version", 3),
            (std::vector<std::vector<std::string>>{{"3", "10", "0-1"}}));
}

TEST_F(StoreTest, KnowsTheHighestGenerationThatWasSet) {
  const auto store = open();
  EXPECT_EQ(*store->last_generation(), 0U);
  ASSERT_TRUE(store->set_generation(12).has_value());
  ASSERT_TRUE(store->set_generation(11).has_value());
  EXPECT_EQ(*store->last_generation(), 12U);
}

TEST_F(StoreTest, RemembersPodsUntilTheyAreRemoved) {
  const auto store = open();
  ASSERT_TRUE(store->put_pod(pod_columns("s1", "till")).has_value());
  ASSERT_TRUE(store->put_pod(pod_columns("s2", "stock")).has_value());
  Columns till = pod_columns("s1", "till");
  till.emplace_back("nodes", "0-1");
  till.emplace_back("ready", std::int64_t{0});
  ASSERT_TRUE(store->put_pod(till).has_value());
  const auto pods = store->pods();
  ASSERT_TRUE(pods.has_value()) << message(pods);
  ASSERT_EQ(pods->size(), 2U);
  EXPECT_EQ(shown(pods->at(0), "sandbox_id"), "s1");
  EXPECT_EQ(shown(pods->at(0), "nodes"), "0-1");
  EXPECT_EQ(pods->at(0).at("ready"), Value(std::int64_t{0}));
  EXPECT_EQ(pods->at(0).count("boot"), 0U);
  EXPECT_EQ(shown(pods->at(1), "nodes"), "");
  EXPECT_EQ(pods->at(1).at("ready"), Value(std::int64_t{1}));
  ASSERT_TRUE(store->put_pod(pod_columns("s1", "till")).has_value());
  EXPECT_EQ(shown(store->pods()->at(0), "nodes"), "") << "in the place of what was known";
  ASSERT_TRUE(store->remove_pod("s1").has_value());
  ASSERT_TRUE(store->remove_pod("never seen").has_value());
  ASSERT_EQ(store->pods()->size(), 1U);
  EXPECT_EQ(shown(store->pods()->at(0), "pod_name"), "stock");
}

TEST_F(StoreTest, KeepsBytesThatAreNotText) {
  const auto store = open();
  DecidedRow row = exclusive_row(std::string("a\0b\xff'", 5), {1});
  const auto decision = store->add(row);
  Columns columns = allocation_columns(row);
  columns.emplace_back("container", row.container);
  ASSERT_TRUE(store->put_allocation(*decision, columns).has_value());
  EXPECT_EQ(value("SELECT container FROM decided"), row.container);
  EXPECT_EQ(shown(store->allocations()->at(0).columns, "container"), row.container);
}

TEST_F(StoreTest, WritesSeveralRowsInOneTransaction) {
  const auto store = open();
  ASSERT_TRUE(store->begin().has_value());
  EXPECT_EQ(store->begin().error().code, Code::kFailedPrecondition);
  ASSERT_TRUE(store->add(exclusive_row("a", {1})).has_value());
  EXPECT_EQ(value("SELECT count(*) FROM decided"), "0");
  ASSERT_TRUE(store->commit().has_value());
  EXPECT_EQ(value("SELECT count(*) FROM decided"), "1");
  EXPECT_EQ(store->commit().error().code, Code::kFailedPrecondition);

  ASSERT_TRUE(store->begin().has_value());
  ASSERT_TRUE(store->add(exclusive_row("b", {2})).has_value());
  store->roll_back();
  ASSERT_TRUE(store->add(exclusive_row("c", {3})).has_value());
  EXPECT_EQ(column("SELECT container FROM decided ORDER BY decision"), "a,c");
}

TEST_F(StoreTest, RollsBackAWholeTransactionWhenOneWriteFails) {
  const auto store = open();
  ASSERT_TRUE(store->begin().has_value());
  ASSERT_TRUE(add_with_allocation(*store, exclusive_row("a", {1})).has_value());
  ASSERT_FALSE(store->add(EndedRow{77, 1, 1, "exited"}).has_value());
  const auto after = store->add(exclusive_row("b", {2}));
  EXPECT_THAT(message(after), ::testing::HasSubstr("decision 77 has no allocation"));
  EXPECT_THAT(message(store->commit()), ::testing::HasSubstr("decision 77 has no allocation"));
  EXPECT_TRUE(store->allocations()->empty());
  EXPECT_TRUE(store->add(exclusive_row("c", {3})).has_value());
  EXPECT_EQ(column("SELECT container FROM decided ORDER BY decision"), "c");
}

/// Adds a decision and what it holds, and then fails.
Status add_and_fail(Store& store, const char* container) {
  if (const auto added = add_with_allocation(store, exclusive_row(container, {1})); !added) return added.error();
  return store.add(EndedRow{77, 1, 1, "exited"});
}

TEST_F(StoreTest, UndoesASavepointThatFailsAndKeepsTheRestOfTheTransaction) {
  const auto store = open();
  ASSERT_TRUE(store->begin().has_value());
  ASSERT_TRUE(store->add(exclusive_row("before", {1})).has_value());
  const Status failed = store->savepoint([&] { return add_and_fail(*store, "undone"); });
  EXPECT_THAT(message(failed), ::testing::HasSubstr("decision 77 has no allocation"));
  const Status whole = store->savepoint([&]() -> Status {
    const auto added = add_with_allocation(*store, exclusive_row("whole", {2}));
    return added ? Status() : Status(added.error());
  });
  EXPECT_TRUE(whole.has_value()) << message(whole);
  EXPECT_TRUE(store->add(exclusive_row("after", {3})).has_value());
  const Status committed = store->commit();
  ASSERT_TRUE(committed.has_value()) << message(committed);
  EXPECT_EQ(column("SELECT container FROM decided ORDER BY decision"), "before,whole,after");
  EXPECT_EQ(store->allocations()->size(), 1U);
}

TEST_F(StoreTest, UndoesAStepWhoseOwnErrorIsNotTheStores) {
  const auto store = open();
  ASSERT_TRUE(store->begin().has_value());
  const Status failed = store->savepoint([&]() -> Status {
    static_cast<void>(store->add(exclusive_row("undone", {1})));
    return Error{Code::kInternal, "no more of it"};
  });
  EXPECT_EQ(message(failed), "no more of it");
  ASSERT_TRUE(store->commit().has_value());
  EXPECT_EQ(value("SELECT count(*) FROM decided"), "0");
}

TEST_F(StoreTest, DropsTheSavepointsOfATransactionThatIsRolledBack) {
  const auto store = open();
  ASSERT_TRUE(store->begin().has_value());
  ASSERT_TRUE(store->savepoint([&] { return store->add(PoolRow{3, 1, {0}}); }).has_value());
  EXPECT_EQ(value("SELECT count(*) FROM pool_version"), "0");
  store->roll_back();
  EXPECT_EQ(*store->last_generation(), 0U);
}

TEST_F(StoreTest, RefusesASavepointWithoutATransaction) {
  const auto store = open();
  bool ran = false;
  const auto work = [&] {
    ran = true;
    return Status();
  };
  EXPECT_EQ(message(store->savepoint(work)), "a savepoint needs an open transaction; begin one first");
  ASSERT_TRUE(store->begin().has_value());
  ASSERT_FALSE(store->add(EndedRow{77, 1, 1, "exited"}).has_value());
  EXPECT_THAT(message(store->savepoint(work)), ::testing::HasSubstr("decision 77 has no allocation"))
      << "the transaction has failed";
  EXPECT_FALSE(ran);
  EXPECT_FALSE(store->commit().has_value());
}

TEST_F(StoreTest, LeavesNothingBehindOfALargeTransactionThatIsRolledBack) {
  const auto store = open();
  ASSERT_TRUE(store->begin().has_value());
  for (int i = 0; i < 8000; ++i) ASSERT_TRUE(store->add(exclusive_row("lost", {1})).has_value());
  store->roll_back();
  // Somebody repairs something by hand.
  Database other = connect(Database::Access::kReadWrite);
  ASSERT_TRUE(other.execute("CREATE TABLE by_hand AS SELECT * FROM decided", "test").has_value());
  ASSERT_TRUE(add_with_allocation(*store, exclusive_row("kept", {2})).has_value());
  EXPECT_EQ(value("PRAGMA integrity_check"), "ok");
  EXPECT_EQ(column("SELECT container FROM decided"), "kept");
  EXPECT_EQ(value("SELECT count(*) FROM by_hand"), "0");
}

TEST_F(StoreTest, SurvivesWritesThatFail) {
  const auto store = open();
  ASSERT_TRUE(add_with_allocation(*store, exclusive_row("before", {1})).has_value());
  bool single_failed = false;
  Status committed;
  {
    const FileSizeLimit full(4096);
    const auto single = store->add(exclusive_row("lost", {2}));
    single_failed = !single.has_value() && single.error().code == Code::kUnavailable &&
                    single.error().message.find(file().string()) != std::string::npos;
    if (Status begun = store->begin(); begun) {
      static_cast<void>(store->add(exclusive_row("lost", {3})));
      static_cast<void>(store->add(exclusive_row("lost", {4})));
      committed = store->commit();
    }
  }
  EXPECT_TRUE(single_failed);
  EXPECT_FALSE(committed.has_value());
  const auto after = add_with_allocation(*store, exclusive_row("after", {5}));
  EXPECT_TRUE(after.has_value()) << message(after);
  EXPECT_EQ(column("SELECT container FROM decided ORDER BY decision"), "before,after");
  EXPECT_EQ(store->allocations()->size(), 2U);
}

TEST_F(StoreTest, LosesTheWholeTransactionWhenTheDiskIsFullInASavepoint) {
  const auto store = open();
  DecidedRow large = exclusive_row("lost", {2});
  large.reason = std::string(std::size_t{8} << 20, 'x');  // more than SQLite keeps in memory until it commits
  ASSERT_TRUE(store->begin().has_value());
  const Status undone = store->savepoint([&]() -> Status {
    const auto added = [&] {
      const FileSizeLimit full(4096);
      return store->add(large);
    }();
    static_cast<void>(store->add(exclusive_row("stray", {3})));
    return added ? Status() : Status(added.error());
  });
  const Status committed = store->commit();
  EXPECT_FALSE(undone.has_value());
  EXPECT_FALSE(committed.has_value());
  EXPECT_EQ(column("SELECT container FROM decided"), "");
  const auto after = store->add(exclusive_row("after", {5}));
  EXPECT_TRUE(after.has_value()) << message(after);
  EXPECT_EQ(column("SELECT container FROM decided"), "after");
}

TEST_F(StoreTest, TellsWhoWasDeniedOfLate) {
  constexpr std::int64_t kThen = 1'700'000'000'000;
  constexpr std::int64_t kTenMinutes = 600'000;
  const auto store = open();
  const auto deny = [&](const std::string& container, std::int64_t at_ms, const std::string& sandbox) {
    DecidedRow row = denied_row(container);
    row.at_ms = at_ms;
    row.sandbox_id = sandbox;
    return *store->add(row);
  };
  ASSERT_TRUE(store->put_pod(pod_columns("there", "till")).has_value());
  const std::int64_t repeated = deny("repeated", kThen - kTenMinutes - 1, "there");
  ASSERT_TRUE(store->count_repeat(repeated, kThen - 5).has_value());
  ASSERT_TRUE(store->count_repeat(repeated, kThen - 4).has_value());
  deny("old", kThen - kTenMinutes - 1, "there");
  deny("gone", kThen - 3, "no more");
  deny("placed", kThen - 2, "there");
  ASSERT_TRUE(add_with_allocation(*store, exclusive_row("placed", {1})).has_value());
  deny("waits", kThen - 1, "there");
  const auto recent = store->recent_denials(kThen - kTenMinutes);
  ASSERT_TRUE(recent.has_value()) << message(recent);
  std::string told;
  for (const DenialRow& row : *recent)
    told += fmt::format("{} x{} {}{}; ", row.container, row.times, row.last_ms - kThen, row.is_over ? " over" : "");
  EXPECT_EQ(told, "repeated x3 -4; gone x1 -3 over; placed x1 -2 over; waits x1 -1; ");
  EXPECT_EQ(recent->back().reason, "no node has 64 CPUs free");
  EXPECT_EQ(recent->back().pod_name, "till");
}

}  // namespace
}  // namespace topolet::store
