#include "store/store.hpp"

#include <sys/resource.h>

#include <csignal>

#include "tests/store/scratch.hpp"

namespace topolet {
namespace {

TEST_F(StoreTest, GivesBackWhatIsHeld) {
  DecidedRow row = exclusive_row("app", {2, 3, 6});
  row.withheld = {4, 5};
  row.kubelet_cpus = {0, 1, 2, 3};
  std::int64_t decision = 0;
  {
    const auto store = open();
    const auto added = store->add(row);
    ASSERT_TRUE(added.ok()) << message(added);
    decision = *added;
  }
  const auto live = open()->live();
  ASSERT_TRUE(live.ok()) << message(live);
  ASSERT_EQ(live->size(), 1U);
  const LiveRow& held = live->front();
  EXPECT_EQ(held.decision, decision);
  EXPECT_EQ(held.state, "pending");
  EXPECT_EQ(held.container_id, "");
  EXPECT_EQ(held.pending_since_ms, row.at_ms);
  EXPECT_EQ(held.cpus, row.cpus);
  const DecidedRow& decided = held.decided;
  EXPECT_EQ(decided.at_ms, row.at_ms);
  EXPECT_EQ(decided.generation, row.generation);
  EXPECT_EQ(decided.event, row.event);
  EXPECT_EQ(decided.pod_uid, row.pod_uid);
  EXPECT_EQ(decided.pod_namespace, row.pod_namespace);
  EXPECT_EQ(decided.pod_name, row.pod_name);
  EXPECT_EQ(decided.container, row.container);
  EXPECT_EQ(decided.attempt, row.attempt);
  EXPECT_EQ(decided.sandbox_id, row.sandbox_id);
  EXPECT_EQ(decided.runtime_handler, row.runtime_handler);
  EXPECT_EQ(decided.qos, row.qos);
  EXPECT_EQ(decided.cpu_request_milli, row.cpu_request_milli);
  EXPECT_EQ(decided.cpu_limit_milli, row.cpu_limit_milli);
  EXPECT_EQ(decided.memory_request_bytes, row.memory_request_bytes);
  EXPECT_EQ(decided.memory_limit_bytes, row.memory_limit_bytes);
  EXPECT_EQ(decided.mode, row.mode);
  EXPECT_EQ(decided.cpus, row.cpus);
  EXPECT_EQ(decided.within, row.within);
  EXPECT_EQ(decided.withheld, row.withheld);
  EXPECT_EQ(decided.mems, row.mems);
  EXPECT_EQ(decided.kubelet_cpus, row.kubelet_cpus);
  EXPECT_EQ(decided.nodes, row.nodes);
  EXPECT_EQ(decided.reason, row.reason);
  EXPECT_TRUE(decided.holds);
}

TEST_F(StoreTest, KeepsIntervalsOfHeldCpusButNotOfSharedOnes) {
  const auto store = open();
  DecidedRow exclusive = exclusive_row("app", {0, 1, 2, 64});
  exclusive.withheld = {8, 9};
  DecidedRow reserved = exclusive_row("dns", {10, 12});
  reserved.mode = "reserved";
  ASSERT_TRUE(store->add(exclusive).ok());
  ASSERT_TRUE(store->add(shared_row("log", {3, 4}, {3, 4})).ok());
  ASSERT_TRUE(store->add(reserved).ok());
  const std::vector<std::vector<std::string>> expected{{"1", "exclusive", "0", "2"},
                                                       {"1", "exclusive", "64", "64"},
                                                       {"1", "withheld", "8", "9"},
                                                       {"3", "reserved", "10", "10"},
                                                       {"3", "reserved", "12", "12"}};
  EXPECT_EQ(rows("SELECT decision, kind, first, last FROM held_cpu", 4), expected);
}

TEST_F(StoreTest, BindsAndDoubtsWhatIsLive) {
  const auto store = open();
  const auto decision = store->add(exclusive_row("app", {1}));
  ASSERT_TRUE(decision.ok());
  ASSERT_TRUE(store->add(OutcomeRow{*decision, 2000, "in_doubt", "", 14, "connection lost"}).ok());
  EXPECT_EQ(store->live()->at(0).state, "in_doubt");
  EXPECT_EQ(store->live()->at(0).pending_since_ms, 2000);
  ASSERT_TRUE(store->add(OutcomeRow{*decision, 3000, "bound", "c-9", 0, ""}).ok());
  EXPECT_EQ(store->live()->at(0).state, "bound");
  EXPECT_EQ(store->live()->at(0).container_id, "c-9");
  EXPECT_EQ(column("SELECT state FROM outcome ORDER BY outcome"), "in_doubt,bound");
}

TEST_F(StoreTest, HoldsWhatWasRefusedUntilItIsEnded) {
  const auto store = open();
  const auto decision = store->add(exclusive_row("app", {1}));
  ASSERT_TRUE(decision.ok());
  ASSERT_TRUE(store->add(OutcomeRow{*decision, 2000, "refused", "", 3, "no such image"}).ok());
  ASSERT_EQ(store->live()->size(), 1U);
  EXPECT_EQ(store->live()->at(0).state, "refused");
  ASSERT_TRUE(store->add(EndedRow{*decision, 2000, 6, "refused"}).ok());
  EXPECT_TRUE(store->live()->empty());
  EXPECT_EQ(value("SELECT cause FROM ended"), "refused");
}

TEST_F(StoreTest, EndsWhatIsSuperseded) {
  const auto store = open();
  const auto old = store->add(exclusive_row("app", {1}));
  ASSERT_TRUE(old.ok());
  DecidedRow row = exclusive_row("app", {1, 2});
  row.event = "resized";
  row.generation = 9;
  row.supersedes = *old;
  const auto next = store->add(row);
  ASSERT_TRUE(next.ok()) << message(next);
  ASSERT_EQ(store->live()->size(), 1U);
  EXPECT_EQ(store->live()->at(0).decision, *next);
  EXPECT_EQ(store->live()->at(0).decided.supersedes, *old);
  EXPECT_EQ(rows("SELECT decision, generation, cause FROM ended", 3),
            (std::vector<std::vector<std::string>>{{std::to_string(*old), "9", "superseded"}}));

  const auto again = store->add(row);
  EXPECT_EQ(message(again), "decision 1 holds nothing: it was never made or has ended");
  EXPECT_EQ(value("SELECT count(*) FROM decided"), "2");
}

TEST_F(StoreTest, SaysWhichDecisionDoesNotExist) {
  const auto store = open();
  const auto denied = store->add(denied_row("app"));
  ASSERT_TRUE(denied.ok());
  for (const std::int64_t nothing : {std::int64_t{77}, *denied}) {
    EXPECT_EQ(store->add(EndedRow{nothing, 1, 1, "exited"}).error().code, Code::kNotFound);
    EXPECT_EQ(store->set_live_cpus(nothing, {1}).error().code, Code::kNotFound);
  }
  EXPECT_THAT(message(store->add(OutcomeRow{77, 1, "bound", "c", 0, ""})), ::testing::HasSubstr("no decision 77"));
  EXPECT_THAT(message(store->count_repeat(77, 1)), ::testing::HasSubstr("no decision 77"));
}

TEST_F(StoreTest, AuditsAnOutcomeThatComesAfterTheEnd) {
  const auto store = open();
  const auto decision = store->add(exclusive_row("app", {1}));
  ASSERT_TRUE(store->add(EndedRow{*decision, 2, 6, "pending-timeout"}).ok());
  EXPECT_TRUE(store->add(OutcomeRow{*decision, 3, "bound", "late", 0, ""}).ok());
  EXPECT_TRUE(store->live()->empty());
}

TEST_F(StoreTest, CountsAThousandEqualDenialsInOneRow) {
  const auto store = open();
  const auto decision = store->add(denied_row("app"));
  ASSERT_TRUE(decision.ok());
  for (int i = 1; i < 1000; ++i) ASSERT_TRUE(store->count_repeat(*decision, 1'700'000'000'123 + i).ok());
  EXPECT_TRUE(store->live()->empty());
  EXPECT_EQ(value("SELECT count(*) FROM decided"), "1");
  EXPECT_EQ(rows("SELECT times, first, last FROM denials", 3),
            (std::vector<std::vector<std::string>>{{"1000", "2023-11-14T22:13:20.123Z", "2023-11-14T22:13:21.122Z"}}));
}

TEST_F(StoreTest, MovesSharedCpusWithoutADecision) {
  const auto store = open();
  const auto decision = store->add(shared_row("log", {0, 1, 2, 3}, CpuSet::range(0, 7)));
  ASSERT_TRUE(store->set_live_cpus(*decision, {2, 3}).ok());
  EXPECT_EQ(store->live()->at(0).cpus, (CpuSet{2, 3}));
  EXPECT_EQ(store->live()->at(0).decided.cpus, CpuSet::range(0, 3));
  EXPECT_EQ(value("SELECT count(*) FROM decided"), "1");
}

TEST_F(StoreTest, KeepsOnePoolPerGeneration) {
  const auto store = open();
  ASSERT_TRUE(store->add_pool(3, 10, {0, 1}).ok());
  EXPECT_TRUE(store->add_pool(3, 11, {0, 1}).ok());
  const Status other = store->add_pool(3, 12, {0});
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code, Code::kAlreadyExists);
  EXPECT_EQ(other.error().message, "generation 3 has the pool '0-1' already; '0' needs a generation of its own");
  EXPECT_EQ(rows("SELECT generation, at_ms, cpus FROM pool_version", 3),
            (std::vector<std::vector<std::string>>{{"3", "10", "0-1"}}));
}

TEST_F(StoreTest, KnowsTheHighestGenerationOfAll) {
  const auto store = open();
  EXPECT_EQ(*store->last_generation(), 0U);
  const auto decision = store->add(exclusive_row("app", {1}));
  EXPECT_EQ(*store->last_generation(), 5U);
  ASSERT_TRUE(store->add_pool(7, 1, {0}).ok());
  EXPECT_EQ(*store->last_generation(), 7U);
  ASSERT_TRUE(store->add(EndedRow{*decision, 1, 8, "exited"}).ok());
  EXPECT_EQ(*store->last_generation(), 8U);
}

TEST_F(StoreTest, GivesTheWholeDemandBack) {
  DecidedRow row = exclusive_row("app", {1});
  row.memory_request_estimated = true;
  row.hugepage_limit_bytes = {{"1GB", std::int64_t{1} << 30}, {"2MB", 0}};
  row.settings = {{"cpus", "exclusive"}, {"theirs", "a \"quoted\" word"}};
  row.kubelet_mems = {0, 2};
  ASSERT_TRUE(open()->add(row).ok());
  const auto live = open()->live();
  ASSERT_TRUE(live.ok()) << message(live);
  const DecidedRow& read = live->front().decided;
  EXPECT_TRUE(read.memory_request_estimated);
  EXPECT_EQ(read.hugepage_limit_bytes, row.hugepage_limit_bytes);
  EXPECT_EQ(read.settings, row.settings);
  EXPECT_EQ(read.kubelet_mems, row.kubelet_mems);
  EXPECT_EQ(value("SELECT json_extract(settings, '$.cpus') FROM decided"), "exclusive");
}

TEST_F(StoreTest, KnowsSinceWhenACrashedContainersCpusAreHeld) {
  const auto store = open();
  const auto decision = store->add(exclusive_row("app", {1}));
  ASSERT_TRUE(store->add(OutcomeRow{*decision, 1000, "bound", "c-9", 0, ""}).ok());
  ASSERT_TRUE(store->add(OutcomeRow{*decision, 2000, "crashed", "c-9", 0, "exit code 1"}).ok());
  EXPECT_EQ(store->live()->at(0).state, "crashed");
  EXPECT_EQ(store->live()->at(0).container_id, "c-9");
  EXPECT_EQ(store->live()->at(0).pending_since_ms, 2000);
  EXPECT_EQ(value("SELECT state FROM current_placements"), "crashed");
}

TEST_F(StoreTest, RemembersPodsUntilTheyAreRemoved) {
  const auto store = open();
  ASSERT_TRUE(store->put_pod({"s1", "uid-1", "shop", "till", ""}).ok());
  ASSERT_TRUE(store->put_pod({"s2", "uid-2", "shop", "stock", "kata"}).ok());
  ASSERT_TRUE(store->put_pod({"s1", "uid-1", "shop", "till", "runc"}).ok());
  ASSERT_EQ(store->pods()->size(), 2U);
  EXPECT_EQ(store->pods()->at(0).runtime_handler, "runc");
  EXPECT_TRUE(store->pods()->at(0).nodes.empty());
  ASSERT_TRUE(store->put_pod({"s1", "uid-1", "shop", "till", "runc", {0, 1}}).ok());
  EXPECT_EQ(store->pods()->at(0).nodes, (NodeSet{0, 1}));
  ASSERT_TRUE(store->remove_pod("s1").ok());
  ASSERT_TRUE(store->remove_pod("never seen").ok());
  ASSERT_EQ(store->pods()->size(), 1U);
  EXPECT_EQ(store->pods()->at(0).pod_name, "stock");
}

TEST_F(StoreTest, KeepsBytesThatAreNotText) {
  const auto store = open();
  DecidedRow row = exclusive_row(std::string("a\0b\xff'", 5), {1});
  row.verdicts = VerdictsRow{1, {{"0", 1, false, {{"gpu", "score", 1, "\xff"}}}}, {}, {}, {}};
  ASSERT_TRUE(store->add(row).ok());
  EXPECT_EQ(store->live()->at(0).decided.container, row.container);
  EXPECT_EQ(value("SELECT reason FROM verdict"), "\xef\xbf\xbd");
}

TEST_F(StoreTest, GroupsWritesIntoOneTransaction) {
  const auto store = open();
  ASSERT_TRUE(store->begin().ok());
  EXPECT_EQ(store->begin().error().code, Code::kFailedPrecondition);
  ASSERT_TRUE(store->add(exclusive_row("a", {1})).ok());
  EXPECT_EQ(value("SELECT count(*) FROM decided"), "0");
  ASSERT_TRUE(store->commit().ok());
  EXPECT_EQ(value("SELECT count(*) FROM decided"), "1");
  EXPECT_EQ(store->commit().error().code, Code::kFailedPrecondition);

  ASSERT_TRUE(store->begin().ok());
  ASSERT_TRUE(store->add(exclusive_row("b", {2})).ok());
  store->roll_back();
  ASSERT_TRUE(store->add(exclusive_row("c", {3})).ok());
  EXPECT_EQ(column("SELECT container FROM decided ORDER BY decision"), "a,c");
}

TEST_F(StoreTest, DropsAWholeGroupWhenOneOfItFails) {
  const auto store = open();
  ASSERT_TRUE(store->begin().ok());
  ASSERT_TRUE(store->add(exclusive_row("a", {1})).ok());
  ASSERT_FALSE(store->add(EndedRow{77, 1, 1, "exited"}).ok());
  const auto after = store->add(exclusive_row("b", {2}));
  EXPECT_THAT(message(after), ::testing::HasSubstr("decision 77 holds nothing"));
  EXPECT_THAT(message(store->commit()), ::testing::HasSubstr("decision 77 holds nothing"));
  EXPECT_TRUE(store->live()->empty());
  EXPECT_TRUE(store->add(exclusive_row("c", {3})).ok());
  EXPECT_EQ(column("SELECT container FROM decided ORDER BY decision"), "c");
}

/// While it lives, this process cannot write beyond the first `bytes` of any file.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
};

TEST_F(StoreTest, SurvivesWritesThatFail) {
  const auto store = open();
  ASSERT_TRUE(store->add(exclusive_row("before", {1})).ok());
  bool single_failed = false;
  Status group;
  {
    const FileSizeLimit full(4096);
    const auto single = store->add(exclusive_row("lost", {2}));
    single_failed = !single.ok() && single.error().code == Code::kUnavailable &&
                    single.error().message.find(file().string()) != std::string::npos;
    if (Status begun = store->begin(); begun) {
      static_cast<void>(store->add(exclusive_row("lost", {3})));
      static_cast<void>(store->add(exclusive_row("lost", {4})));
      group = store->commit();
    }
  }
  EXPECT_TRUE(single_failed);
  EXPECT_FALSE(group.ok());
  const auto after = store->add(exclusive_row("after", {5}));
  EXPECT_TRUE(after.ok()) << message(after);
  EXPECT_EQ(column("SELECT container FROM decided ORDER BY decision"), "before,after");
  EXPECT_EQ(store->live()->size(), 2U);
}

}  // namespace
}  // namespace topolet
