#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "core/replay/ledger_lines.hpp"
#include "core/replay/recorded_fields.hpp"
#include "core/replay/state_access.hpp"
#include "core/topology/discover.hpp"

namespace topolet::replay {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

std::shared_ptr<const placement::LedgerEntry> entry(const std::string& pod, const CpuSet& cpus) {
  placement::LedgerEntry made;
  made.key = {pod, "main", 2, "sandbox-" + pod};
  made.qos = placement::Qos::kGuaranteed;
  made.placement = {placement::Mode::kExclusive, cpus, {}, NodeSet{0}, {{{"GPU", "1"}}, {}}};
  made.demand.cpu_request_milli = 2000;
  made.demand.hugepage_limit_bytes = {{"2MB", 4096}};
  made.settings = SharedStringMap({{"smt", "isolate"}});
  made.name = "default/" + pod + "/main";
  return std::make_shared<const placement::LedgerEntry>(std::move(made));
}

placement::LedgerSnapshot snapshot_of(const std::vector<std::shared_ptr<const placement::LedgerEntry>>& entries) {
  placement::LedgerSnapshot snapshot;
  snapshot.generation = 7;
  snapshot.allowed = CpuSet::range(0, 7);
  snapshot.pool = CpuSet::range(2, 7);
  snapshot.unmovable = {{"default/stuck/main", CpuSet{3}, "is put there by something else than topolet"}};
  for (const auto& one : entries) snapshot.entries.push_back(one);
  return snapshot;
}

TEST(JsonValues, AreTheSameMachineWhenTheyAreReadAgain) {
  const std::filesystem::path machines = std::filesystem::path(TOPOLET_TEST_DATA) / "topologies";
  std::size_t read = 0;
  for (const auto& file : std::filesystem::directory_iterator(machines)) {
    if (file.path().extension() != ".xml") continue;
    SCOPED_TRACE(file.path());
    const auto machine = topology::discover({.xml_file = file.path()});
    ASSERT_TRUE(machine.has_value());
    const std::string text = to_json(**machine).dump();
    const auto again = from_json<topology::Topology>(Json::parse(text));
    EXPECT_EQ(to_json(again).dump(), text);
    EXPECT_EQ(again.pus.size(), (*machine)->pus.size());
    EXPECT_EQ(again.distances, (*machine)->distances);
    ++read;
  }
  EXPECT_GT(read, 5U);
}

TEST(JsonValues, LeaveOutWhatIsAsByDefault) {
  EXPECT_EQ(to_json(placement::Demand()).dump(), "{}");
  placement::Demand demand;
  demand.cpu_request_milli = 500;
  EXPECT_EQ(to_json(demand).dump(), R"({"cpu_request_milli":500})");
}

TEST(JsonValues, HaveWhatCanBeSetThroughTheFrontEnd) {
  placement::PolicyRequest request;
  request.settable = {.memory_modes = 14, .io_priority = true, .through = "NRI 0.12 of containerd v2.4.2"};
  const std::string text = to_json(request).dump();
  EXPECT_EQ(text, R"({"settable":{"memory_modes":14,"io_priority":true,"through":"NRI 0.12 of containerd v2.4.2"}})");
  EXPECT_EQ(from_json<placement::PolicyRequest>(Json::parse(text)).settable, request.settable);
}

TEST(JsonValues, HaveAllSettingsOfAContainer) {
  placement::AddedFields added;
  added.memory_policy = {placement::MemoryMode::kPreferredMany, NodeSet{0, 1}, true, true, true};
  added.scheduler = {placement::SchedulerClass::kBatch, -3};
  added.io_priority = {placement::IoClass::kIdle, 2};
  EXPECT_EQ(from_json<placement::AddedFields>(Json::parse(to_json(added).dump())), added);
}

TEST(JsonValues, AreNotReadFromSomethingElse) {
  placement::Placement placement;
  EXPECT_THROW(read_json(Json::parse(R"({"mode":"moody"})"), placement), InvalidLine);
  EXPECT_THROW(read_json(Json::parse(R"({"cpus":"x"})"), placement), InvalidLine);
  EXPECT_THROW(read_json(Json::parse(R"([1])"), placement), InvalidLine);
}

TEST(LedgerLines, TellOnlyWhatHasChanged) {
  LedgerWriter writer;
  LedgerReader reader;
  const auto a = entry("a", {0, 1});
  const auto b = entry("b", {2, 3});
  reader.apply(Json::parse(writer.changes(snapshot_of({a, b}), {}).dump()));
  const Json second = writer.changes(snapshot_of({a, entry("c", {4})}), {});
  EXPECT_THAT(second["put"], SizeIs(1));
  EXPECT_THAT(second["gone"], SizeIs(1));
  EXPECT_FALSE(second.contains("allowed"));
  const placement::LedgerSnapshot& read = reader.apply(Json::parse(second.dump()));
  ASSERT_EQ(read.entries.size(), 2U);
  EXPECT_EQ(to_json(read.entries[0]), to_json(*a));
  EXPECT_EQ(read.entries[1].key.pod_uid, "c");
  EXPECT_EQ(read.generation, 7U);
  EXPECT_STREQ(read.unmovable.at(0).why, "is put there by something else than topolet");
  EXPECT_THAT(writer.changes(snapshot_of({a, read.entries.shared()[1]}), {}).value("gone", Json::array()), IsEmpty());
}

TEST(LedgerLines, HaveAllThatPoliciesAreShownOfAContainer) {
  placement::LedgerEntry full;
  full.key = {"uid", "main", 1, "sandbox"};
  full.tags = {{"pools/pool", "large"}};
  full.pod_name = "web-0";
  full.pod_namespace = "shop";
  full.runtime_handler = "runc";
  full.pod_labels = {{"app", "web"}};
  full.pod_annotations = {{"topolet.io/smt", "isolate"}, {"vendor/zone", "0"}, {"vendor/token", "hush"}};
  full.annotations = {{"vendor/zone", "1"}, {"vendor/token", "hush"}};
  full.devices = {"/dev/a"};
  full.cdi_devices = {"vendor.com/gpu=0"};
  full.used_devices = {"0000:65:00.0"};
  full.container_id = "c1";
  full.pending = full.started = full.adopted = true;
  placement::LedgerSnapshot ledger;
  ledger.entries.push_back(full);
  LedgerWriter writer;
  LedgerReader reader;
  const RecordedNames names{.env = {}, .annotations = {"vendor/zone"}};
  const Json line = writer.changes(ledger, names);
  EXPECT_EQ(line.dump().find("hush"), std::string::npos) << "nobody reads that";
  EXPECT_EQ(writer.whole(names).dump().find("hush"), std::string::npos);
  full.pod_annotations.erase("vendor/token");
  full.annotations.erase("vendor/token");
  EXPECT_EQ(reader.apply(Json::parse(line.dump())).entries.at(0), full);
}

TEST(LedgerLines, TellAllOfItToANewFile) {
  LedgerWriter writer;
  writer.changes(snapshot_of({entry("a", {0, 1}), entry("b", {2})}), {});
  LedgerReader reader;
  const placement::LedgerSnapshot& read = reader.apply(writer.whole({}));
  EXPECT_EQ(read.entries.size(), 2U);
  EXPECT_EQ(read.pool.to_string(), "2-7");
}

TEST(StateLines, HaveTheValueOnlyWhereItIsNews) {
  const KnownState known{{"a", "1"}};
  const StateAccess same{.kind = StateAccess::Kind::kGet, .plugin = "p", .key = "a", .value = "1"};
  EXPECT_FALSE(to_line(same, known).contains("value"));
  EXPECT_EQ(read_state_line(to_line(same, known), known).value, "1");
  const StateAccess gone{.kind = StateAccess::Kind::kGet, .plugin = "p", .key = "a", .value = {}};
  EXPECT_TRUE(to_line(gone, known)["value"].is_null());
  EXPECT_EQ(read_state_line(to_line(gone, known), known).value, std::nullopt);
}

TEST(StateLines, KeepBytesThatAreNoText) {
  const std::string bytes("\xff\x00z", 3);
  const StateAccess set{.kind = StateAccess::Kind::kSet, .plugin = "p", .key = bytes, .value = bytes};
  const StateAccess read = read_state_line(Json::parse(to_line(set, {}).dump()), {});
  EXPECT_EQ(read.key, bytes);
  EXPECT_EQ(read.value, bytes);
}

}  // namespace
}  // namespace topolet::replay
