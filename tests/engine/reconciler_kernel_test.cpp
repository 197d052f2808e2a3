// Containers of which the runtime does not tell all: where they run is read from the kernel.
#include <gmock/gmock.h>

#include "core/engine/converge/memory_high.hpp"
#include "core/engine/planning/besteffort_memory_planner.hpp"
#include "tests/engine/reconciler_test.hpp"

namespace topolet::engine {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(ReconcilerTest, TakesOverWhatIsInPlaceWhereTheRuntimeTellsNoCpuset) {
  begin({exclusive("a", {0}), shared("b")}, {pod_of("a"), pod_of("b")});
  for (const char* name : {"a", "b"}) {
    runtime_.put(pod_of(name).sandbox);
    runtime_.put(std::string("c-") + name, container_of(name));
  }
  runtime_.tell_only_processes();
  commit(event::Restarted{});
  take_transitions();
  EXPECT_TRUE(reconcile().has_value());
  EXPECT_THAT(take_transitions(), IsEmpty()) << "no drift: the kernel has them where they should be";
  EXPECT_THAT(runtime_.take_calls(), Not(Contains(StartsWith("UpdateContainerResources"))));
}

TEST_F(ReconcilerTest, TellsOnceMoreWhatCannotBeReadAndCallsThatNoDrift) {
  begin({in_phase(exclusive("a", {0}), Phase::kCreated)}, {pod_of("a")});
  runtime_.put(pod_of("a").sandbox);
  ScriptedRuntime::Container created = container_of("a", operations::ContainerState::kCreated);
  created.pid = 0;
  runtime_.put("c-a", created);
  runtime_.tell_only_processes();
  commit(event::Restarted{});
  take_transitions();
  EXPECT_TRUE(reconcile().has_value());
  EXPECT_THAT(take_transitions(), IsEmpty());
  EXPECT_THAT(runtime_.take_calls(), Contains("UpdateContainerResources c-a 0"));
}

TEST_F(ReconcilerTest, RepairsWhatTheKernelHasElsewhereWhereTheRuntimeTellsNoCpuset) {
  begin({exclusive("a", {0})}, {pod_of("a")});
  runtime_.put(pod_of("a").sandbox);
  ScriptedRuntime::Container container = container_of("a");
  container.cpus = CpuSet::range(0, 7);
  runtime_.put("c-a", container);
  runtime_.tell_only_processes();
  commit(event::Restarted{});
  take_transitions();
  EXPECT_TRUE(reconcile().has_value());
  EXPECT_THAT(take_transitions(), Not(IsEmpty()));
  EXPECT_EQ(runtime_.container("c-a").cpus(), CpuSet{0});
}

/// A runtime that was restarted may have read its records of the create again.
TEST_F(ReconcilerTest, CallsItNoDriftWhereOnlyTheRuntimesRecordIsOld) {
  begin({shared("b")}, {pod_of("b")});
  runtime_.put(pod_of("b").sandbox);
  runtime_.put("c-b", container_of("b"));
  runtime_.container("c-b").resources.set_cpuset_cpus("3");
  commit(event::Restarted{});
  take_transitions();
  EXPECT_TRUE(reconcile().has_value());
  EXPECT_THAT(take_transitions(), IsEmpty());
  EXPECT_EQ(runtime_.container("c-b").cpus(), CpuSet::range(0, 7)) << "it is told once more";
}

TEST_F(ReconcilerTest, AdoptsByTheKernelWhatTheRuntimeDoesNotTell) {
  begin({});
  runtime_.put(pod_of("a").sandbox);
  runtime_.put("c1", {.pid = 1, .cpus = {2, 3}});
  kernel_.run_in(1, "/kubepods/pod1/c1",
                 {{"cpuset.cpus.effective", "2-3"}, {"cpu.weight", "79"}, {"cpu.max", "200000 100000"}});
  runtime_.put("c2", {.name = "b", .pid = 2});
  kernel_.run_in(2, "/kubepods/burstable/pod1/c2",
                 {{"cpuset.cpus.effective", "0-7"}, {"cpu.weight", "39"}, {"cpu.max", "max 100000"}});
  runtime_.put("c3", {.name = "c", .pid = 3});
  kernel_.run_in(3, "/kubepods/besteffort/pod1/c3", {{"cpuset.cpus.effective", "0-7"}, {"cpu.weight", "1"}});
  runtime_.tell_only_processes();
  EXPECT_TRUE(reconcile().has_value());
  const Allocation& alone = *committer_->ledger().find_by_container("c1");
  EXPECT_EQ(alone.placement.mode, placement::Mode::kExclusive);
  EXPECT_EQ(alone.placement.cpus, (CpuSet{2, 3}));
  EXPECT_EQ(alone.workload.qos, placement::Qos::kGuaranteed);
  EXPECT_EQ(alone.workload.demand.cpu_request_milli, 2000);
  const Allocation& sharing = *committer_->ledger().find_by_container("c2");
  EXPECT_EQ(sharing.workload.qos, placement::Qos::kBurstable);
  EXPECT_EQ(sharing.workload.demand.cpu_request_milli, 1000);
  EXPECT_EQ(sharing.workload.demand.cpu_request_certainty, placement::Certainty::kEstimated);
  const Allocation& idle = *committer_->ledger().find_by_container("c3");
  EXPECT_EQ(idle.workload.qos, placement::Qos::kBestEffort);
  EXPECT_EQ(idle.workload.demand, placement::Demand());
}

/// BestEffort containers with a memory.high, of whose making nobody has told.
class FoundMemoryHighTest : public ReconcilerTest {
 protected:
  void put(std::int64_t pid, const std::string& id) {
    kernel_.run_in(pid, cgroup_of(id), {{"cpuset.cpus.effective", "0-7"}, {"memory.high", std::to_string(kBytes)}});
    runtime_.put(id, {.name = id, .pid = pid});
  }
  static std::string cgroup_of(const std::string& id) { return "/kubepods/besteffort/pod1/" + id; }
  void mark(std::int64_t pid) {
    if (!mark_memory_high(kernel_.directory_of(pid), kBytes)) GTEST_SKIP() << "this file system has no attributes";
  }
  const Allocation& found(const std::string& id) const { return *committer_->ledger().find_by_container(id); }

