#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "core/engine/state/codec.hpp"
#include "store/schema.hpp"
#include "tests/store/scratch.hpp"

namespace topolet::engine {
namespace {

using std::chrono::milliseconds;

constexpr const char* kDecision = R"sql(
INSERT INTO decided (decision, boot, at_ms, generation, event, holds, pod_uid, pod_namespace, pod_name, container,
  attempt, sandbox_id, container_id, runtime_handler, qos, cpu_request_milli, cpu_limit_milli, memory_request_bytes,
  memory_limit_bytes, mode, cpus, within, withheld, mems, kubelet_cpus, nodes, reason, memory_request_estimated,
  hugepages, settings, kubelet_mems)
VALUES ({0}, 1, 100{0}, 2{0}, '{event}', 1, 'uid-1', 'shop', 'till', 'app-{0}', 3, 's1', '', 'runc', '{qos}', 2000, 2500,
  1024, 4096, '{mode}', '{cpus}', '{within}', '{withheld}', '0', '{kubelet_cpus}', '0', 'why', 1,
  '{{"2MB":2097152}}', '{{"cpus":"{mode}"}}', '0-1');
INSERT INTO live (decision, state, container_id, cpus, pending_since_ms)
VALUES ({0}, '{state}', '{container_id}', '{cpus_now}', 300{0});
)sql";

/// A decision that holds something, as version 3 of the schema has it.
struct Held {
  const char* event = "placed";
  const char* qos = "guaranteed";
  const char* mode = "exclusive";
  const char* cpus = "";
  const char* within = "";
  const char* withheld = "";
  const char* kubelet_cpus = "";
  const char* state = "pending";
  const char* container_id = "";
  const char* cpus_now = "";
};

class MigrationTest : public store::StoreTest {
 protected:
  MigrationTest() {
    std::filesystem::create_directory(directory());
    std::ofstream(file()).flush();
    store::Database database = connect(store::Database::Access::kReadWrite);
    std::vector<store::Migration> earlier = store::migrations();
    std::erase_if(earlier, [](const store::Migration& step) { return step.version > 3; });
    EXPECT_TRUE(migrate(database, earlier).has_value());
    run("INSERT INTO boot VALUES (1, 'boot-1', 1)");
  }

  void run(const std::string& sql) const {
    const Status done = connect(store::Database::Access::kReadWrite).execute(sql, "write as version 3 did");
    EXPECT_TRUE(done.has_value()) << store::message(done);
  }

  void hold(int decision, const Held& held) const {
    run(fmt::format(fmt::runtime(kDecision), decision, fmt::arg("event", held.event), fmt::arg("qos", held.qos),
                    fmt::arg("mode", held.mode), fmt::arg("cpus", held.cpus), fmt::arg("within", held.within),
                    fmt::arg("withheld", held.withheld), fmt::arg("kubelet_cpus", held.kubelet_cpus),
                    fmt::arg("state", held.state), fmt::arg("container_id", held.container_id),
                    fmt::arg("cpus_now", held.cpus_now)));
  }

