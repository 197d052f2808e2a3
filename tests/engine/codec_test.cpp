#include "core/engine/state/codec.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/engine/full_values.hpp"

namespace topolet::engine {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

std::map<std::string, store::Value> map_of(const store::Columns& columns) { return {columns.begin(), columns.end()}; }

std::set<std::string> names_of(const store::Columns& columns) {
  std::set<std::string> names;
  for (const auto& [name, value] : columns) names.insert(name);
  return names;
}

std::unique_ptr<store::Store> in_memory() {
  auto store = store::Store::open_in_memory("boot", 0);
  EXPECT_TRUE(store.has_value());
  return *std::move(store);
}

std::int64_t decide_on(store::Store& store) {
  store::DecidedRow row;
  row.event = "placed";
  row.mode = "shared";
  const auto decision = store.add(row);
  EXPECT_TRUE(decision.has_value());
  return *decision;
}

/// As a store gives it back.
store::AllocationRow stored(store::Store& store, const Allocation& allocation) {
  const store::WholePoolRow shared{allocation.placement.cpus, allocation.vacating, allocation.generation};
  EXPECT_TRUE(!allocation.shares_pool_row || store.put_whole_pool(shared).has_value());
  EXPECT_TRUE(store.put_allocation(allocation.decision, encode(allocation)).has_value());
  const auto rows = store.allocations();
  EXPECT_TRUE(rows.has_value());
  return rows->empty() ? store::AllocationRow() : rows->back();
}

TEST(Codec, GivesBackAllOfAnAllocationButItsEnvironment) {
  const auto store = in_memory();
  decide_on(*store);
  Allocation allocation = full_allocation(decide_on(*store));
  const auto decoded = decode_allocation(stored(*store, allocation));
  ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
  allocation.workload.env.clear();
  EXPECT_EQ(*decoded, allocation);
}

TEST(Codec, GivesBackAnEmptyAllocation) {
  const auto store = in_memory();
  Allocation allocation;
  allocation.decision = decide_on(*store);
  const auto decoded = decode_allocation(stored(*store, allocation));
  ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
  EXPECT_EQ(*decoded, allocation);
}

TEST(Codec, GivesBackAllOfAPod) {
  const auto store = in_memory();
  ASSERT_TRUE(store->put_pod(encode(full_pod())).has_value());
  const auto rows = store->pods();
  ASSERT_TRUE(rows.has_value());
  ASSERT_EQ(rows->size(), 1U);
  const auto decoded = decode_pod(rows->front());
  ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
  EXPECT_EQ(*decoded, full_pod());
}

TEST(Codec, EveryColumnIsOneThatTheFieldsFill) {
  const auto store = in_memory();
  const Allocation full = full_allocation(decide_on(*store));
  const std::set<std::string> encoded = names_of(encode(full));
  for (const auto& [column, value] : stored(*store, full).columns) {
    // As the row has it for which another may stand.
    const bool is_own = column.rfind("own_", 0) == 0;
    EXPECT_EQ(encoded.count(is_own ? column.substr(4) : column), 1U) << column;
  }
  const auto empty = map_of(encode(Allocation()));
  for (const auto& [column, value] : encode(full)) EXPECT_NE(value, empty.at(column)) << column;
  const auto empty_pod = map_of(encode(Pod()));
  for (const auto& [column, value] : encode(full_pod())) EXPECT_NE(value, empty_pod.at(column)) << column;
}

TEST(Codec, KeepsNoEnvironment) {
  for (const auto& [column, value] : encode(full_allocation(1))) {
    const auto* text = std::get_if<std::string>(&value);
    EXPECT_FALSE(text != nullptr && text->find("secret") != std::string::npos) << column;
  }
}

store::AllocationRow allocation_row_with(const std::string& column, const store::Value& value) {
  store::AllocationRow row{7, map_of(encode(Allocation()))};
  row.columns[column] = value;
  return row;
}

TEST(Codec, WritesOfAChangeJustTheColumnsThatDiffer) {
  const Allocation empty;
  EXPECT_THAT(encode_changes(empty, empty), IsEmpty());
  for (const auto& [column, value] : encode(full_allocation(1))) {
    store::AllocationRow row = allocation_row_with(column, value);
    row.decision = 0;
    const auto changed = decode_allocation(row);
    ASSERT_TRUE(changed.has_value()) << column;
    std::set<std::string> expected;
    if (*changed != empty) expected.insert(column);
    // The columns that people read in the table follow from the phase and its times.
    if (column == "phase") expected.insert({"state", "pending_since_ms"});
    if (column == "phase_since_ms") expected.insert({"state", "pending_since_ms"});
    EXPECT_EQ(names_of(encode_changes(empty, *changed)), expected) << column;
  }
  EXPECT_EQ(names_of(encode_changes(full_allocation(1), empty)), names_of(encode(empty)));
}

TEST(Codec, UpdatesARowToWhatTheAllocationIsNow) {
  const auto store = in_memory();
  Allocation before;
  before.decision = decide_on(*store);
  stored(*store, before);
  Allocation after = full_allocation(before.decision);
  after.shares_pool_row = false;
  ASSERT_TRUE(store->update_allocation(before.decision, encode_changes(before, after)).has_value());
  after.workload.env.clear();
  EXPECT_EQ(*decode_allocation(store->allocations()->front()), after);
  ASSERT_TRUE(store->update_allocation(before.decision, encode_changes(after, before)).has_value());
  EXPECT_EQ(*decode_allocation(store->allocations()->front()), before);
}

TEST(Codec, WritesNothingOfAContainerThatFollowsTheWholePool) {
  Allocation before = full_allocation(1);
  Allocation after = before;
  after.placement.cpus = CpuSet{7};
  after.vacating = CpuSet{1, 2};
  after.generation = 99;
  EXPECT_THAT(encode_changes(before, after), IsEmpty());
  after.reason = "other";
  EXPECT_THAT(names_of(encode_changes(before, after)), ::testing::ElementsAre("reason"));
  after = before;
  after.shares_pool_row = false;
  EXPECT_EQ(names_of(encode_changes(before, after)),
            (std::set<std::string>{"cpus", "vacating", "generation", "shares_pool_row"}))
      << "its own row does not have them";
}

TEST(Codec, TellsPeopleWhatADecisionIsIn) {
  Allocation allocation = full_allocation(1);
  const auto derived_columns = [&](Phase phase) {
    allocation.phase = phase;
    const auto columns = map_of(encode(allocation));
    return std::pair(std::get<std::string>(columns.at("state")),
                     std::get<std::int64_t>(columns.at("pending_since_ms")));
  };
  const std::int64_t since = allocation.phase_since.count();
  EXPECT_THAT(derived_columns(Phase::kPending), Pair("pending", since));
  EXPECT_THAT(derived_columns(Phase::kInDoubt), Pair("in_doubt", allocation.doubt_since.count()));
  for (const Phase phase : {Phase::kCreated, Phase::kStarting, Phase::kRunning}) {
    EXPECT_THAT(derived_columns(phase), Pair("bound", since));
  }
  EXPECT_THAT(derived_columns(Phase::kCrashed), Pair("crashed", since));
}

TEST(Codec, NamesTheColumnThatCannotBeRead) {
  const store::AllocationRow row{7, map_of(encode(full_allocation(7)))};
  const std::set<std::string> derived{"state", "pending_since_ms"};
  for (const auto& [column, value] : row.columns) {
    if (derived.count(column) != 0) continue;
    store::AllocationRow damaged = row;
    const bool is_text = std::holds_alternative<std::string>(value);
    damaged.columns[column] = is_text ? store::Value(std::int64_t{1}) : store::Value(std::string("many"));
    const auto decoded = decode_allocation(damaged);
    ASSERT_FALSE(decoded.has_value()) << column;
    EXPECT_EQ(decoded.error().code, Code::kDataLoss);
    EXPECT_THAT(decoded.error().message, AllOf(HasSubstr("decision 7"), HasSubstr("column " + column)));
  }
}

TEST(Codec, NamesTheColumnWhoseTextMakesNoSense) {
  for (const char* column : {"qos", "mode", "phase", "cpus", "mems", "hugepages", "devices", "settings", "pod_demand",
                             "added", "preferred"}) {
    const auto decoded = decode_allocation(allocation_row_with(column, "[{"));
    ASSERT_FALSE(decoded.has_value()) << column;
    EXPECT_EQ(decoded.error().code, Code::kDataLoss);
    EXPECT_THAT(decoded.error().message, HasSubstr(std::string("column ") + column));
  }
  for (const char* column : {"ready", "nodes", "annotations", "former", "denied"}) {
    store::PodRow row = map_of(encode(Pod()));
    row[column] = std::string("[{");
    const auto decoded = decode_pod(row);
    ASSERT_FALSE(decoded.has_value()) << column;
    EXPECT_EQ(decoded.error().code, Code::kDataLoss);
    EXPECT_THAT(decoded.error().message, HasSubstr(std::string("column ") + column));
  }
}

TEST(Codec, NamesTheColumnWhoseNumberTheFieldCannotHold) {
  const auto read = [](const char* column, std::int64_t number) {
    return decode_allocation(allocation_row_with(column, number));
  };
  for (const std::int64_t attempt : {std::int64_t{-1}, std::int64_t{1} << 32}) {
    const auto decoded = read("attempt", attempt);
    ASSERT_FALSE(decoded.has_value()) << attempt;
    EXPECT_EQ(decoded.error().message, "decision 7: column attempt: " + std::to_string(attempt) + " is out of range");
  }
  EXPECT_EQ(read("attempt", 0xffffffff)->workload.key.attempt, 0xffffffff);
  for (const std::int64_t flag : {-1, 2}) {
    const auto decoded = read("conflict", flag);
    ASSERT_FALSE(decoded.has_value()) << flag;
    EXPECT_EQ(decoded.error().message, "decision 7: column conflict: " + std::to_string(flag) + " is neither 0 nor 1");
  }
}

TEST(Codec, NeedsEveryColumnButNoMore) {
  store::AllocationRow row{5, map_of(encode(full_allocation(5)))};
  row.columns["unheard-of"] = std::int64_t{1};
  EXPECT_TRUE(decode_allocation(row).has_value());
  row.columns.erase("stuck");
  const auto decoded = decode_allocation(row);
  ASSERT_FALSE(decoded.has_value());
  EXPECT_EQ(decoded.error(), (Error{Code::kDataLoss, "decision 5: column stuck: is missing"}));
  store::PodRow pod = map_of(encode(full_pod()));
  pod.erase("made");
  EXPECT_EQ(decode_pod(pod).error().message, "column made: is missing");
}

TEST(Codec, StoresTextThatIsNoUtf8) {
  const auto store = in_memory();
  Allocation allocation;
  allocation.decision = decide_on(*store);
  allocation.workload.pod_labels = {{"odd", "\xff"}};
  const auto decoded = decode_allocation(stored(*store, allocation));
  ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
  EXPECT_THAT(decoded->workload.pod_labels, UnorderedElementsAre(Pair("odd", "\xef\xbf\xbd")));
}

}  // namespace
}  // namespace topolet::engine
