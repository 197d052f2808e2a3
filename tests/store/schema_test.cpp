#include "store/schema.hpp"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <map>

#include "tests/store/scratch.hpp"

namespace topolet::store {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string text_of(const fs::path& path) {
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::vector<fs::path> example_queries() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(TOPOLET_STORE_DIR "/queries")) files.push_back(entry.path());
  return files;
}

class SchemaTest : public StoreTest {
 protected:
  Database connect_to_empty() const {
    fs::create_directory(directory());
    std::ofstream(file()).flush();
    return connect(Database::Access::kReadWrite);
  }

  /// Makes a database of an earlier version.
  void make(std::int64_t version) const {
    Database database = connect_to_empty();
    std::vector<Migration> earlier = migrations();
    std::erase_if(earlier, [&](const Migration& step) { return step.version > version; });
    ASSERT_EQ(earlier.back().version, version);
    const Status migrated = migrate(database, earlier);
    ASSERT_TRUE(migrated.has_value()) << message(migrated);
  }

  void write(const std::string& sql) const {
    const Status written = connect(Database::Access::kReadWrite).execute(sql, "write as an earlier version");
    ASSERT_TRUE(written.has_value()) << message(written);
  }

  /// Numbered from 1, each a second after the one before.
  void write_decisions(const std::vector<std::string>& events) const {
    std::string sql = "INSERT INTO boot (boot, boot_id, first_seen_ms, generation) VALUES (1, 'boot-1', 1, 2);";
    int decision = 0;
    for (const std::string& event : events) {
      ++decision;
      sql += fmt::format(
          "INSERT INTO decided (decision, boot, at_ms, generation, event, holds, pod_uid, pod_namespace, pod_name, "
          "container, attempt, sandbox_id, container_id, runtime_handler, qos, cpu_request_milli, cpu_limit_milli, "
          "memory_request_bytes, memory_limit_bytes, mode, cpus, within, withheld, mems, kubelet_cpus, nodes, reason) "
          "VALUES ({0}, 1, {0}000, {0}, '{1}', {2}, 'uid-{0}', 'shop', 'till-{0}', 'app', 0, 's1', 'c1', '', "
          "'guaranteed', 1000, 1000, 0, 0, 'exclusive', '1', '', '', '', '', '0', 'why');",
          decision, event, event == "placed" ? 1 : 0);
    }
    write(sql);
  }
};

TEST_F(SchemaTest, GrowsFromNothingToTheNewest) {
  Database database = connect_to_empty();
  ASSERT_TRUE(check_writable(database).has_value());
  const Status migrated = migrate(database);
  ASSERT_TRUE(migrated.has_value()) << message(migrated);
  EXPECT_EQ(*database.integer("PRAGMA user_version", "read"), migrations().back().version);
  EXPECT_EQ(*database.integer("PRAGMA application_id", "read"), kApplicationId);
  EXPECT_TRUE(check_writable(database).has_value());
  EXPECT_TRUE(migrate(database).has_value());
}

TEST_F(SchemaTest, TakesOnlyTheStepsItHasNotSeen) {
  { const auto store = open(); }
  Database database = connect(Database::Access::kReadWrite);
  std::vector<Migration> steps = migrations();
  const std::int64_t next = steps.back().version + 1;
  steps.push_back({next, "ALTER TABLE decided ADD COLUMN colour TEXT NOT NULL DEFAULT 'grey'"});
  const Status migrated = migrate(database, steps);
  ASSERT_TRUE(migrated.has_value()) << message(migrated);
  EXPECT_EQ(*database.integer("PRAGMA user_version", "read"), next);
  EXPECT_EQ(*database.integer("SELECT count(colour) FROM decided", "read"), 0);
  EXPECT_THAT(message(check_writable(database)), HasSubstr("knows only versions up to 21"));
}

