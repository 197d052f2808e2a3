// Containers that run on the whole pool share one row of the store, whatever becomes of the pool.
#include <gmock/gmock.h>

#include <map>
#include <memory>
#include <string>

#include "core/engine/state/load_ledger.hpp"
#include "core/engine/state/record_again.hpp"
#include "core/engine/state/transitions.hpp"
#include "core/engine/state/write_transition.hpp"
#include "tests/engine/ledgers.hpp"

namespace topolet::engine {
namespace {

using ::testing::IsEmpty;

placement::ContainerKey container_key(const std::string& name) { return besteffort(name).key; }

/// Counts what is written to a database in memory of the rows of allocations, and of the one that some of them share.
class WholePoolTest : public ::testing::Test {
 protected:
  void SetUp() override {
    commit(event::Restarted{});
    for (const std::string name : {"a", "b", "c"}) create_shared(name, CpuSet::range(0, 7));
  }

  void create_shared(const std::string& name, const CpuSet& within) {
    const CpuSet cpus = within & ledger_.pool();
    commit(event::CreateAdmitted{besteffort(name), shared_on(cpus, within)});
    commit(event::CreateConfirmed{container_key(name), "c-" + name, {cpus, {}}});
  }

  Transition commit(const Event& event) {
    Transition made = compute_transition(ledger_, rules_, std::chrono::milliseconds(1), event);
    const Status written = write(*store_, made);
    EXPECT_TRUE(written.has_value()) << written.error().message;
    ledger_.apply(made);
    return made;
  }

  Transition take(const std::string& name, const CpuSet& cpus) {
    return commit(event::CreateAdmitted{guaranteed(name, static_cast<std::int64_t>(cpus.size())), exclusive_on(cpus)});
  }

  Ledger stored() {
    LoadedLedger loaded = load_ledger(*store_, ledger_.inventory());
    EXPECT_TRUE(loaded.status.has_value()) << loaded.status.error().message;
    return std::move(loaded.ledger);
  }
  CpuSet stored_cpus(const std::string& name) { return stored().find(container_key(name))->placement.cpus; }
  CpuSet stored_vacating(const std::string& name) { return stored().find(container_key(name))->vacating; }

  /// The CPUs that the rows of allocations have themselves, by container.
  std::map<std::string, std::string> own_cpus() {
    std::map<std::string, std::string> own;
    const auto rows = store_->allocations();
    for (const store::AllocationRow& row : *rows) {
      own[std::get<std::string>(row.columns.at("container"))] = std::get<std::string>(row.columns.at("own_cpus"));
    }
    return own;
  }

  const std::unique_ptr<store::Store> store_ = *store::Store::open_in_memory("boot", 0);
  const placement::PlacementRules rules_{};
  Ledger ledger_{kEightCpus, 0};
};

TEST_F(WholePoolTest, IsStoredOnceForAllThatRunOnIt) {
  const auto before = own_cpus();
  const Transition made = take("x", {0, 1});
  EXPECT_EQ(made.changes.size(), 4U) << "each of them has fewer CPUs, and is told";
  auto after = own_cpus();
  after.erase("x");
  EXPECT_EQ(after, before) << "their own rows are not written";
  for (const std::string name : {"a", "b", "c"}) {
    EXPECT_EQ(stored_cpus(name), CpuSet::range(2, 7)) << name;
    EXPECT_EQ(stored_vacating(name), (CpuSet{0, 1})) << name;
  }
}

TEST_F(WholePoolTest, IsLeftWhenTheLastContainerHasLeft) {
  take("x", {0, 1});
  commit(event::Converged{container_key("a"), CpuSet::range(2, 7)});
  commit(event::Converged{container_key("b"), CpuSet::range(2, 7)});
  EXPECT_THAT(ledger_.find(container_key("a"))->vacating, IsEmpty());
  EXPECT_EQ(stored_vacating("c"), (CpuSet{0, 1}));
  EXPECT_EQ(stored_vacating("a"), (CpuSet{0, 1})) << "a daemon that starts again looks where it is";
  commit(event::Converged{container_key("c"), CpuSet::range(2, 7)});
  for (const std::string name : {"a", "b", "c"}) EXPECT_THAT(stored_vacating(name), IsEmpty()) << name;
}

TEST_F(WholePoolTest, IsNotSharedByAContainerThatHasLessOfIt) {
  create_shared("d", CpuSet::range(0, 3));
  take("x", {0, 4});
  EXPECT_EQ(own_cpus().at("d"), "1-3");
  EXPECT_EQ(stored_cpus("d"), CpuSet::range(1, 3));
  EXPECT_EQ(stored_vacating("d"), (CpuSet{0}));
}

TEST_F(WholePoolTest, GivesAContainerThatLeavesItARowOfItsOwn) {
  take("x", {0, 1});
  commit(event::Moved{besteffort("a"), shared_on({4, 5}, {4, 5}), AuditEvent::kReplaced});
  commit(event::Converged{container_key("b"), CpuSet::range(2, 7)});
  take("y", {2});
  EXPECT_EQ(stored_cpus("a"), (CpuSet{4, 5}));
  EXPECT_EQ(stored_vacating("a"), (CpuSet{0, 1, 2, 3, 6, 7}));
  EXPECT_EQ(stored_cpus("b"), CpuSet::range(3, 7));
}

TEST_F(WholePoolTest, KeepsTheCpusOfAContainerApartThatMayHaveOthersToLeave) {
  commit(event::Drifted{container_key("a"), CpuSet{9}, ""});
  EXPECT_EQ(stored_vacating("a"), (CpuSet{9}));
  EXPECT_THAT(stored_vacating("b"), IsEmpty());
  commit(event::Converged{container_key("a"), CpuSet::range(0, 7)});
  EXPECT_TRUE(ledger_.find(container_key("a"))->shares_pool_row);
}

TEST_F(WholePoolTest, LeavesItsContainersWhereTheyAreIfNothingIsLeft) {
  take("x", CpuSet::range(0, 7));
  EXPECT_THAT(ledger_.pool(), IsEmpty());
  for (const std::string name : {"a", "b", "c"}) EXPECT_EQ(stored_cpus(name), CpuSet::range(0, 7)) << name;
}

TEST_F(WholePoolTest, IsReadBackWithWhatIsLeft) {
  take("x", {0});
  Ledger loaded = stored();
  EXPECT_EQ(loaded.pool_vacating(), (CpuSet{0}));
  for (const std::string name : {"a", "b", "c"}) {
    const Transition left = compute_transition(loaded, rules_, std::chrono::milliseconds(1),
                                               event::Converged{container_key(name), CpuSet::range(1, 7)});
    EXPECT_EQ(left.pool_vacating.empty(), name == "c") << name;
    loaded.apply(left);
  }
}

TEST_F(WholePoolTest, IsRecordedAgainInANewDatabase) {
  take("x", {0, 1});
  const std::unique_ptr<store::Store> anew = *store::Store::open_in_memory("boot", 0);
  ASSERT_TRUE(write_again(*anew, record_again(ledger_, {}, std::chrono::milliseconds(1), "the test says so")));
  const Ledger loaded = load_ledger(*anew, ledger_.inventory()).ledger;
  EXPECT_EQ(loaded.find(container_key("a"))->placement.cpus, CpuSet::range(2, 7));
  EXPECT_EQ(loaded.find(container_key("a"))->vacating, (CpuSet{0, 1}));
}

}  // namespace
}  // namespace topolet::engine
