#include "core/engine/state/unified_files.hpp"

#include <gtest/gtest.h>

#include "core/engine/state/container_cpuset.hpp"
#include "core/engine/state/transitions.hpp"
#include "tests/engine/ledgers.hpp"

namespace topolet::engine {
namespace {

using Files = SharedStringMap;

const Files kHigh4096{{"memory.high", "4096"}};

Allocation slowed(const std::string& memory_high, std::int64_t memory_limit) {
  Allocation allocation = shared("a");
  allocation.unified = {{"memory.high", memory_high}};
  allocation.workload.demand.memory_limit_bytes = memory_limit;
  return allocation;
}

TEST(UnifiedFiles, AreToldUpToTheMemoryLimit) {
  EXPECT_EQ(unified_to_tell(shared("a")), Files());
  EXPECT_EQ(unified_to_tell(slowed("4096", 0)), kHigh4096);
  EXPECT_EQ(unified_to_tell(slowed("4096", 4096)), kHigh4096);
  EXPECT_EQ(unified_to_tell(slowed("4096", 4095)), Files()) << "a resize has lowered it";
  EXPECT_EQ(unified_to_tell(slowed("max", 4095)), (Files{{"memory.high", "max"}}));
  EXPECT_EQ(desired_cpuset_of(slowed("4096", 0)).unified, kHigh4096);
}

TEST(UnifiedFiles, AreTheKubeletsWhereItSetsThem) {
  Allocation allocation = slowed("4096", 0);
  allocation.workload.kubelet_unified = {{"memory.high", "1"}};
  EXPECT_EQ(unified_to_tell(allocation), Files());
}

TEST(UnifiedFiles, OfAContainerThatWasFoundAreLeftAlone) {
  Allocation allocation = slowed("4096", 0);
  allocation.adopted = true;
  EXPECT_EQ(unified_to_tell(allocation), Files());
}

class UnifiedFilesOverTime : public ::testing::Test {
 protected:
  Allocation happen(const Event& event) {
    ledger_.apply(compute_transition(ledger_, {}, std::chrono::milliseconds(1000), event));
    const Allocation* allocation = ledger_.find(key_);
    return allocation == nullptr ? Allocation() : *allocation;
  }
  static Plan setting(Plan plan, const std::string& memory_high) {
    if (memory_high.empty()) return plan;
    plan.decision.unified = {{"memory.high", memory_high}};
    plan.decision.placement.added.unified = {{"memory.high", memory_high}};
    return plan;
  }
  Allocation move_to(const CpuSet& cpus, const std::string& memory_high) {
    return happen(event::Moved{besteffort("a"), setting(shared_on(cpus), memory_high), AuditEvent::kReplaced});
  }

  Ledger ledger_ = ledger_of({});
  const placement::ContainerKey key_ = besteffort("a").key;
};

TEST_F(UnifiedFilesOverTime, StayUntilTheyAreSetAgain) {
  EXPECT_EQ(happen(event::CreateAdmitted{besteffort("a"), setting(shared_on({0, 1}), "4096")}).unified, kHigh4096);
  happen(event::CreateConfirmed{key_, "c1", {CpuSet{0, 1}, {}}});
  EXPECT_EQ(move_to({2}, "").unified, kHigh4096);
  EXPECT_EQ(move_to({3}, "max").unified, (Files{{"memory.high", "max"}}));
  const Allocation before = *ledger_.find(key_);
  EXPECT_EQ(move_to({4}, "8192").unified, (Files{{"memory.high", "8192"}}));
  EXPECT_EQ(happen(event::ChangeReverted{before, "why"}).unified, before.unified);
}

TEST_F(UnifiedFilesOverTime, AreNotThoseOfAnEarlierCreate) {
  happen(event::CreateAdmitted{besteffort("a"), setting(shared_on({0, 1}), "4096")});
  happen(event::CreateLeftInDoubt{key_, {}});
  EXPECT_EQ(happen(event::CreateAdmitted{besteffort("a"), shared_on({0, 1})}).unified, Files());
}

TEST_F(UnifiedFilesOverTime, AreTheKubeletsFromAnUpdateOn) {
  happen(event::CreateAdmitted{besteffort("a"), setting(shared_on({0, 1}), "4096")});
  happen(event::CreateConfirmed{key_, "c1", {CpuSet{0, 1}, {}}});
  event::DemandChanged changed{key_, {}, "why"};
  changed.kubelet_unified = Files{{"memory.high", "1"}};
  const Allocation now = happen(changed);
  EXPECT_EQ(now.workload.kubelet_unified, *changed.kubelet_unified);
  EXPECT_EQ(unified_to_tell(now), Files());
}

}  // namespace
}  // namespace topolet::engine