TEST_F(SchemaTest, KeepsTheAuditOfTheFirstVersion) {
  make(10);
  write_decisions({"placed", "denied"});
  const auto store = open("boot-1");
  EXPECT_EQ(store->report().set_aside, "");
  EXPECT_EQ(
      rows("SELECT decision, event, cpus, cpu_request_certainty, oom_score_adj FROM decided", 5),
      (std::vector<std::vector<std::string>>{{"1", "placed", "1", "told", "0"}, {"2", "denied", "1", "told", "0"}}));
  EXPECT_EQ(*store->last_decision(), 2);
  EXPECT_EQ(*store->last_generation(), 2U);
  EXPECT_EQ(store->report().newest_lost_generation, 0U);
}

TEST_F(SchemaTest, KeepsReportedCapacitiesOverAReboot) {
  {
    const auto store = open("boot-1");
    EXPECT_TRUE(store->capacities()->empty());
    ASSERT_TRUE(store->put_capacity(1, {{"milli", std::int64_t{5}}, {"until_ms", std::int64_t{7}}, {"source", "host"}})
                    .has_value());
    ASSERT_TRUE(store->put_capacity(0, {{"milli", std::int64_t{9}}, {"until_ms", std::int64_t{8}}, {"source", "host"}})
                    .has_value());
    ASSERT_TRUE(
        store->put_capacity(1, {{"milli", std::int64_t{6}}, {"until_ms", std::int64_t{8}}, {"source", "operator"}})
            .has_value());
    ASSERT_TRUE(store->remove_capacity(0).has_value());
  }
  const auto store = open("boot-2");
  const auto capacities = store->capacities();
  ASSERT_TRUE(capacities.has_value()) << message(capacities);
  ASSERT_EQ(capacities->size(), 1U);
  EXPECT_EQ(capacities->front().node, 1U);
  EXPECT_EQ(shown(capacities->front().columns, "milli"), "6");
  EXPECT_EQ(shown(capacities->front().columns, "source"), "operator");
  EXPECT_EQ(shown(capacities->front().columns, "below_since_ms"), "0");
}

TEST_F(SchemaTest, CallsNothingExclusiveThatWasSeenNotToBe) {
  const auto store = open("boot-1");
  for (const char* column : {"", "overruled", "seen_on", "overlapped"}) {
    DecidedRow row = exclusive_row("a", {2});
    const auto decision = store->add(row);
    ASSERT_TRUE(decision.has_value()) << message(decision);
    Columns columns{{"state", std::string("bound")},
                    {"container_id", std::string("c")},
                    {"cpus", std::string("2")},
                    {"pending_since_ms", std::int64_t{0}}};
    const std::string value = column == std::string("overruled") ? R"({"since_ms":1000,"ours_since_ms":0})" : "3";
    if (*column != '\0') columns.emplace_back(column, value);
    ASSERT_TRUE(store->put_allocation(*decision, columns).has_value());
  }
  EXPECT_EQ(column("SELECT mode FROM current_placements ORDER BY decision"), "exclusive,overruled,drifted,overlapped");
  EXPECT_EQ(column("SELECT overruled_since || seen_on || overlapped FROM current_placements ORDER BY decision"),
            "1970-01-01T00:00:01.000Z,3,3");
}

