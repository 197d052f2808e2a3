// The properties of the ledger that hold whatever happens, in whatever order.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <optional>

#include "core/engine/planning/crash_hold.hpp"
#include "core/engine/state/load_ledger.hpp"
#include "core/engine/state/transitions.hpp"
#include "core/engine/state/write_transition.hpp"
#include "core/placement/decide.hpp"
#include "tests/engine/ledgers.hpp"
#include "tests/engine/transition_text.hpp"
#include "tests/support/dice.hpp"

namespace topolet::engine {
namespace {

using testing::Dice;
using testing::TestNode;

/// A ledger to which things happen at random, as an engine would let them: plans come from a placer, and only who is
/// there is converged, moved or undone.
class RandomLedger {
 public:
  explicit RandomLedger(std::uint64_t seed)
      : dice_(seed),
        node_("node:2 core:4 pu:1"),
        placer_(
            {node_.topology, node_.candidates, node_.rules,
             [](const auto& request, const placement::PlacementRules& rules) { return decide(*request, rules, {}); }}) {
    happen(event::Restarted{});
  }

  void step() {
    now_ += std::chrono::milliseconds(1);
    const std::optional<Event> event = draw();
    if (event) happen(*event);
  }

 private:
  const Ledger& ledger() const { return node_.ledger; }

  std::optional<Event> draw() {
    if (ledger().allocations().empty() || dice_.permille(250)) return create();
    std::vector<placement::ContainerKey> keys;
    for (const auto& [key, allocation] : ledger().allocations()) keys.push_back(key);
    const placement::ContainerKey key = dice_.one_of(keys);
    const Allocation& allocation = *ledger().find(key);
    switch (dice_.below(26)) {
      case 0:
        return event::CreateRefused{key, {Code::kUnknown, "no"}};
      case 1:
      case 2:
      case 3:
        if (allocation.phase != Phase::kPending) return std::nullopt;
        return event::CreateConfirmed{key, "c" + std::to_string(++containers_), sent_[key]};
      case 4:
        if (allocation.phase != Phase::kPending) return std::nullopt;
        return event::CreateLeftInDoubt{key, {Code::kUnavailable, "gone"}};
      case 5:
        if (allocation.phase != Phase::kInDoubt) return std::nullopt;
        return event::CreateRetried{key};
      case 6:
        return event::StartRequested{key};
      case 7:
        return event::StartConfirmed{key};
      case 8:
        return event::StartRefused{key};
      case 9:
        return event::Exited{key, static_cast<std::int32_t>(dice_.below(2)),
                             dice_.permille(300) ? "stopped" : "exited"};
      case 10:
        return event::StopRequested{key};
      case 11:
        return event::PodStopped{key.sandbox_id};
      case 12:
        return event::PodSeen{{key.sandbox_id, key.pod_uid, "default", key.name, "", true, {}}};
      case 13:
      case 14:
        return move(allocation);
      case 15:
        return undo();
      case 16:
      case 17:
        return converge(allocation);
      case 18:
        return drift(allocation);
      case 19:
        return machine();
      case 20:
        if (dice_.permille(500)) node_.ledger = stored();
        return event::Restarted{};
      case 21:
        if (undo_) return std::nullopt;
        return event::MoveWithdrawn{key, "it did not work"};
      case 22:
        return narrow_besteffort();
      case 23:
        return share_memory();
      case 24:
        if (undo_ || !dice_.permille(300)) return std::nullopt;
        return event::Released{dice_.permille(500), "released"};
      default:
        return event::CrashHoldExpired{ledger().kept().empty() ? placement::ContainerKey() : ledger().kept().front()};
    }
  }

  Event narrow_besteffort() {
    CpuSet some;
    for (const std::uint32_t cpu : ledger().pool()) {
      if (dice_.permille(300)) some.insert(cpu);
    }
    return event::BestEffortNarrowed{std::move(some), "", ""};
  }

  /// With all that have a part, and some that do not, as what they are may have changed.
  std::optional<Event> share_memory() {
    event::BestEffortMemoryShared shared;
    for (const auto& [key, allocation] : ledger().allocations()) {
      if (allocation.is_managed() && dice_.permille(600))
        shared.changes.push_back({key, dice_.permille(300) ? kMemoryHighLifted : std::int64_t{1} << dice_.below(40)});
    }
    return shared.changes.empty() ? std::nullopt : std::optional<Event>(std::move(shared));
  }

