#include "core/engine/converge/memory_narrower.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/engine/state/transitions.hpp"
#include "core/placement/decide.hpp"
#include "tests/engine/converge_test.hpp"
#include "tests/engine/crowds.hpp"

namespace topolet::engine {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::StartsWith;

/// A container that has memory nodes 0 and 1, and is to have one of them in the end.
Allocation moving(const std::string& name, const CpuSet& cpus, std::uint32_t to) {
  Allocation allocation = exclusive(name, cpus);
  allocation.placement.mems = NodeSet{0, 1};
  allocation.mems_to_keep = NodeSet{to};
  return allocation;
}

/// Binds all memory to node 1.
class BindingPolicy : public LeastAskedPolicy {
 public:
  Result<placement::Adjustment> adjust(const placement::PolicyRequest& /*request*/,
                                       const placement::ChosenPlacement& /*chosen*/) override {
    placement::Adjustment adjustment;
    adjustment.mems = NodeSet{1};
    return adjustment;
  }
};

class MemoryNarrowerTest : public ConvergeTest {
 protected:
  explicit MemoryNarrowerTest(bool migrates = true) : ConvergeTest(rules_with(migrates)) {}

  static placement::PlacementRules rules_with(bool migrates) {
    placement::PlacementRules rules;
    rules.memory_migrate = migrates;
    return rules;
  }

  void begin_with(const std::vector<Allocation>& allocations) {
    begin(allocations);
    narrower_ = std::make_unique<MemoryNarrower>(MemoryNarrower::Deps{
        loop_, *committer_, *cpusets_, *mover_, loop_.clock(), *log_, [this](MemoryNarrower::Work work) -> Status {
          writes_.push_back(std::move(work));
          return {};
        }});
  }

  /// A container that topolet has not made runs on all CPUs, with its memory bound to node 0. Policies bind it to
  /// node 1. `more`: files of its cgroup that tell what it requests.
  const Allocation& find_running(std::map<std::string, std::string> more) {
    placer_ = Placer({topology_, placement::make_candidates(*topology_, topology_->allowed), rules_,
                      [](const auto& request, const placement::PlacementRules& rules) {
                        return decide(*request, rules, {{.policy = std::make_shared<BindingPolicy>()}});
                      }});
    begin_with({});
    runtime_.tell_only_processes();
    runtime_.put(pod_of("a").sandbox);
    runtime_.put("c-a", {.pid = 1, .cpus = CpuSet::range(0, 7)});
    more.merge(std::map<std::string, std::string>{
        {"cpuset.cpus.effective", "0-7"}, {"cpuset.mems", "0"}, {"memory.numa_stat", "anon N0=8192"}});
    kernel_.run_in(1, "/kubepods/pod1/c-a", more);
    reconciler_->run([](const Status&) {});
    loop_.advance(std::chrono::seconds(1));
    const Allocation* found = committer_->ledger().find_by_container("c-a");
    if (found == nullptr) throw std::logic_error("it was not found");
    return *found;
  }
  std::filesystem::path cgroup(const std::string& name) const {
    return directory_.path() / "sys/fs/cgroup/kubepods/pod1" / ("c-" + name);
  }
  /// In a cgroup that bears its name.
  void run_in_cgroup(const std::string& name) {
    const Allocation& allocation = *find(name);
    start_converged(name);
    kernel_.run_in(100 + name.front(), "/kubepods/pod1/c-" + name,
                   {{"cpuset.cpus.effective", allocation.placement.cpus.to_string()},
                    {"cpuset.mems", allocation.placement.mems.to_string()},
                    {"memory.numa_stat", "anon N0=8192 N1=4096"}});
    mover_->verify("c-" + name);
    loop_.run();
    runtime_.take_calls();
    take_transitions();
  }
  void check() {
    narrower_->check();
    loop_.run();
  }
  /// The kernel has moved the memory, or refused to.
  void end_write() {
    ASSERT_FALSE(writes_.empty());
    const MemoryNarrower::Work work = std::move(writes_.front());
    writes_.erase(writes_.begin());
    work();
    loop_.run();
  }
  std::string mems_in_kernel(const std::string& name) const {
    std::ifstream in(cgroup(name) / "cpuset.mems");
    std::string mems;
    in >> mems;
    return mems;
  }