  /// The one allocation of the database, after it was opened.
  Allocation migrated() const {
    const auto rows = open()->allocations();
    EXPECT_TRUE(rows.has_value()) << message(rows);
    EXPECT_EQ(rows->size(), 1U);
    const auto allocation = decode_allocation(rows->at(0));
    EXPECT_TRUE(allocation.has_value()) << store::message(allocation);
    return *allocation;
  }
};

/// Returns the common part of every row of hold(); exclusive, and the create under way.
Allocation allocation_of(int decision, const CpuSet& cpus) {
  Allocation allocation;
  placement::Workload& workload = allocation.workload;
  workload.key = {"uid-1", fmt::format("app-{}", decision), 3, "s1"};
  workload.pod_namespace = "shop";
  workload.pod_name = "till";
  workload.runtime_handler = "runc";
  workload.qos = placement::Qos::kGuaranteed;
  workload.demand = {2000, 2500, 1024, true, 4096, {{"2MB", 2 << 20}}};
  workload.settings = {{"cpus", "exclusive"}};
  workload.kubelet_mems = {0, 1};
  allocation.placement = {placement::Mode::kExclusive, cpus, {}, {0}};
  allocation.phase_since = milliseconds(3000 + decision);
  allocation.generation = static_cast<std::uint64_t>(20 + decision);
  allocation.decision = decision;
  allocation.reason = "why";
  allocation.evaluated_cpus = cpus;
  return allocation;
}

/// Equal in every column, and says which is not.
void expect_same(const Allocation& actual, const Allocation& expected) {
  EXPECT_EQ(encode_changes(expected, actual), store::Columns());
  EXPECT_EQ(actual, expected);
}

TEST_F(MigrationTest, BringsACreateThatIsUnderWay) {
  hold(1, {.cpus = "0-1", .withheld = "4-5", .state = "pending", .cpus_now = "0-1"});
  Allocation expected = allocation_of(1, {0, 1});
  expected.placement.withheld = {4, 5};
  expect_same(migrated(), expected);
}

TEST_F(MigrationTest, BringsAnExclusiveContainerThatMayRun) {
  hold(2, {.cpus = "2-3", .state = "bound", .container_id = "c-2", .cpus_now = "2-3"});
  Allocation expected = allocation_of(2, {2, 3});
  expected.phase = Phase::kStarting;
  expected.container_id = "c-2";
  expect_same(migrated(), expected);
  EXPECT_TRUE(migrated().may_run()) << "until the runtime says otherwise";
}

TEST_F(MigrationTest, BringsASharedContainerWithItsCpusOfNow) {
  hold(3, {.qos = "burstable",
           .mode = "shared",
           .cpus = "0-7",
           .within = "0-15",
           .state = "bound",
           .container_id = "c-3",
           .cpus_now = "6-7"});
  Allocation expected = allocation_of(3, {6, 7});
  expected.workload.qos = placement::Qos::kBurstable;
  expected.workload.settings = {{"cpus", "shared"}};
  expected.placement.mode = placement::Mode::kShared;
  expected.within = CpuSet::range(0, 15);
  expected.phase = Phase::kStarting;
  expected.container_id = "c-3";
  expect_same(migrated(), expected);
}

TEST_F(MigrationTest, BringsAContainerThatFailed) {
  hold(4, {.cpus = "8", .state = "crashed", .container_id = "c-4", .cpus_now = "8"});
  Allocation expected = allocation_of(4, {8});
  expected.phase = Phase::kCrashed;
  expected.container_id = "c-4";
  expect_same(migrated(), expected);
}

TEST_F(MigrationTest, BringsACreateInDoubt) {
  hold(5, {.cpus = "9", .state = "in_doubt", .cpus_now = "9"});
  Allocation expected = allocation_of(5, {9});
  expected.phase = Phase::kInDoubt;
  expected.doubt_since = expected.phase_since;
  expect_same(migrated(), expected);
}

TEST_F(MigrationTest, BringsAConflictWithTheKubelet) {
  hold(6, {.event = "conflict",
           .mode = "shared",
           .cpus = "0",
           .within = "0",
           .kubelet_cpus = "0",
           .state = "bound",
           .container_id = "c-6",
           .cpus_now = "0"});
  Allocation expected = allocation_of(6, {0});
  expected.workload.kubelet_cpus = {0};
  expected.workload.settings = {{"cpus", "shared"}};
  expected.placement.mode = placement::Mode::kShared;
  expected.within = {0};
  expected.conflict = true;
  expected.phase = Phase::kStarting;
  expected.container_id = "c-6";
  expect_same(migrated(), expected);
}

/// The daemon was killed between the runtime's answer and the end of what was held.
TEST_F(MigrationTest, TakesWhatHasAnotherOutcomeForACreateInDoubt) {
  hold(7, {.cpus = "1", .state = "refused", .cpus_now = "1"});
  const Allocation allocation = migrated();
  EXPECT_EQ(allocation.phase, Phase::kInDoubt);
  EXPECT_EQ(allocation.doubt_since, allocation.phase_since);
  EXPECT_EQ(value("SELECT state FROM live"), "in_doubt");
}

TEST_F(MigrationTest, BringsThePods) {
  run("INSERT INTO pod (sandbox_id, boot, pod_uid, pod_namespace, pod_name, runtime_handler, nodes) "
      "VALUES ('s1', 1, 'uid-1', 'shop', 'till', 'runc', '0-1')");
  const auto pods = open()->pods();
  ASSERT_TRUE(pods.has_value()) << store::message(pods);
  ASSERT_EQ(pods->size(), 1U);
  const auto pod = decode_pod(pods->at(0));
  ASSERT_TRUE(pod.has_value()) << store::message(pod);
  Pod expected;
  expected.sandbox.id = "s1";
  expected.sandbox.pod_uid = "uid-1";
  expected.sandbox.pod_namespace = "shop";
  expected.sandbox.pod_name = "till";
  expected.sandbox.runtime_handler = "runc";
  expected.sandbox.ready = true;
  expected.nodes = {0, 1};
  EXPECT_EQ(*pod, expected);
}

}  // namespace
}  // namespace topolet::engine
