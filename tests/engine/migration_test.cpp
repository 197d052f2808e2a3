#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "core/engine/state/codec.hpp"
#include "store/schema.hpp"
#include "tests/engine/full_values.hpp"
#include "tests/store/scratch.hpp"

namespace topolet::engine {
namespace {

using nlohmann::json;

class MigrationTest : public store::StoreTest {
 protected:
  /// Makes a database of this version of the schema, with one boot and a decision 1.
  void make(std::int64_t version) const {
    std::filesystem::create_directory(directory());
    std::ofstream(file()).flush();
    store::Database database = connect(store::Database::Access::kReadWrite);
    std::vector<store::Migration> steps = store::migrations();
    std::erase_if(steps, [&](const store::Migration& step) { return step.version > version; });
    ASSERT_EQ(steps.back().version, version);
    const Status migrated = migrate(database, steps);
    ASSERT_TRUE(migrated.has_value()) << store::message(migrated);
    run("INSERT INTO boot (boot, boot_id, first_seen_ms) VALUES (1, 'boot-1', 1);"
        "INSERT INTO decided (decision, boot, at_ms, generation, event, holds, pod_uid, pod_namespace, pod_name, "
        "container, attempt, sandbox_id, container_id, runtime_handler, qos, cpu_request_milli, cpu_limit_milli, "
        "memory_request_bytes, memory_limit_bytes, mode, cpus, within, withheld, mems, kubelet_cpus, nodes, reason) "
        "VALUES (1, 1, 1, 5, 'placed', 1, 'uid', 'shop', 'till', 'app', 0, 's1', 'c1', '', 'guaranteed', 1, 1, 1, 1, "
        "'exclusive', '1', '', '', '0', '', '0', 'why')");
  }

  void run(const std::string& sql) const {
    const Status done = connect(store::Database::Access::kReadWrite).execute(sql, "write as an earlier version");
    ASSERT_TRUE(done.has_value()) << store::message(done);
  }

  /// Inserts those of the columns that the version has.
  void put(const std::string& table, const std::string& key, store::Columns columns) const {
    std::set<std::string> known;
    for (const auto& row : rows("SELECT name FROM pragma_table_info('" + table + "')")) known.insert(row[0]);
    std::erase_if(columns, [&](const auto& column) { return known.count(column.first) == 0; });
    std::string names = key;
    std::string values = "1";
    for (const auto& [name, value] : columns) {
      names += ", " + name;
      const auto* text = std::get_if<std::string>(&value);
      std::string quoted;
      if (text != nullptr)
        for (const char c : *text) quoted += c == '\'' ? "''" : std::string(1, c);
      values += text != nullptr ? ", '" + quoted + "'" : fmt::format(", {}", std::get<std::int64_t>(value));
    }
    run(fmt::format("INSERT INTO {} ({}) VALUES ({})", table, names, values));
  }

