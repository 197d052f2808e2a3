#include "core/engine/state/ledger.hpp"

#include "tests/placement/machine.hpp"

namespace topolet::engine {
namespace {

using topolet::testing::besteffort;
using topolet::testing::guaranteed;

CpuInventory four_cpus() { return {CpuSet::range(0, 3), {}, {}}; }

Allocation shared(const std::string& name) {
  Allocation allocation;
  allocation.workload = besteffort(name);
  allocation.within = CpuSet::range(0, 3);
  return allocation;
}

Allocation exclusive(const std::string& name, const CpuSet& cpus, const CpuSet& withheld = {}) {
  Allocation allocation;
  allocation.workload = guaranteed(name, static_cast<std::int64_t>(cpus.size()));
  allocation.placement = {placement::Mode::kExclusive, cpus, withheld, {}};
  return allocation;
}

TEST(Ledger, TakesExclusiveAndWithheldCpusOutOfThePool) {
  Ledger ledger({CpuSet::range(0, 7), CpuSet{0}, CpuSet{7}}, 0);
  EXPECT_EQ(ledger.pool(), CpuSet::range(1, 6));
  ledger.assume(exclusive("a", {1, 2}, {3}));
  EXPECT_EQ(ledger.pool(), CpuSet::range(4, 6));
  const placement::LedgerSnapshot view = ledger.snapshot();
  EXPECT_EQ(view.exclusive, (CpuSet{1, 2}));
  EXPECT_EQ(view.withheld, CpuSet{3});
}

TEST(Ledger, MovesTheSharedContainersOffAGrant) {
  Ledger ledger(four_cpus(), 0);
  const Allocation anywhere = shared("anywhere");
  Allocation low = shared("low");
  low.within = CpuSet{0, 1};
  ledger.assume(anywhere);
  ledger.assume(low);
  ledger.assume(exclusive("a", {3}));
  EXPECT_EQ(ledger.find(anywhere.workload.key)->placement.cpus, CpuSet::range(0, 2));
  EXPECT_EQ(ledger.find(low.workload.key)->placement.cpus, (CpuSet{0, 1}));
}

TEST(Ledger, MovesAContainerWhoseSetWouldBeEmptyToThePool) {
  Ledger ledger(four_cpus(), 0);
  Allocation low = shared("low");
  low.within = CpuSet{0};
  ledger.assume(low);
  ledger.assume(exclusive("a", {0}));
  EXPECT_EQ(ledger.find(low.workload.key)->placement.cpus, CpuSet::range(1, 3));
}

TEST(Ledger, KeepsAConflictWhereTheKubeletPutIt) {
  Ledger ledger(four_cpus(), 0);
  ledger.assume(exclusive("a", {0}));
  Allocation allocation = shared("kubelets");
  allocation.workload.kubelet_cpus = CpuSet{0};
  allocation.within = CpuSet{0};
  allocation.placement.cpus = CpuSet{0};
  allocation.conflict = true;
  ledger.assume(allocation);
  EXPECT_EQ(ledger.find(allocation.workload.key)->placement.cpus, CpuSet{0});
  EXPECT_TRUE(ledger.kubelet_hands_out_cpusets());
}

TEST(Ledger, IsAsBeforeAfterARelease) {
  Ledger ledger(four_cpus(), 0);
  const Allocation other = shared("other");
  ledger.assume(other);
  const placement::LedgerSnapshot before = ledger.snapshot();
  const Allocation granted = exclusive("a", {0, 1}, {2});
  ledger.assume(granted);
  ledger.assume_released(granted.workload.key);
  const placement::LedgerSnapshot after = ledger.snapshot();
  EXPECT_EQ(after.pool, before.pool);
  EXPECT_EQ(after.exclusive, before.exclusive);
  EXPECT_EQ(after.entries.front().placement, before.entries.front().placement);
  EXPECT_GT(after.generation, before.generation);
}

TEST(Ledger, SharesWithItsSnapshotsWhatDoesNotChange) {
  Ledger ledger(four_cpus(), 0);
  ledger.assume(shared("a"));
  ledger.assume(shared("b"));
  const placement::LedgerSnapshot before = ledger.snapshot();
  Allocation changed = shared("b");
  changed.workload.demand.cpu_request_milli += 500;
  ledger.assume(changed);
  const placement::LedgerSnapshot after = ledger.snapshot();
  ASSERT_EQ(after.entries.size(), 2U);
  EXPECT_EQ(&after.entries[0], &before.entries[0]);
  EXPECT_EQ(after.entries[1].demand.cpu_request_milli, before.entries[1].demand.cpu_request_milli + 500);
  ledger.assume_released(changed.workload.key);
  EXPECT_EQ(ledger.snapshot().entries.size(), 1U);
  EXPECT_EQ(before.entries.size(), 2U) << "a snapshot never changes";
}

TEST(Ledger, IsLeftAsItIsByPlans) {
  Ledger ledger(four_cpus(), 0);
  const Allocation other = shared("other");
  ledger.assume(other);
  ledger.assume(exclusive("a", {0}));
  const Allocations before = ledger.allocations();
  {
    Ledger plan = ledger.for_plan();
    EXPECT_EQ(plan.find(other.workload.key), ledger.find(other.workload.key)) << "what does not change is not copied";
    plan.assume(exclusive("b", {1}));
    plan.assume_released(exclusive("a", {0}).workload.key);
    EXPECT_EQ(plan.find(other.workload.key)->placement.cpus, (CpuSet{0, 2, 3}));
    EXPECT_EQ(ledger.allocations(), before);
    // As what is planned on lives on, what is committed meanwhile does not change it.
    ledger.assume(exclusive("c", {2, 3}));
    EXPECT_EQ(plan.find(other.workload.key)->placement.cpus, (CpuSet{0, 2, 3}));
    EXPECT_EQ(plan.find(exclusive("c", {2, 3}).workload.key), nullptr);
  }
  EXPECT_EQ(ledger.find(other.workload.key)->placement.cpus, CpuSet{1});
}

TEST(Ledger, KeepsAllocationsWhereTheyAreWhileTheyChange) {
  Ledger ledger(four_cpus(), 0);
  const Allocation other = shared("other");
  ledger.assume(other);
  const Allocation* const found = ledger.find(other.workload.key);
  for (const char* name : {"a", "p", "z"}) ledger.assume(shared(name));
  ledger.assume(exclusive("b", {1}));
  EXPECT_EQ(ledger.find(other.workload.key), found);
  EXPECT_EQ(found->placement.cpus, (CpuSet{0, 2, 3}));
}

TEST(Ledger, SharesNothingWithItsCopies) {
  Ledger ledger(four_cpus(), 0);
  ledger.assume(shared("other"));
  const Ledger copy = ledger;
  EXPECT_EQ(copy.allocations(), ledger.allocations());
  EXPECT_NE(copy.find(shared("other").workload.key), ledger.find(shared("other").workload.key))
      << "another thread may read it";
}

TEST(Ledger, FindsByContainerOnlyWhatIsBound) {
  Ledger ledger(four_cpus(), 0);
  Allocation allocation = shared("a");
  ledger.assume(allocation);
  EXPECT_EQ(ledger.find_by_container("c1"), nullptr);
  allocation.container_id = "c1";
  allocation.phase = Phase::kCreated;
  ledger.assume(allocation);
  ASSERT_NE(ledger.find_by_container("c1"), nullptr);
  EXPECT_EQ(ledger.find_by_container("c")->phase, Phase::kCreated) << "a beginning that fits no other";
  ledger.assume_released(allocation.workload.key);
  EXPECT_EQ(ledger.find_by_container("c1"), nullptr);
}

TEST(Ledger, NamesThoseWhoHaveNotLeftWhatAnotherIsToHaveAlone) {
  Ledger ledger(four_cpus(), 0);
  Allocation neighbour = shared("neighbour");
  neighbour.container_id = "c1";
  neighbour.phase = Phase::kRunning;
  ledger.assume(neighbour);
  const Allocation own = exclusive("own", {0}, {1});
  ledger.assume(own);
  EXPECT_EQ(ledger.find(neighbour.workload.key)->vacating, (CpuSet{0, 1}));
  EXPECT_EQ(ledger.neighbours_blocking(own.workload.key), std::vector<placement::ContainerKey>{neighbour.workload.key});
  EXPECT_TRUE(ledger.neighbours_blocking(neighbour.workload.key).empty()) << "it has nothing alone";
}

TEST(Ledger, LetsThoseGoThatStandInEachOthersWay) {
  Ledger ledger(four_cpus(), 0);
  for (const std::uint32_t cpu : {0U, 1U}) {
    Allocation own = exclusive(cpu == 0 ? "a" : "b", {cpu});
    own.container_id = cpu == 0 ? "c1" : "c2";
    own.phase = Phase::kRunning;
    own.vacating = CpuSet{1 - cpu};
    ledger.assume(own);
  }
  Allocation third = exclusive("c", {2});
  third.container_id = "c3";
  third.phase = Phase::kRunning;
  third.vacating = CpuSet{0};
  ledger.assume(third);
  const placement::ContainerKey a = exclusive("a", {0}).workload.key;
  EXPECT_EQ(ledger.neighbours_blocking(a).size(), 2U);
  EXPECT_EQ(ledger.neighbours_blocking_outside_cycles(a), std::vector<placement::ContainerKey>{third.workload.key})
      << "b waits for it in turn";
}

TEST(Ledger, KeepsWhatWasHadAloneOutOfThePoolUntilItIsLeft) {
  Ledger ledger(four_cpus(), 0);
  Allocation own = exclusive("own", {0, 1});
  own.container_id = "c1";
  own.phase = Phase::kRunning;
  ledger.assume(own);
  own.placement.cpus = CpuSet{0};
  own.vacating = own.vacating_alone = CpuSet{1};
  ledger.assume(own);
  EXPECT_EQ(ledger.pool(), (CpuSet{2, 3}));
  EXPECT_EQ(ledger.snapshot().withheld, CpuSet{1});
}

TEST(Ledger, ForgetsEnvValues) {
  Ledger ledger(four_cpus(), 0);
  Allocation allocation = shared("a");
  allocation.workload.env = {{"TOKEN", "secret"}};
  ledger.assume(allocation);
  EXPECT_TRUE(ledger.find(allocation.workload.key)->workload.env.empty());
}

TEST(Ledger, BooksTheCpusThatTheKubeletGaveAForeignContainer) {
  Ledger ledger(four_cpus(), 0);
  Allocation foreign = shared("vm");
  foreign.placement = {placement::Mode::kForeign, CpuSet{2}, {}, {}};
  ledger.assume(foreign);
  EXPECT_EQ(ledger.pool(), (CpuSet{0, 1, 3}));
}

TEST(Ledger, ViewsItselfWithoutOneContainer) {
  Ledger ledger(four_cpus(), 0);
  const Allocation allocation = exclusive("a", {0});
  ledger.assume(allocation);
  const placement::LedgerSnapshot view = ledger.snapshot(&allocation.workload.key);
  EXPECT_TRUE(view.entries.empty());
  EXPECT_EQ(view.pool, CpuSet::range(0, 3));
}

TEST(Ledger, KeepsPodsApartThatShareAUid) {
  Ledger ledger(four_cpus(), 0);
  Allocation first = exclusive("a", {0});
  Allocation second = exclusive("a", {1});
  second.workload.key.sandbox_id = "another";
  ledger.assume(first);
  ledger.assume(second);
  EXPECT_EQ(ledger.snapshot().exclusive, (CpuSet{0, 1}));
}

TEST(Ledger, ShowsMemoryThatIsOnItsWayWhereItWillBe) {
  Ledger ledger(four_cpus(), 0);
  Allocation moving = shared("a");
  moving.placement.mems = NodeSet{0, 1};
  ledger.assume(moving);
  EXPECT_EQ(ledger.snapshot().entries[0].placement.mems, (NodeSet{0, 1}));
  moving.mems_to_keep = NodeSet{1};
  ledger.assume(moving);
  EXPECT_EQ(ledger.snapshot().entries[0].placement.mems, NodeSet{1});
  moving.placement.mems = NodeSet{1};
  moving.mems_to_keep = {};
  ledger.assume(moving);
  EXPECT_EQ(ledger.snapshot().entries[0].placement.mems, NodeSet{1});
}

TEST(Ledger, TellsOfEachContainerWhatPoliciesMayCountOn) {
  Ledger ledger(four_cpus(), 0);
  Allocation allocation = exclusive("a", {0});
  placement::Workload& workload = allocation.workload;
  workload.runtime_handler = "runc";
  workload.pod_labels = {{"app", "shop"}};
  workload.pod_annotations = {{"note", "pod"}};
  workload.annotations = {{"note", "container"}};
  workload.devices = {"/dev/a"};
  workload.cdi_devices = {"vendor.com/gpu=0"};
  workload.tags = {{"pools/pool", "large"}};
  workload.env = {{"TOKEN", "secret"}};
  allocation.container_id = "c1";
  allocation.phase = Phase::kCreated;
  ledger.assume(allocation);
  const placement::LedgerEntry entry = ledger.snapshot().entries.front();
  EXPECT_EQ(entry.pod_name, workload.pod_name);
  EXPECT_EQ(entry.pod_namespace, workload.pod_namespace);
  EXPECT_EQ(entry.runtime_handler, "runc");
  EXPECT_EQ(entry.container_id, "c1");
  EXPECT_EQ(entry.pod_labels, workload.pod_labels);
  EXPECT_EQ(entry.pod_annotations, workload.pod_annotations);
  EXPECT_EQ(entry.annotations, workload.annotations);
  EXPECT_EQ(entry.devices, workload.devices);
  EXPECT_EQ(entry.cdi_devices, workload.cdi_devices);
  EXPECT_EQ(entry.tags, workload.tags);
}

TEST(Ledger, TellsHowFarEachContainerIs) {
  const auto entry_in = [](Phase phase, bool adopted = false) {
    Ledger ledger(four_cpus(), 0);
    Allocation allocation = exclusive("a", {0});
    allocation.phase = phase;
    allocation.container_id = "c1";
    allocation.adopted = adopted;
    ledger.assume(allocation);
    const placement::LedgerEntry entry = ledger.snapshot().entries.front();
    return std::string(entry.pending ? "pending " : "") + (entry.started ? "started " : "") +
           (entry.adopted ? "adopted " : "") + entry.container_id;
  };
  EXPECT_EQ(entry_in(Phase::kPending), "pending ");
  EXPECT_EQ(entry_in(Phase::kInDoubt), "pending ");
  EXPECT_EQ(entry_in(Phase::kCreated), "c1");
  EXPECT_EQ(entry_in(Phase::kStarting), "c1");
  EXPECT_EQ(entry_in(Phase::kRunning), "started c1");
  EXPECT_EQ(entry_in(Phase::kCrashed), "started c1");
  EXPECT_EQ(entry_in(Phase::kRunning, true), "started adopted c1");
}

/// Plugins are shown a copy of each container, which is made anew where the ledger has another value of it.
TEST(Ledger, SharesTheValuesOfContainersThatDoNotChange) {
  Ledger ledger(four_cpus(), 0);
  Allocation a = exclusive("a", {0});
  Allocation b = exclusive("b", {1});
  ledger.assume(a);
  ledger.assume(b);
  const auto before = ledger.snapshot().entries.shared();
  a.phase = Phase::kCreated;
  ledger.assume(a);
  b.stopping = true;
  b.generation = 77;
  ledger.assume(b);
  const auto after = ledger.snapshot().entries.shared();
  ASSERT_EQ(after.size(), 2U);
  EXPECT_NE(after[0], before[0]) << "it is not pending any more";
  EXPECT_EQ(after[1], before[1]) << "nothing that policies are shown has changed";
}

}  // namespace
}  // namespace topolet::engine