TEST_F(SchemaTest, CompletesAHistoryThatIsNotComplete) {
  make(14);
  write_decisions({"placed", "placed", "placed", "denied", "placed", "placed", "placed"});
  std::string sql =
      "DELETE FROM pod_history; DELETE FROM event_history; INSERT INTO backfill VALUES ('decided', 2, 6);";
  for (const int decision : {1, 2, 3, 5, 6}) {
    sql += fmt::format("INSERT INTO ended VALUES ({0}, {0}000 + (1 << {0}), {0}, 'exited');", decision);
    sql += fmt::format(
        "INSERT INTO outcome (decision, at_ms, state, container_id, code, message) "
        "VALUES ({0}, {0}001, '{1}', 'c', 0, '');",
        decision, decision == 5 ? "crashed" : "bound");
  }
  sql += "DELETE FROM event_history; UPDATE backfill SET next = 2;";
  write(sql);
  const auto store = open("boot-1");
  EXPECT_EQ(store->report().set_aside, "") << store->report().set_aside_because;
  EXPECT_EQ(column("SELECT decision FROM pod_history ORDER BY decision"), "2,3,4,5,6");
  EXPECT_EQ(rows("SELECT event, at_ms, decision FROM event_history ORDER BY decision", 3),
            (std::vector<std::vector<std::string>>{{"denied", "4000", "4"}, {"crashed", "5001", "5"}}));
  EXPECT_EQ(
      column("SELECT decision || ':' || from_ms || '-' || until_ms || '^' || span FROM lifetime ORDER BY decision"),
      "2:2000-2004^2,3:3000-3008^3,5:5000-5032^5,6:6000-6064^6");
  EXPECT_EQ(value("SELECT count(*) FROM sqlite_schema WHERE name = 'backfill'"), "0");
}

TEST_F(SchemaTest, ListsTheDevicesOfContainers) {
  const auto store = open("boot-1");
  TopologyRow machine;
  machine.devices = {{"mlx5_0", "0000:65:00.0", "openfabrics", {1}}, {"pmem0", "", "block", {0, 1}}};
  ASSERT_TRUE(store->add(machine).has_value());
  EXPECT_EQ(rows("SELECT topology, name, address, kind, nodes FROM topology_device", 5),
            (std::vector<std::vector<std::string>>{{"1", "mlx5_0", "0000:65:00.0", "openfabrics", "1"},
                                                   {"1", "pmem0", "", "block", "0-1"}}));
  ASSERT_TRUE(store->add(exclusive_row("none", {1})).has_value());
  DecidedRow row = exclusive_row("new", {2});
  row.devices = R"([{"name":"/dev/mlx5_0","address":"0000:65:00.0","nodes":"1"}])";
  ASSERT_TRUE(store->add(row).has_value());
  EXPECT_EQ(column("SELECT container || ' ' || name || ' ' || nodes FROM container_device"), "new /dev/mlx5_0 1");
}

TEST_F(SchemaTest, TellsTheCpusOfTheMachineAsItWasRecordedLastInThisBoot) {
  {
    const auto store = open("boot-1");
    EXPECT_EQ(*store->last_allowed(), std::nullopt);
    TopologyRow machine;
    for (const CpuSet& allowed : {CpuSet{0, 1}, CpuSet{0, 1, 5}}) {
      machine.allowed = allowed;
      ASSERT_TRUE(store->add(machine).has_value());
      EXPECT_EQ(*store->last_allowed(), allowed);
    }
  }
  EXPECT_EQ(*open("boot-1")->last_allowed(), (CpuSet{0, 1, 5}));
  EXPECT_EQ(*open("boot-2")->last_allowed(), std::nullopt);
}

TEST_F(SchemaTest, RemembersTheSizesOfContainersOverAReboot) {
  {
    const auto store = open("boot-1");
    ASSERT_TRUE(store->put_recent_sizes({{8, 1000}, {2, 5000}}).has_value());
    ASSERT_TRUE(store->put_recent_sizes({{4, 7000}, {8, 1000}}).has_value());
  }
  const auto sizes = open("boot-2")->recent_sizes();
  ASSERT_TRUE(sizes.has_value()) << message(sizes);
  ASSERT_EQ(sizes->size(), 2U);
  EXPECT_EQ((std::pair{sizes->at(0).cpus, sizes->at(0).counted_ms}), (std::pair{4U, std::int64_t{7000}}));
  EXPECT_EQ((std::pair{sizes->at(1).cpus, sizes->at(1).counted_ms}), (std::pair{8U, std::int64_t{1000}}));
}

