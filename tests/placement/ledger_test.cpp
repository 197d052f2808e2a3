#include "core/placement/ledger.hpp"

#include "tests/placement/machine.hpp"

namespace topolet {
namespace {

using testing::besteffort;
using testing::guaranteed;

LedgerRules four_cpus() { return {CpuSet::range(0, 3), {}, {}}; }

Holding shared(const std::string& name) {
  Holding holding;
  holding.workload = besteffort(name);
  holding.within = CpuSet::range(0, 3);
  return holding;
}

Holding exclusive(const std::string& name, const CpuSet& cpus, const CpuSet& withheld = {}) {
  Holding holding;
  holding.workload = guaranteed(name, static_cast<std::int64_t>(cpus.size()));
  holding.placement = {Mode::kExclusive, cpus, withheld, {}};
  return holding;
}

TEST(Ledger, TakesExclusiveAndWithheldCpusOutOfThePool) {
  Ledger ledger({CpuSet::range(0, 7), CpuSet{0}, CpuSet{7}}, 0);
  EXPECT_EQ(ledger.pool(), CpuSet::range(1, 6));
  ledger.put(exclusive("a", {1, 2}, {3}));
  EXPECT_EQ(ledger.pool(), CpuSet::range(4, 6));
  const LedgerView view = ledger.view();
  EXPECT_EQ(view.exclusive, (CpuSet{1, 2}));
  EXPECT_EQ(view.withheld, CpuSet{3});
}

TEST(Ledger, NamesTheSharedContainersThatAGrantMoves) {
  Ledger ledger(four_cpus(), 0);
  const Holding anywhere = shared("anywhere");
  Holding low = shared("low");
  low.within = CpuSet{0, 1};
  ledger.put(anywhere);
  ledger.put(low);
  EXPECT_EQ(ledger.put(exclusive("a", {3})), std::vector<ContainerKey>{anywhere.workload.key});
  EXPECT_EQ(ledger.find(anywhere.workload.key)->placement.cpus, CpuSet::range(0, 2));
  EXPECT_EQ(ledger.find(low.workload.key)->placement.cpus, (CpuSet{0, 1}));
}

TEST(Ledger, MovesAContainerWhoseSetWouldBeEmptyToThePool) {
  Ledger ledger(four_cpus(), 0);
  Holding low = shared("low");
  low.within = CpuSet{0};
  ledger.put(low);
  ledger.put(exclusive("a", {0}));
  EXPECT_EQ(ledger.find(low.workload.key)->placement.cpus, CpuSet::range(1, 3));
}

TEST(Ledger, KeepsAConflictWhereTheKubeletPutIt) {
  Ledger ledger(four_cpus(), 0);
  ledger.put(exclusive("a", {0}));
  Holding holding = shared("kubelets");
  holding.workload.kubelet_cpus = CpuSet{0};
  holding.within = CpuSet{0};
  holding.placement.cpus = CpuSet{0};
  holding.conflict = true;
  ledger.put(holding);
  EXPECT_EQ(ledger.find(holding.workload.key)->placement.cpus, CpuSet{0});
  EXPECT_TRUE(ledger.kubelet_hands_out_cpusets());
}

TEST(Ledger, IsAsBeforeAfterARelease) {
  Ledger ledger(four_cpus(), 0);
  const Holding other = shared("other");
  ledger.put(other);
  const LedgerView before = ledger.view();
  const Holding granted = exclusive("a", {0, 1}, {2});
  ledger.put(granted);
  const auto moved = ledger.release(granted.workload.key);
  EXPECT_EQ(moved, std::vector<ContainerKey>{other.workload.key});
  const LedgerView after = ledger.view();
  EXPECT_EQ(after.pool, before.pool);
  EXPECT_EQ(after.exclusive, before.exclusive);
  EXPECT_EQ(after.entries.front().placement, before.entries.front().placement);
  EXPECT_GT(after.generation, before.generation);
}

TEST(Ledger, FindsByContainerOnlyWhatIsBound) {
  Ledger ledger(four_cpus(), 0);
  const Holding holding = shared("a");
  ledger.put(holding);
  EXPECT_EQ(ledger.find_by_container("c1"), nullptr);
  EXPECT_TRUE(ledger.bind(holding.workload.key, "c1"));
  ASSERT_NE(ledger.find_by_container("c1"), nullptr);
  EXPECT_EQ(ledger.find_by_container("c1")->state, HoldingState::kBound);
  ledger.release(holding.workload.key);
  EXPECT_EQ(ledger.find_by_container("c1"), nullptr);
}

TEST(Ledger, ForgetsEnvValues) {
  Ledger ledger(four_cpus(), 0);
  Holding holding = shared("a");
  holding.workload.env = {{"TOKEN", "secret"}};
  ledger.put(holding);
  EXPECT_TRUE(ledger.find(holding.workload.key)->workload.env.empty());
}

TEST(Ledger, BooksTheCpusThatTheKubeletGaveAForeignContainer) {
  Ledger ledger(four_cpus(), 0);
  Holding foreign = shared("vm");
  foreign.placement = {Mode::kForeign, CpuSet{2}, {}, {}};
  ledger.put(foreign);
  EXPECT_EQ(ledger.pool(), (CpuSet{0, 1, 3}));
}

TEST(Ledger, ViewsItselfWithoutOneContainer) {
  Ledger ledger(four_cpus(), 0);
  const Holding holding = exclusive("a", {0});
  ledger.put(holding);
  const LedgerView view = ledger.view(&holding.workload.key);
  EXPECT_TRUE(view.entries.empty());
  EXPECT_EQ(view.pool, CpuSet::range(0, 3));
}

TEST(Ledger, KeepsPodsApartThatShareAUid) {
  Ledger ledger(four_cpus(), 0);
  Holding first = exclusive("a", {0});
  Holding second = exclusive("a", {1});
  second.workload.key.sandbox_id = "another";
  ledger.put(first);
  ledger.put(second);
  EXPECT_EQ(ledger.view().exclusive, (CpuSet{0, 1}));
}

}  // namespace
}  // namespace topolet