  /// Some CPUs, or a share of the pool. Three of the names are those of one pod's containers.
  placement::Workload workload(const std::string& name) {
    const auto cpus = static_cast<std::int64_t>(dice_.below(4));
    placement::Workload made = cpus == 0 ? testing::besteffort(name) : testing::guaranteed(name, cpus);
    if (name < "d") {
      made.key.pod_uid = "uid-abc";
      made.key.sandbox_id = "sandbox-abc";
    }
    return made;
  }

  std::optional<Event> create() {
    placement::Workload asked = workload(std::string(1, static_cast<char>('a' + dice_.below(6))));
    asked.key.attempt = static_cast<std::uint32_t>(dice_.below(3));
    if (ledger().find(asked.key) != nullptr) return std::nullopt;
    std::vector<placement::ContainerKey> over;
    if (const Allocation* init = ledger().find_ended_init(asked.key); init != nullptr)
      over.push_back(init->workload.key);
    std::optional<Ledger> without;
    Plan plan = reclaim_and_plan(placer_, ledger_without(ledger(), over, without), asked, {});
    if (plan.decision.denied) return event::Denied{asked, plan.decision};
    sent_[asked.key] = {plan.decision.placement.cpus, {}};
    return event::CreateAdmitted{asked, std::move(plan), {}, dice_.permille(500)};
  }

  std::optional<Event> move(const Allocation& allocation) {
    if (!allocation.is_managed() || undo_) return std::nullopt;
    placement::Workload wanted = workload(allocation.workload.key.name);
    wanted.key = allocation.workload.key;
    Plan plan = placer_.plan(ledger(), wanted);
    if (plan.decision.denied) return std::nullopt;
    if (dice_.permille(500)) plan.cause = MoveCause::kHeal;
    // If it has nowhere else to go, its former CPUs are no longer kept for it.
    if (dice_.permille(500) && allocation.within.intersects(ledger().pool())) undo_ = allocation;
    return event::Moved{wanted, std::move(plan), AuditEvent::kResized};
  }

  std::optional<Event> undo() {
    if (!undo_) return std::nullopt;
    return event::ChangeReverted{*std::exchange(undo_, std::nullopt), "it did not work", dice_.permille(500)};
  }

  /// To where it is to be now, or to where it was to be before.
  std::optional<Event> converge(const Allocation& allocation) {
    if (!allocation.is_managed()) return std::nullopt;
    const CpuSet to = dice_.permille(300) ? possible_[allocation.container_id] : allocation.placement.cpus;
    possible_[allocation.container_id] = to;
    return event::Converged{allocation.workload.key, to};
  }

  std::optional<Event> drift(const Allocation& allocation) {
    if (!allocation.is_managed()) return std::nullopt;
    const CpuSet observed{static_cast<std::uint32_t>(dice_.below(8))};
    possible_[allocation.container_id] |= observed;
    return event::Drifted{allocation.workload.key, observed, dice_.permille(500) ? "seen" : ""};
  }

  std::optional<Event> machine() {
    if (undo_) return std::nullopt;
    CpuInventory rules = ledger().inventory();
    rules.allowed = CpuSet::range(0, 7);
    if (dice_.permille(500)) rules.allowed.erase(static_cast<std::uint32_t>(dice_.below(8)));
    return event::MachineChanged{rules};
  }

  void happen(const Event& event) {
    const std::int64_t next_decision = ledger().next_decision();
    const Transition made = compute_transition(ledger(), node_.rules, now_, event);
    const Transition again = compute_transition(ledger(), node_.rules, now_, event);
    EXPECT_EQ(describe(made), describe(again));
    EXPECT_EQ(made.generation, ledger().generation() + 1);
    EXPECT_EQ(made.pool_before, ledger().pool());
    node_.ledger.apply(made);
    EXPECT_EQ(ledger().generation(), made.generation);
    EXPECT_EQ(ledger().pool(), made.pool);
    EXPECT_GE(ledger().next_decision(), next_decision);
    const Status written = write(*store_, made);
    EXPECT_TRUE(written.has_value()) << written.error().message;
    for (const Change& change : made.changes) note(change);
    check();
    if (dice_.permille(200)) check_stored();
  }