TEST_F(SchemaTest, StaysAtTheVersionBeforeAStepThatFails) {
  Database database = connect_to_empty();
  const std::vector<Migration> steps{{1, "CREATE TABLE one (x)"}, {2, "CREATE TABLE two (x); CREATE TABLE one (x)"}};
  const Status migrated = migrate(database, steps);
  EXPECT_THAT(message(migrated), HasSubstr("cannot bring the schema to version 2 in '" + file().string() + "'"));
  EXPECT_EQ(*database.integer("PRAGMA user_version", "read"), 1);
  EXPECT_EQ(*database.text("SELECT group_concat(name) FROM sqlite_schema", "read"), "one");
  EXPECT_FALSE(database.in_transaction());
}

class AppendOnlyTest : public SchemaTest {
 protected:
  AppendOnlyTest() {
    const auto store = open();
    const auto first = add_with_allocation(*store, exclusive_row("app", {1}));
    EXPECT_TRUE(store->add(OutcomeRow{*first, 1, "bound", "c", 0, ""}).has_value());
    EXPECT_TRUE(store->add(EndedRow{*first, 1, 6, "exited"}).has_value());
    const auto denied = store->add(denied_row("huge"));
    EXPECT_TRUE(store->count_repeat(*denied, 2).has_value());
    EXPECT_TRUE(add_with_allocation(*store, exclusive_row("held", {2})).has_value());
    EXPECT_TRUE(store->add(PoolRow{5, 1, {0}}).has_value());
  }

  std::string refusal(const std::string& sql) const {
    Database database = connect(Database::Access::kReadWrite);
    EXPECT_TRUE(database.execute("PRAGMA foreign_keys = ON", "guard").has_value());
    return message(database.execute(sql, "tamper"));
  }
};

TEST_F(AppendOnlyTest, RefusesToChangeAudit) {
  const std::map<std::string, std::string> columns{{"decided", "reason = 'other'"},
                                                   {"outcome", "message = 'other'"},
                                                   {"ended", "cause = 'other'"},
                                                   {"held_cpu", "last = 99"},
                                                   {"pool_version", "cpus = '0-99'"}};
  for (const auto& [table, change] : columns) {
    const std::string never_changed = "rows of " + table + " are never changed";
    EXPECT_THAT(refusal("UPDATE " + table + " SET " + change), HasSubstr(never_changed));
    EXPECT_THAT(refusal("UPDATE OR REPLACE " + table + " SET " + change), HasSubstr(never_changed));
    EXPECT_THAT(refusal("UPDATE OR IGNORE " + table + " SET " + change), HasSubstr(never_changed));
    EXPECT_THAT(refusal("INSERT OR REPLACE INTO " + table + " SELECT * FROM " + table),
                HasSubstr("rows of " + table + " are never replaced"));
  }
}

TEST_F(AppendOnlyTest, RefusesToDeleteAudit) {
  for (const std::string table : {"decided", "outcome", "ended", "held_cpu", "pool_version"}) {
    const bool has_own_mark = table == "decided" || table == "pool_version";
    const std::string kept =
        "rows of " + table +
        (has_own_mark ? " above the retention mark are never deleted" : " are never deleted before their decision");
    EXPECT_THAT(refusal("DELETE FROM " + table), HasSubstr(kept));
    EXPECT_THAT(refusal("DELETE FROM retention; DELETE FROM " + table), HasSubstr(kept));
  }
}

TEST_F(AppendOnlyTest, DeletesUpToTheRetentionMark) {
  EXPECT_EQ(refusal("UPDATE retention SET mark = 2 WHERE subject = 'decision'"), "");
  EXPECT_EQ(refusal("DELETE FROM decided WHERE decision <= 2"), "");
  for (const char* table : {"decided", "held_cpu"}) {
    EXPECT_EQ(column(std::string("SELECT decision FROM ") + table), "3") << table;
  }
  for (const char* table : {"outcome", "ended", "repeat"}) {
    EXPECT_EQ(value(std::string("SELECT count(*) FROM ") + table), "0") << table;
  }
  EXPECT_THAT(refusal("DELETE FROM decided"), HasSubstr("above the retention mark"));
}