  /// The one allocation of the database, after it was opened.
  Allocation migrated() const {
    const auto store = open();
    EXPECT_EQ(store->report().set_aside, "") << store->report().set_aside_because;
    const auto allocations = store->allocations();
    EXPECT_TRUE(allocations.has_value()) << message(allocations);
    EXPECT_EQ(allocations->size(), 1U);
    const auto allocation = decode_allocation(allocations->at(0));
    EXPECT_TRUE(allocation.has_value()) << store::message(allocation);
    return *allocation;
  }
};

std::string without(const std::string& object, const std::vector<std::string>& names) {
  json changed = json::parse(object);
  for (const std::string& name : names) changed.erase(name);
  return changed.dump();
}

store::Columns with(store::Columns columns, const std::string& name, const std::string& text) {
  for (auto& [column, value] : columns) {
    if (column == name) value = text;
  }
  return columns;
}

std::string text_of(const store::Columns& columns, const std::string& name) {
  for (const auto& [column, value] : columns) {
    if (column == name) return std::get<std::string>(value);
  }
  return {};
}

/// Equal in every column, and says which is not.
void expect_same(const Allocation& actual, const Allocation& expected) {
  EXPECT_EQ(encode_changes(expected, actual), store::Columns());
  EXPECT_EQ(actual, expected);
}

/// Without its environment, which is never stored.
Allocation stored_allocation() {
  Allocation allocation = full_allocation(1);
  allocation.workload.env.clear();
  return decode_allocation({1,
                            [&] {
                              std::map<std::string, store::Value> columns;
                              for (const auto& [name, value] : encode(allocation)) columns[name] = value;
                              return columns;
                            }()})
      .value();
}

/// As a topoletd had it that knew no plugins of runtimes, and was no such plugin.
store::Columns before_seventeen(const store::Columns& columns) {
  return with(with(columns, "overruled", without(text_of(columns, "overruled"), {"plugin"})), "added",
              without(text_of(columns, "added"), {"memory_policy", "scheduler", "io_priority"}));
}

/// As a topoletd had it that knew no tags.
store::Columns encode_before_sixteen() {
  const store::Columns columns = before_seventeen(encode(full_allocation(1)));
  return with(columns, "added", without(text_of(columns, "added"), {"tags", "unified", "rdt_class"}));
}

void forget_since_sixteen(Allocation& allocation) {
  allocation.workload.tags = {};
  allocation.workload.kubelet_unified = {};
  allocation.placement.added.tags = {};
  allocation.placement.added.unified = {};
  allocation.placement.added.rdt_class = {};
  allocation.placement.added.memory_policy.reset();
  allocation.placement.added.scheduler.reset();
  allocation.placement.added.io_priority.reset();
  allocation.unified = {};
  allocation.adopted = false;
  allocation.last_move.reset();
  if (allocation.overruled) allocation.overruled->plugin.clear();
  allocation.shares_pool_row = false;
  allocation.mems_to_keep = {};
  allocation.widening.reset();
  allocation.moved_from.reset();
  allocation.narrowed_to = {};
  allocation.memory_high = 0;
}

TEST_F(MigrationTest, BringsAnAllocationOfTheFirstVersion) {
  make(10);
  const store::Columns columns = encode_before_sixteen();
  put("allocation", "decision",
      with(columns, "pod_demand",
           without(text_of(columns, "pod_demand"), {"cpu_period_us", "cpu_request_certainty", "oom_score_adj"})));
  Allocation expected = stored_allocation();
  for (placement::Demand* demand : {&expected.workload.demand, &*expected.workload.pod_demand}) {
    demand->cpu_request_certainty = placement::Certainty::kTold;
    demand->cpu_period_us = 0;
    demand->oom_score_adj = 0;
  }
  expected.seen_on = {};
  expected.overlapped = {};
  expected.overruled.reset();
  expected.hand.reset();
  expected.stuck.reset();
  expected.quota = QuotaState::kAsAsked;
  forget_since_sixteen(expected);
  expect_same(migrated(), expected);
}

TEST_F(MigrationTest, BringsWhoIsOverruledInVersionEleven) {
  make(11);
  const store::Columns columns = encode_before_sixteen();
  put("allocation", "decision", with(columns, "overruled", without(text_of(columns, "overruled"), {"cpus", "plugin"})));
  const Allocation allocation = migrated();
  ASSERT_TRUE(allocation.overruled.has_value());
  EXPECT_EQ(allocation.overruled->since, stored_allocation().overruled->since);
  EXPECT_EQ(allocation.overruled->cpus, CpuSet());
}

TEST_F(MigrationTest, BringsAllOfAnAllocationOfVersionThirteen) {
  make(13);
  put("allocation", "decision", encode_before_sixteen());
  Allocation expected = stored_allocation();
  forget_since_sixteen(expected);
  expect_same(migrated(), expected);
}

TEST_F(MigrationTest, BringsAnAllocationOfVersionSixteenThatWasNeverMoved) {
  make(16);
  put("allocation", "decision", before_seventeen(encode(full_allocation(1))));
  Allocation expected = stored_allocation();
  expected.last_move.reset();
  expected.overruled->plugin.clear();
  expected.placement.added.memory_policy.reset();
  expected.placement.added.scheduler.reset();
  expected.placement.added.io_priority.reset();
  expected.shares_pool_row = false;
  expected.mems_to_keep = {};
  expected.widening.reset();
  expected.moved_from.reset();
  expected.narrowed_to = {};
  expected.memory_high = 0;
  expect_same(migrated(), expected);
}

TEST_F(MigrationTest, BringsAnAllocationOfVersionSeventeenThatIsNotBeingMoved) {
  make(17);
  Allocation has_own_row = full_allocation(1);
  has_own_row.shares_pool_row = false;
  store::Columns columns = encode(has_own_row);
  for (auto& [column, value] : columns) {
    if (column == "cpus" || column == "vacating" || column == "generation") column = "own_" + column;
  }
  put("allocation_row", "decision", columns);
  Allocation expected = stored_allocation();
  expected.shares_pool_row = false;
  expected.moved_from.reset();
  expected.narrowed_to = {};
  expected.memory_high = 0;
  expect_same(migrated(), expected);
}

TEST_F(MigrationTest, TellsFromTheAuditWhichContainersWereFound) {
  make(15);
  run("INSERT INTO decided (decision, boot, at_ms, generation, event, holds, pod_uid, pod_namespace, pod_name, "
      "container, attempt, sandbox_id, container_id, runtime_handler, qos, cpu_request_milli, cpu_limit_milli, "
      "memory_request_bytes, memory_limit_bytes, mode, cpus, within, withheld, mems, kubelet_cpus, nodes, reason) "
      "SELECT 2, boot, at_ms, generation, 'adopted', holds, 'uid', pod_namespace, pod_name, 'web', 3, 'sandbox', "
      "container_id, runtime_handler, qos, cpu_request_milli, cpu_limit_milli, memory_request_bytes, "
      "memory_limit_bytes, mode, cpus, within, withheld, mems, kubelet_cpus, nodes, reason FROM decided");
  put("allocation", "decision", encode_before_sixteen());
  EXPECT_TRUE(migrated().adopted);
}

TEST_F(MigrationTest, BringsAPodOfTheFirstVersion) {
  make(10);
  put("pod", "boot", encode(full_pod()));
  const auto pods = open()->pods();
  ASSERT_TRUE(pods.has_value()) << store::message(pods);
  ASSERT_EQ(pods->size(), 1U);
  const auto pod = decode_pod(pods->at(0));
  ASSERT_TRUE(pod.has_value()) << store::message(pod);
  Pod expected = full_pod();
  expected.confined = false;
  expected.made = {};
  expected.dropped_quota.reset();
  expected.waiting = {};
  EXPECT_EQ(*pod, expected);
}

TEST_F(MigrationTest, KnowsNoSizesOfADatabaseThatHasNone) {
  make(16);
  const auto store = open();
  EXPECT_TRUE(store->recent_sizes()->empty());
  EXPECT_TRUE(store->put_recent_sizes({{2, 1000}}).has_value());
}

TEST_F(MigrationTest, RenamesTheCapacitiesThatAreReported) {
  make(13);
  run("INSERT INTO told_capacity VALUES (0, 6000, 9000, 'operator', 1000, 1), (3, 500, 8000, 'nrt', 0, 0)");
  const auto store = open();
  std::vector<ReportedCapacity> read;
  const auto rows = store->capacities();
  ASSERT_TRUE(rows.has_value()) << message(rows);
  for (const store::CapacityRow& row : *rows) read.push_back(decode_capacity(row).value());
  const auto ms = [](int count) { return std::chrono::milliseconds(count); };
  EXPECT_EQ(read, (std::vector<ReportedCapacity>{{0, 6000, ms(9000), "operator", ms(1000), true},
                                                 {3, 500, ms(8000), "nrt", ms(0), false}}));
  EXPECT_EQ(value("SELECT group_concat(name) FROM sqlite_schema WHERE name LIKE '%_capacity'"), "reported_capacity");
}

}  // namespace
}  // namespace topolet::engine