  static constexpr std::int64_t kBytes = 100 << 20;
};

TEST_F(FoundMemoryHighTest, OfAnEarlierTopoletdIsTakenOver) {
  begin({});
  runtime_.put(pod_of("a").sandbox);
  put(1, "c1");
  put(2, "c2");
  mark(1);
  if (IsSkipped()) return;
  EXPECT_TRUE(reconcile().has_value());
  EXPECT_EQ(found("c1").memory_high, kBytes);
  EXPECT_TRUE(found("c1").adopted);
  EXPECT_EQ(found("c2").memory_high, 0) << "the kubelet may have set that";
  const BestEffortMemoryPlanner planner(committer_->ledger(), placer_);
  const auto lifted = planner.next(std::nullopt, false);
  ASSERT_TRUE(lifted);
  commit(*lifted);
  loop_.run();
  EXPECT_EQ(runtime_.container("c1").resources.unified().at("memory.high"), "max");
  EXPECT_EQ(runtime_.container("c2").resources.unified().count("memory.high"), 0U);
}

TEST_F(FoundMemoryHighTest, IsTakenOverOfOneThatAnOlderDatabaseKnows) {
  begin({shared("a")}, {pod_of("a")});
  runtime_.put(pod_of("a").sandbox);
  runtime_.put("c-a", container_of("a"));
  const std::int64_t process = runtime_.container("c-a").pid;
  kernel_.run_in(process, cgroup_of("c-a"),
                 {{"cpuset.cpus.effective", "0-7"}, {"memory.high", std::to_string(kBytes)}});
  mark(process);
  if (IsSkipped()) return;
  EXPECT_TRUE(reconcile().has_value());
  EXPECT_EQ(find("a")->memory_high, kBytes);
}

TEST_F(ReconcilerTest, LeavesWhoIsUnknownWhereItIsAndCallsItNotExclusive) {
  begin({});
  runtime_.put(pod_of("a").sandbox);
  runtime_.put("c1", {.pid = 1, .cpus = {2, 3}, .whole_cpus = 2});
  runtime_.tell_only_processes();
  EXPECT_TRUE(reconcile().has_value());
  const Allocation& unknown = *committer_->ledger().find_by_container("c1");
  EXPECT_EQ(unknown.workload.qos, placement::Qos::kUnknown);
  EXPECT_EQ(unknown.workload.demand.cpu_request_certainty, placement::Certainty::kUnknown);
  EXPECT_EQ(unknown.workload.demand.cpu_request_milli, 1000);
  EXPECT_EQ(unknown.placement.mode, placement::Mode::kShared);
  EXPECT_EQ(unknown.placement.cpus, (CpuSet{2, 3}));
  EXPECT_THAT(unknown.reason, ::testing::HasSubstr("neither the runtime nor the kernel tells what it requests or its "
                                                   "QoS class; it counts as 1 CPU"));
}

TEST_F(ReconcilerTest, LearnsWhatAContainerIsOnceItCanBeRead) {
  begin({});
  runtime_.put(pod_of("a").sandbox);
  runtime_.put("c1", {.pid = 1, .cpus = {2, 3}});
  runtime_.tell_only_processes();
  EXPECT_TRUE(reconcile().has_value());
  EXPECT_EQ(committer_->ledger().find_by_container("c1")->workload.qos, placement::Qos::kUnknown);
  kernel_.run_in(1, "/kubepods/burstable/pod1/c1",
                 {{"cpuset.cpus.effective", "2-3"}, {"cpu.weight", "20"}, {"cpu.max", "max 100000"}});
  EXPECT_TRUE(reconcile().has_value());
  const Allocation& known = *committer_->ledger().find_by_container("c1");
  EXPECT_EQ(known.workload.qos, placement::Qos::kBurstable);
  EXPECT_EQ(known.workload.demand.cpu_request_certainty, placement::Certainty::kEstimated);
  EXPECT_EQ(known.placement.cpus, (CpuSet{2, 3})) << "it stays";
}

}  // namespace
}  // namespace topolet::engine