TEST_F(AppendOnlyTest, DeletesWhatHasEndedBeforeTheMark) {
  EXPECT_EQ(column("SELECT decision FROM pod_history ORDER BY decision"), "1,2,3");
  EXPECT_EQ(column("SELECT decision FROM lifetime"), "1");
  // Decision 1 ended at 1, denial 2 was last repeated at 2, and 3 is held.
  EXPECT_EQ(refusal("UPDATE retention SET mark = 2 WHERE subject = 'ended_ms'"), "");
  EXPECT_THAT(refusal("DELETE FROM decided WHERE decision = 2"), HasSubstr("above the retention mark"));
  EXPECT_THAT(refusal("DELETE FROM ended WHERE decision = 1"), HasSubstr("never deleted before their decision"));
  EXPECT_EQ(refusal("DELETE FROM decided WHERE decision = 1"), "");
  EXPECT_EQ(column("SELECT decision FROM decided"), "2,3");
  for (const char* index : {"pod_history", "event_history", "lifetime"}) {
    EXPECT_EQ(value(std::string("SELECT count(*) FROM ") + index + " WHERE decision = 1"), "0") << index;
  }
  EXPECT_EQ(value("SELECT count(*) FROM ended"), "0") << "what belongs to a decision goes with it";
  EXPECT_EQ(refusal("UPDATE retention SET mark = 1800000000000 WHERE subject = 'ended_ms'"), "");
  EXPECT_EQ(refusal("DELETE FROM decided WHERE decision = 2"), "");
  EXPECT_EQ(column("SELECT decision FROM event_history"), "") << "it was a denial";
  EXPECT_THAT(refusal("DELETE FROM decided WHERE decision = 3"), HasSubstr("above the retention mark"));
}

TEST_F(AppendOnlyTest, KeepsWhatIsStillHeldWhateverTheMark) {
  EXPECT_EQ(refusal("UPDATE retention SET mark = 99"), "");
  EXPECT_THAT(refusal("DELETE FROM decided"), HasSubstr("FOREIGN KEY constraint failed"));
  EXPECT_EQ(refusal("DELETE FROM decided WHERE decision NOT IN (SELECT decision FROM live)"), "");
  EXPECT_EQ(refusal("DELETE FROM pool_version"), "");
}

TEST_F(AppendOnlyTest, NeverGivesANumberTwice) {
  EXPECT_EQ(refusal("UPDATE retention SET mark = 99; DELETE FROM allocation_row; DELETE FROM decided"), "");
  EXPECT_EQ(*open()->add(denied_row("app")), 4);
}

/// The part of README.md that is about one table or view.
std::string section_of(const std::string& readme, const std::string& name) {
  const auto begin = readme.find("\n### " + name + "\n");
  if (begin == std::string::npos) return "";
  return readme.substr(begin, readme.find("\n##", begin + 1) - begin);
}

TEST_F(SchemaTest, IsDocumentedToTheLastColumn) {
  { const auto store = open(); }
  const std::string readme = text_of(TOPOLET_STORE_DIR "/README.md");
  const auto names =
      rows("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'");
  ASSERT_GT(names.size(), 10U);
  for (const auto& name : names) {
    // The table whose columns a view shows is described with that.
    const std::string section =
        section_of(readme, name[0]) + (name[0] == "allocation_row" ? section_of(readme, "allocation") : "");
    EXPECT_NE(section_of(readme, name[0]), "") << name[0];
    for (const auto& column : rows("SELECT name FROM pragma_table_info('" + name[0] + "')")) {
      EXPECT_THAT(section, HasSubstr("`" + column[0] + "`")) << name[0];
    }
  }
}