  /// As a daemon that starts again finds it.
  Ledger stored() const {
    LoadedLedger loaded = load_ledger(*store_, ledger().inventory());
    EXPECT_TRUE(loaded.status.has_value()) << loaded.status.error().message;
    return std::move(loaded.ledger);
  }

  /// Who runs on the whole pool has no row of its own that says so. After a restart some more CPUs may count as not
  /// left yet, of those that such containers have left by now; never fewer.
  void check_stored() const {
    const Ledger loaded = stored();
    EXPECT_EQ(loaded.pool(), ledger().pool());
    ASSERT_EQ(loaded.allocations().size(), ledger().allocations().size());
    for (const auto& [key, allocation] : ledger().allocations()) {
      SCOPED_TRACE(key.name + " " + std::to_string(key.attempt));
      ASSERT_NE(loaded.find(key), nullptr);
      Allocation found = *loaded.find(key);
      EXPECT_TRUE(allocation.vacating.is_subset_of(found.vacating));
      EXPECT_TRUE(allocation.shares_pool_row || allocation.vacating == found.vacating);
      EXPECT_TRUE(!allocation.shares_pool_row || allocation.placement.cpus == ledger().pool());
      found.vacating = allocation.vacating;
      found.generation = allocation.generation;
      EXPECT_EQ(found, allocation);
    }
  }

  void note(const Change& change) {
    const std::string id = change.before ? change.before->container_id : "";
    if (!id.empty() && (!change.after || !change.after->is_managed())) possible_.erase(id);
    if (undo_ && !change.after && change.before->workload.key == undo_->workload.key) undo_.reset();
    if (!change.after || !change.after->is_managed() || possible_.count(change.after->container_id) != 0) return;
    possible_[change.after->container_id] = sent_[change.after->workload.key].cpus;
  }

  void check() const {
    CpuSet alone;
    for (const auto& [key, allocation] : ledger().allocations()) {
      SCOPED_TRACE(key.name + " " + std::to_string(key.attempt));
      const CpuSet own = allocation.dedicated_cpus() | allocation.vacating_alone;
      EXPECT_TRUE(!allocation.is_kept() || allocation.is_exclusive());
      EXPECT_FALSE(allocation.is_kept() && ledger().find_kept(key) != nullptr) << "kept twice";
      EXPECT_FALSE(own.intersects(ledger().pool())) << own.to_string();
      EXPECT_FALSE(own.intersects(alone)) << own.to_string() << " is another's too";
      alone |= own;
      EXPECT_FALSE(allocation.vacating.intersects(allocation.placement.cpus));
      const CpuSet left_over = ledger().besteffort() & ledger().pool();
      if (allocation.yields() && !allocation.stuck && !left_over.empty()) {
        EXPECT_TRUE(allocation.placement.cpus.is_subset_of(left_over)) << allocation.placement.cpus.to_string();
      }
      EXPECT_TRUE(allocation.vacating_alone.is_subset_of(allocation.vacating));
      if (!allocation.is_managed()) {
        EXPECT_TRUE(allocation.vacating.empty());
        EXPECT_FALSE(allocation.moved_from.has_value());
        continue;
      }
      EXPECT_FALSE(allocation.placement.cpus.empty());
      const CpuSet& possible = possible_.at(allocation.container_id);
      EXPECT_TRUE(possible.is_subset_of(allocation.placement.cpus | allocation.vacating))
          << "it may run on " << possible.to_string();
    }
    EXPECT_EQ(ledger().pool() | alone, ledger().inventory().allowed | alone) << "a CPU is lost";
  }

  Dice dice_;
  const std::unique_ptr<store::Store> store_ = *store::Store::open_in_memory("boot", 0);
  TestNode node_;
  Placer placer_;
  std::chrono::milliseconds now_{1};
  std::map<placement::ContainerKey, ContainerCpuset> sent_;
  std::map<std::string, CpuSet> possible_;  ///< where a container may run for all that the runtime was told
  std::optional<Allocation> undo_;
  int containers_ = 0;
};

TEST(Transitions, KeepTheLedgersPromisesWhateverHappens) {
  const char* given = std::getenv("TOPOLET_SEED");
  const std::uint64_t first = given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
  const std::uint64_t count = given != nullptr ? 1 : 150;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE("TOPOLET_SEED=" + std::to_string(seed));
    RandomLedger ledger(seed);
    for (int step = 0; step < 120; ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      ledger.step();
      if (::testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace topolet::engine