  std::vector<MemoryNarrower::Work> writes_;  ///< that wait for their thread
  std::unique_ptr<MemoryNarrower> narrower_;
};

TEST_F(MemoryNarrowerTest, WritesToTheCgroupApartAndTellsTheRuntimeThen) {
  begin_with({moving("a", {0}, 0)});
  run_in_cgroup("a");
  check();
  ASSERT_EQ(writes_.size(), 1U);
  EXPECT_EQ(find("a")->placement.mems, (NodeSet{0, 1})) << "its memory is still on both";
  EXPECT_THAT(runtime_.take_calls(), IsEmpty());
  end_write();
  EXPECT_EQ(mems_in_kernel("a"), "0");
  EXPECT_EQ(find("a")->placement.mems, NodeSet{0});
  EXPECT_TRUE(find("a")->mems_to_keep.empty());
  EXPECT_THAT(runtime_.take_calls(), Contains(StartsWith("UpdateContainerResources c-a")));
}

TEST_F(MemoryNarrowerTest, NarrowsOneAtATime) {
  begin_with({moving("a", {0}, 0), moving("b", {4}, 1)});
  run_in_cgroup("a");
  run_in_cgroup("b");
  check();
  check();
  ASSERT_EQ(writes_.size(), 1U);
  end_write();
  ASSERT_EQ(writes_.size(), 1U);
  end_write();
  EXPECT_EQ(mems_in_kernel("a"), "0");
  EXPECT_EQ(mems_in_kernel("b"), "1");
  EXPECT_THAT(writes_, IsEmpty());
}

TEST_F(MemoryNarrowerTest, WaitsWhileSomethingIsUnderWayForTheContainer) {
  begin_with({moving("a", {0}, 0)});
  run_in_cgroup("a");
  ContainerQueues::OperationDone update_is_over;
  mover_->run_in_turn("c-a", ContainerQueues::Needs::kTurn,
                      [&](const Status&, const ContainerQueues::OperationDone& done) { update_is_over = done; });
  loop_.run();
  check();
  EXPECT_THAT(writes_, IsEmpty());
  update_is_over(false);
  check();
  EXPECT_EQ(writes_.size(), 1U);
}

TEST_F(MemoryNarrowerTest, HoldsUpNothingThatComesWhileTheMemoryMoves) {
  begin_with({moving("a", {0}, 0)});
  run_in_cgroup("a");
  check();
  bool ran = false;
  mover_->run_in_turn("c-a", ContainerQueues::Needs::kTurn,
                      [&](const Status&, const ContainerQueues::OperationDone& done) {
                        ran = true;
                        done(false);
                      });
  loop_.run();
  EXPECT_TRUE(ran);
}

TEST_F(MemoryNarrowerTest, LeavesAContainerThatWasMovedOnAsItIsToBeNow) {
  begin_with({moving("a", {0}, 0)});
  run_in_cgroup("a");
  check();
  Plan plan = exclusive_on({4});
  plan.decision.placement.mems = NodeSet{1};
  commit(event::Moved{guaranteed("a", 1), plan, AuditEvent::kReplaced});
  end_write();
  EXPECT_EQ(find("a")->placement.mems, (NodeSet{0, 1}));
  EXPECT_EQ(find("a")->mems_to_keep, NodeSet{1});
}

TEST_F(MemoryNarrowerTest, TriesAgainLaterWhatTheKernelRefuses) {
  begin_with({moving("a", {0}, 0)});
  run_in_cgroup("a");
  std::filesystem::remove(cgroup("a") / "cpuset.mems");
  std::filesystem::create_directory(cgroup("a") / "cpuset.mems");
  check();
  end_write();
  EXPECT_EQ(find("a")->mems_to_keep, NodeSet{0});
  check();
  EXPECT_THAT(writes_, IsEmpty());
  loop_.advance(std::chrono::minutes(1));
  check();
  EXPECT_EQ(writes_.size(), 1U);
}

TEST_F(MemoryNarrowerTest, TellsTheRuntimeWhereTheCgroupIsNotKnown) {
  begin_with({moving("a", {0}, 0)});
  start_converged("a");
  check();
  EXPECT_THAT(writes_, IsEmpty());
  EXPECT_EQ(find("a")->placement.mems, NodeSet{0});
  EXPECT_THAT(runtime_.take_calls(), Contains(StartsWith("UpdateContainerResources c-a")));
}

/// Of a Guaranteed container that requests one and a half CPUs.
const std::map<std::string, std::string> kRequest = {{"cpu.weight", "59"}, {"cpu.max", "150000 100000"}};

TEST_F(MemoryNarrowerTest, LeavesAContainerThatIsFoundItsMemoryNodesAtFirst) {
  const Allocation& found = find_running(kRequest);
  EXPECT_EQ(found.placement.mode, placement::Mode::kShared) << found.reason;
  EXPECT_EQ(found.placement.mems, (NodeSet{0, 1}));
  EXPECT_EQ(found.mems_to_keep, NodeSet{1});
  check();
  ASSERT_EQ(writes_.size(), 1U) << "its memory moves apart";
  end_write();
  EXPECT_EQ(mems_in_kernel("a"), "1");
  EXPECT_EQ(find("a")->placement.mems, NodeSet{1});
}

TEST_F(MemoryNarrowerTest, LeavesAContainerOfUnknownRequestItsMemoryNodes) {
  const Allocation& found = find_running({});
  EXPECT_EQ(found.placement.mems, NodeSet{0});
  EXPECT_TRUE(found.mems_to_keep.empty());
  check();
  EXPECT_THAT(writes_, IsEmpty());
}

TEST_F(MemoryNarrowerTest, MeasuresWhatAMoveLeavesBehind) {
  begin_with({exclusive("a", {0}), exclusive("b", {1})});
  run_in_cgroup("a");
  start_converged("b");
  std::vector<std::optional<MemoryCost>> costs;
  commit(event::Restarted{false, topology_, {}});
  struct Costs final : Observer {
    explicit Costs(std::vector<std::optional<MemoryCost>>& all) : all_(all) {}
    void on_durable(const Transition& transition) override {
      for (const Change& change : transition.changes) {
        if (change.audit) all_.push_back(change.audit->memory_cost);
      }
    }
    std::vector<std::optional<MemoryCost>>& all_;
  } observer(costs);
  committer_->subscribe(observer);
  commit(event::Moved{guaranteed("a", 1), exclusive_on({4}), AuditEvent::kReplaced});
  ASSERT_FALSE(costs.empty());
  EXPECT_EQ(costs.front(), (MemoryCost{NodeSet{0}, 8192, false}));
  costs.clear();
  commit(event::Moved{guaranteed("b", 1), exclusive_on({5}), AuditEvent::kReplaced});
  ASSERT_FALSE(costs.empty());
  EXPECT_EQ(costs.front(), (MemoryCost{NodeSet{0}, std::nullopt, false})) << "unknown is not none";
  costs.clear();
  commit(event::Moved{guaranteed("b", 1), exclusive_on({6}), AuditEvent::kReplaced});
  ASSERT_FALSE(costs.empty());
  EXPECT_EQ(costs.front(), std::nullopt) << "it stays on its node";
}

class WithoutMigration : public MemoryNarrowerTest {
 protected:
  WithoutMigration() : MemoryNarrowerTest(false) {}
};

TEST_F(WithoutMigration, LeavesAllMemoryNodes) {
  begin_with({moving("a", {0}, 0)});
  run_in_cgroup("a");
  check();
  EXPECT_THAT(writes_, IsEmpty());
}

TEST_F(WithoutMigration, LeavesAContainerThatIsFoundItsMemoryNodes) {
  const Allocation& found = find_running(kRequest);
  EXPECT_EQ(found.placement.mems, (NodeSet{0, 1}));
  EXPECT_TRUE(found.mems_to_keep.empty());
  check();
  EXPECT_THAT(writes_, IsEmpty());
}

/// A running container gains memory nodes first.
TEST(MemoryNodes, GrowFirstWhereMemoryIsMoved) {
  placement::PlacementRules rules;
  rules.memory_migrate = true;
  Allocation bound = exclusive("a", {0});
  bound.placement.mems = NodeSet{0};
  const auto moved = [&](Allocation before, const NodeSet& chosen) {
    const Ledger ledger = ledger_of({std::move(before)});
    Plan plan = exclusive_on({4});
    plan.decision.placement.mems = chosen;
    const Transition made = compute_transition(ledger, rules, std::chrono::milliseconds(1),
                                               event::Moved{guaranteed("a", 1), plan, AuditEvent::kReplaced});
    return *made.changes.front().after;
  };
  EXPECT_EQ(moved(bound, {1}).placement.mems, (NodeSet{0, 1}));
  EXPECT_EQ(moved(bound, {1}).mems_to_keep, NodeSet{1});
  EXPECT_TRUE(moved(bound, {0, 1}).mems_to_keep.empty()) << "it keeps all that it has";
  EXPECT_TRUE(moved(exclusive("a", {0}), {1}).placement.mems.empty()) << "it may have memory on any node";
  EXPECT_EQ(moved(exclusive("a", {0}), {1}).mems_to_keep, NodeSet{1});
  bound.phase = Phase::kCreated;
  EXPECT_EQ(moved(bound, {1}).placement.mems, NodeSet{1}) << "it has no memory yet";
  bound.phase = Phase::kRunning;
  rules.memory_migrate = false;
  EXPECT_TRUE(moved(bound, {1}).mems_to_keep.empty());
}

/// Where its memory is to be, and what it is to keep in the end, when it is found.
TEST(GrowingMemoryNodes, ComeFirstForAContainerThatIsFound) {
  placement::PlacementRules rules;
  rules.memory_migrate = true;
  const auto found_with = [&rules](const NodeSet& bound, operations::ContainerState state) {
    operations::ContainerInfo found;
    found.id = "c1";
    found.state = state;
    Plan plan = exclusive_on({4});
    plan.decision.placement.mems = NodeSet{1};
    event::Adopted event{guaranteed("a", 1), plan, found, AuditEvent::kAdopted, {0}};
    event.bound_mems = bound;
    const Transition made =
        compute_transition(ledger_of({}), rules, std::chrono::milliseconds(1), Event(std::move(event)));
    return *made.changes.front().after;
  };
  const Allocation running = found_with({0}, operations::ContainerState::kRunning);
  EXPECT_EQ(running.placement.mems, (NodeSet{0, 1}));
  EXPECT_EQ(running.mems_to_keep, NodeSet{1});
  const Allocation unbound = found_with({}, operations::ContainerState::kRunning);
  EXPECT_TRUE(unbound.placement.mems.empty()) << "it may have memory on any node";
  EXPECT_EQ(unbound.mems_to_keep, NodeSet{1});
  EXPECT_EQ(found_with({0}, operations::ContainerState::kCreated).placement.mems, NodeSet{1}) << "it has no memory yet";
  EXPECT_TRUE(found_with({1}, operations::ContainerState::kRunning).mems_to_keep.empty()) << "it is there";
}

}  // namespace
}  // namespace topolet::engine