TEST_F(SchemaTest, DocumentsEveryEventOfTheAudit) {
  const std::string section = section_of(text_of(TOPOLET_STORE_DIR "/README.md"), "decided");
  const std::string words = text_of(TOPOLET_STORE_DIR "/../core/engine/state/audit_event.cpp");
  std::size_t documented = 0;
  for (std::size_t begin = words.find(", \""); begin != std::string::npos; begin = words.find(", \"", begin + 1)) {
    const std::string word = words.substr(begin + 3, words.find('"', begin + 3) - begin - 3);
    EXPECT_THAT(section, HasSubstr("`" + word + "`"));
    ++documented;
  }
  EXPECT_GT(documented, 15U);
}

TEST_F(SchemaTest, DocumentsEveryReasonCode) {
  const std::string readme = text_of(TOPOLET_STORE_DIR "/README.md");
  const std::string codes = text_of(TOPOLET_STORE_DIR "/../core/placement/reason_codes.hpp");
  std::size_t documented = 0;
  for (std::size_t begin = codes.find(" = \""); begin != std::string::npos; begin = codes.find(" = \"", begin + 1)) {
    const std::string code = codes.substr(begin + 4, codes.find('"', begin + 4) - begin - 4);
    EXPECT_THAT(readme, HasSubstr("`" + code + "`"));
    ++documented;
  }
  EXPECT_GT(documented, 20U);
}

TEST_F(SchemaTest, HasExampleQueriesThatRun) {
  {
    const auto store = open();
    DecidedRow row = exclusive_row("app", {1});
    row.verdicts = R"({"candidates":1,"best":[{"nodes":"0","score":1,"words":[["numa","score",1,"fits"],)"
                   R"(["gpu","score",-5,"node 0: no GPU is local, distance 21; node 1: 1 of 1 GPU is local"]]}]})";
    const auto decision = add_with_allocation(*store, row);
    ASSERT_TRUE(store->add(OutcomeRow{*decision, row.at_ms + 5, "bound", "c", 0, ""}).has_value());
    ASSERT_TRUE(store->add(denied_row("huge")).has_value());
  }
  const std::string readme = text_of(TOPOLET_STORE_DIR "/README.md");
  ASSERT_GE(example_queries().size(), 5U);
  for (const fs::path& path : example_queries()) {
    EXPECT_THAT(readme, HasSubstr("`queries/" + path.filename().string() + "`"));
    // Queries with functions of `topolet query` are tried with that.
    const std::string sql = text_of(path);
    const auto has = [&sql](const char* function) { return sql.find(function) != std::string::npos; };
    if (has("held_at(") || has("cpus_overlap(") || has("judged_in(")) continue;
    EXPECT_FALSE(rows(sql).empty()) << path;
  }
}

TEST_F(SchemaTest, FindsWithoutReadingEverything) {
  { const auto store = open(); }
  const std::vector<std::string> searches{
      "SELECT * FROM decided WHERE pod_uid = 'u' AND container = 'c'",
      "SELECT * FROM decided WHERE container_id = 'c'",
      "SELECT * FROM outcome WHERE container_id = 'c'",
      "SELECT * FROM current_placements",
      "SELECT * FROM live WHERE container_id = 'c'",
      "SELECT * FROM decided WHERE decision IN (SELECT decision FROM pod_history WHERE pod_name = 'p')",
      "SELECT * FROM decided WHERE decision IN (SELECT decision FROM event_history WHERE event = 'denied' AND at_ms > "
      "5)",
      "SELECT * FROM audit WHERE at_ms > 5",
      "SELECT * FROM decision WHERE pod_uid = 'u'",
      "SELECT * FROM verdict WHERE decision = 1",
      "SELECT * FROM live JOIN container_device USING (decision) WHERE live.container_id = 'c'",
  };
  for (const std::string& search : searches) {
    for (const auto& row : rows("EXPLAIN QUERY PLAN " + search, 4)) {
      EXPECT_THAT(row[3], ::testing::Not(::testing::MatchesRegex("SCAN (d|e|o|decided|outcome|ended|live)( .*)?")))
          << search;
    }
  }
}

}  // namespace
}  // namespace topolet::store
