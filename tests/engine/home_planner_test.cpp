#include "core/engine/planning/home_planner.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "core/engine/state/transitions.hpp"
#include "core/placement/decide.hpp"
#include "tests/engine/crowds.hpp"
#include "tests/support/dice.hpp"

namespace topolet::engine {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const CpuSet kHomeNode = CpuSet::range(0, 3);
const CpuSet kOtherNode = CpuSet::range(4, 7);

placement::ContainerKey key_named(const std::string& name) { return besteffort(name).key; }

/// A ledger, what is measured, and time that passes when the test says so: the planner's changes are carried out.
class HomePlannerTest : public ::testing::Test {
 protected:
  void begin(std::vector<Allocation> allocations) { ledger_ = ledger_of(std::move(allocations)); }
  void use(const std::string& name, std::int64_t milli, std::optional<std::uint32_t> psi = std::nullopt) {
    load_.containers["c-" + name] = {milli, psi, {}};
  }
  const Allocation& of(const std::string& name) const { return *ledger_.find(key_named(name)); }
  CpuSet cpus_of(const std::string& name) const { return of(name).placement.cpus; }

  /// Returns the changes of one second.
  std::vector<HomePlanner::Change> step() {
    now_ += seconds(1);
    const HomePlanner::Times now{std::chrono::steady_clock::time_point(now_), now_};
    const HomeUse use(ledger_, *topology_, load_);
    lasting_.note(ledger_, use, now.steady);
    std::vector<HomePlanner::Change> changes = planner_.narrowed(use, lasting_, now);
    if (changes.empty()) changes = planner_.widened(use, lasting_, now);
    if (changes.empty()) return changes;
    ledger_.apply(compute_transition(ledger_, {}, now_, event::HomesWidened{changes}));
    return changes;
  }
  std::vector<HomePlanner::Change> pass(int count) {
    std::vector<HomePlanner::Change> all;
    for (int i = 0; i < count; ++i) {
      for (HomePlanner::Change& change : step()) all.push_back(std::move(change));
    }
    return all;
  }
  void restart() { lasting_ = {}; }

  const std::shared_ptr<const topology::Topology> topology_ = testing::machine("node:2 core:4 pu:1");
  const Placer placer_{{topology_, placement::make_candidates(*topology_, topology_->allowed), {}, {}}};
  Ledger ledger_ = ledger_of({});
  load::Load load_;
  HomePlanner::Lasting lasting_;
  std::chrono::milliseconds now_ = seconds(1'000'000);
  const HomePlanner planner_{ledger_, placer_};
};

TEST_F(HomePlannerTest, WidensWhoPressesItsHomeForTenSeconds) {
  begin({asking("a", 1000, kHomeNode), asking("b", 1000, kOtherNode)});
  use("a", 3800);
  use("b", 800);
  EXPECT_THAT(pass(10), IsEmpty());
  const auto changes = step();
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].key, key_named("a"));
  // Node 1 keeps a quarter more than is used of it.
  EXPECT_EQ(changes[0].cpus, (CpuSet{5, 6, 7}));
  EXPECT_EQ(changes[0].use_permille, 950U);
  EXPECT_THAT(changes[0].reason, HasSubstr("CPUs 5-7 of node 1, which are to spare: 95 % of its home are used"));
  EXPECT_EQ(cpus_of("a"), kHomeNode | (CpuSet{5, 6, 7}));
  EXPECT_EQ(of("a").within, kHomeNode);
  EXPECT_EQ(of("a").home_cpus(), kHomeNode);
  EXPECT_THAT(pass(600), IsEmpty());
}

TEST_F(HomePlannerTest, WidensNobodyWhoseHomeIsPressedForAMoment) {
  begin({asking("a", 1000, kHomeNode), asking("b", 1000, kOtherNode)});
  use("b", 0);
  for (int i = 0; i < 20; ++i) {
    use("a", 4000);
    EXPECT_THAT(pass(9), IsEmpty());
    use("a", 3000);
    EXPECT_THAT(step(), IsEmpty());
  }
}

TEST_F(HomePlannerTest, KnowsNothingWhereNothingIsMeasured) {
  begin({asking("a", 1000, kHomeNode), asking("b", 1000, kOtherNode), asking("c", 1000, kOtherNode)});
  use("a", 4000);
  use("b", 0);
  EXPECT_THAT(pass(60), IsEmpty()) << "what c uses is not known";
  use("c", 0);
  load_.containers.erase("c-a");
  EXPECT_THAT(pass(60), IsEmpty());
  use("a", 4000);
  load_.containers["c-c"].age = seconds(6);
  EXPECT_THAT(pass(60), IsEmpty());
  load_.containers["c-c"].age = seconds(5);
  EXPECT_EQ(pass(60).size(), 1U);
}

TEST_F(HomePlannerTest, NarrowsWhenClearlyLessIsUsedOfTheHome) {
  begin({asking("a", 1000, kHomeNode), asking("b", 1000, kOtherNode)});
  use("a", 4000);
  use("b", 0);
  pass(11);
  ASSERT_TRUE(of("a").is_widened());
  use("a", 3300);  // More than four fifths of what it was.
  EXPECT_THAT(pass(60), IsEmpty());
  use("a", 3100);
  EXPECT_THAT(pass(10), IsEmpty());
  const auto changes = step();
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].reason_code, "home-relaxed");
  EXPECT_EQ(cpus_of("a"), kHomeNode);
  EXPECT_THAT(pass(600), IsEmpty());
}

TEST_F(HomePlannerTest, GivesBackAtOnceWhatTheOthersNeed) {
  begin({asking("a", 1000, kHomeNode), asking("b", 1000, kOtherNode)});
  use("a", 6000);
  use("b", 0);
  pass(11);
  ASSERT_EQ(cpus_of("a"), kHomeNode | (CpuSet{5, 6, 7}));
  pass(10);
  use("b", 2000);
  auto changes = step();
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].reason_code, "spare-needed");
  EXPECT_THAT(changes[0].reason,
              HasSubstr("it leaves CPUs 6-7 beside its home, and keeps CPU 5: node 1 needs its CPUs"));
  use("b", 4000);
  EXPECT_THAT(pass(9), IsEmpty()) << "it has changed less than ten seconds ago";
  changes = pass(1);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(cpus_of("a"), kHomeNode);
  EXPECT_THAT(pass(600), IsEmpty());
}

/// Where they wait although they use little, nobody can say how many CPUs would do.
TEST_F(HomePlannerTest, LendsNothingForTenMinutesAfterOthersHadToWait) {
  begin({asking("a", 1000, kHomeNode), asking("b", 1000, kOtherNode)});
  use("a", 4000);
  use("b", 500);
  pass(21);
  ASSERT_TRUE(of("a").is_widened());
  use("b", 500, 300);
  ASSERT_EQ(step().size(), 1U);
  EXPECT_EQ(cpus_of("a"), kHomeNode);
  use("b", 500, 0);
  EXPECT_THAT(pass(599), IsEmpty());
  EXPECT_EQ(pass(2).size(), 1U);
}

TEST_F(HomePlannerTest, WidensWhoWaitsThoughLittleIsUsed) {
  begin({asking("a", 1000, kHomeNode), asking("b", 1000, kOtherNode)});
  use("a", 2000, 250);
  use("b", 0, 0);
  EXPECT_THAT(pass(11), ElementsAre(::testing::Field(&HomePlanner::Change::use_permille, 500U)));
  use("a", 2000, 0);
  EXPECT_THAT(pass(600), IsEmpty()) << "it needs as much as then";
  use("a", 1500, 0);
  EXPECT_EQ(pass(11).size(), 1U);
}

TEST_F(HomePlannerTest, LeavesAloneWhoIsThrottledByItsQuota) {
  Allocation a = asking("a", 1000, kHomeNode);
  a.workload.demand.cpu_limit_milli = 2000;
  begin({a, asking("b", 1000, kOtherNode), asking("c", 1000, kHomeNode)});
  use("a", 2000, 900);
  use("b", 0);
  use("c", 0);
  EXPECT_THAT(pass(60), IsEmpty());
  use("c", 1900);
  const auto changes = pass(60);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].key, key_named("c"));
}

TEST_F(HomePlannerTest, WidensThoseWhoUseMoreThanTheyRequest) {
  begin({asking("a", 2000, kHomeNode), asking("b", 1000, kHomeNode), asking("c", 1000, kOtherNode)});
  use("a", 1500);
  use("b", 2400);
  use("c", 0);
  EXPECT_THAT(pass(60), ElementsAre(::testing::Field(&HomePlanner::Change::key, key_named("b"))));
}

TEST_F(HomePlannerTest, CountsContainersWithoutRequestForNothing) {
  begin({asking("a", 1000, kHomeNode), asking("b", 1000, kOtherNode), shared("hog", Phase::kRunning, kOtherNode),
         shared("idle")});
  use("a", 4000);
  use("b", 0);
  use("hog", 4000, 1000);
  EXPECT_EQ(pass(11).size(), 1U);
}

TEST_F(HomePlannerTest, GoesByWhatTheCpusCanDo) {
  begin({asking("a", 1000, kHomeNode), asking("b", 1000, kOtherNode)});
  use("a", 2000);
  use("b", 0);
  EXPECT_THAT(pass(30), IsEmpty());
  load_.nodes[0] = {2000, {}};
  load_.nodes[1] = {500, {}};
  EXPECT_EQ(pass(11).size(), 1U);
}

TEST_F(HomePlannerTest, NarrowsWhatHasNotBeenMeasuredForThirtySeconds) {
  begin({asking("a", 1000, kHomeNode), asking("b", 1000, kOtherNode)});
  use("a", 4000);
  use("b", 0);
  pass(11);
  ASSERT_TRUE(of("a").is_widened());
  load_ = {};
  EXPECT_THAT(pass(30), IsEmpty());
  const auto changes = step();
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].reason_code, "load-unknown");
  EXPECT_EQ(cpus_of("a"), kHomeNode);
}

TEST_F(HomePlannerTest, TellsWhoMayBeWidened) {
  EXPECT_TRUE(may_be_widened(asking("a", 1000, kHomeNode)));
  const auto may = [](auto change) {
    Allocation allocation = asking("a", 1000, kHomeNode);
    change(allocation);
    return may_be_widened(allocation);
  };
  EXPECT_FALSE(may([](Allocation& a) { a.workload.kubelet_cpus = kHomeNode; }));
  EXPECT_FALSE(may([](Allocation& a) { a.workload.kubelet_mems = NodeSet{0}; }));
  EXPECT_FALSE(may([](Allocation& a) { a.placement.mems = NodeSet{0}; }));
  EXPECT_FALSE(may([](Allocation& a) { a.workload.devices = {"/dev/a"}; }));
  EXPECT_FALSE(may([](Allocation& a) { a.workload.used_devices = {"0000:65:00.0"}; }));
  EXPECT_FALSE(may([](Allocation& a) { a.placement.mode = placement::Mode::kReserved; }));
  EXPECT_FALSE(may([](Allocation& a) { a.conflict = true; }));
  EXPECT_FALSE(may([](Allocation& a) { a.stuck.emplace(); }));
  EXPECT_FALSE(may([](Allocation& a) { a.overruled.emplace(); }));
  EXPECT_FALSE(may([](Allocation& a) { a.squeeze = Squeeze::kPlaced; }));
  EXPECT_FALSE(may([](Allocation& a) { a.stopping = true; }));
  EXPECT_FALSE(may([](Allocation& a) { a.phase = Phase::kCreated; }));
  EXPECT_FALSE(may([](Allocation& a) { a.workload.demand.cpu_request_milli = 0; }));
  EXPECT_FALSE(may([](Allocation& a) { a.placement.mode = placement::Mode::kExclusive; }));
}

/// Exclusive CPUs shrink the pool, and what a container is widened by with it.
TEST_F(HomePlannerTest, LeavesGrantedCpusAndCountsRequestsAtHome) {
  begin({asking("a", 4000, kHomeNode), asking("b", 1000, kOtherNode)});
  use("a", 4000);
  use("b", 0);
  pass(11);
  ASSERT_EQ(cpus_of("a"), kHomeNode | (CpuSet{5, 6, 7}));
  EXPECT_EQ(shared_load_of(ledger_).total(kOtherNode), SharedLoad::kWholeCpu);
  EXPECT_EQ(shared_load_of(ledger_).total(kHomeNode), 4 * SharedLoad::kWholeCpu);
  ledger_.apply(compute_transition(ledger_, {}, now_, event::CreateAdmitted{guaranteed("x", 2), exclusive_on({6, 7})}));
  EXPECT_EQ(cpus_of("a"), kHomeNode | CpuSet{5});
  EXPECT_EQ(of("a").vacating, (CpuSet{6, 7}));
  ledger_.apply(compute_transition(ledger_, {}, now_, event::Ended{key_named("x"), "gone"}));
  EXPECT_EQ(cpus_of("a"), kHomeNode | (CpuSet{5, 6, 7}));
}

TEST_F(HomePlannerTest, ForgetsTheWideningOfWhoIsPlacedAnew) {
  begin({asking("a", 1000, kHomeNode), asking("b", 1000, kOtherNode)});
  use("a", 4000);
  use("b", 0);
  pass(11);
  ASSERT_TRUE(of("a").is_widened());
  ledger_.apply(compute_transition(
      ledger_, {}, now_, event::Moved{of("a").workload, shared_on(kOtherNode, kOtherNode), AuditEvent::kReplaced}));
  EXPECT_EQ(cpus_of("a"), kOtherNode);
  EXPECT_FALSE(of("a").widening);
}

class SoftPolicy final : public LeastAskedPolicy {
 public:
  explicit SoftPolicy(bool narrows) : narrows_(narrows) {}
  Result<placement::Pick> pick(const placement::PolicyRequest& /*request*/, std::size_t /*candidate*/,
                               const CpuSet& usable, std::size_t /*count*/) override {
    placement::Pick pick;
    if (narrows_) pick.narrow = usable - CpuSet{usable.first()};
    return pick;
  }
  Result<placement::Pick> review_pick(const placement::PolicyRequest& /*request*/, std::size_t /*candidate*/,
                                      const CpuSet& /*usable*/, const CpuSet& /*chosen*/) override {
    placement::Pick pick;
    pick.soft_home = true;
    return pick;
  }

 private:
  const bool narrows_;
};

TEST_F(HomePlannerTest, AsksThePoliciesWhetherAHomeIsSoft) {
  const auto is_soft = [&](const placement::Votes& votes) {
    const Ledger ledger = ledger_of({asking("a", 1000, kHomeNode)});
    const Placer placer({topology_,
                         placement::make_candidates(*topology_, topology_->allowed),
                         {},
                         [votes](const auto& request, const placement::PlacementRules& rules) {
                           return decide(*request, rules, votes);
                         }});
    return HomePlanner(ledger, placer).is_soft(*ledger.find(key_named("a")));
  };
  EXPECT_EQ(is_soft({{.policy = std::make_shared<LeastAskedPolicy>()}}), false);
  EXPECT_EQ(is_soft({{.policy = std::make_shared<SoftPolicy>(false)}}), true);
  EXPECT_EQ(is_soft({{.policy = std::make_shared<SoftPolicy>(true)}}), false) << "it keeps to what it was narrowed to";
}

// ---- Nobody goes back and forth

/// Containers with a demand that share CPUs as a scheduler would have them: each CPU is shared evenly by those that
/// want more and may use it.
class Machine {
 public:
  static std::map<std::string, std::int64_t> use_of(const Ledger& ledger,
                                                    const std::map<std::string, std::int64_t>& demand) {
    std::map<std::string, std::int64_t> used;
    std::vector<std::int64_t> left(8, 1000);
    for (int round = 0; round < 25; ++round) {
      for (std::uint32_t cpu = 0; cpu < left.size(); ++cpu) {
        std::vector<std::string> wanting;
        for (const auto& [name, wanted] : demand) {
          if (used[name] < wanted && ledger.find(key_named(name))->placement.cpus.contains(cpu))
            wanting.push_back(name);
        }
        const std::int64_t part = std::min<std::int64_t>(left[cpu], 80);
        for (const std::string& name : wanting) {
          const std::int64_t gets =
              std::min(part / static_cast<std::int64_t>(wanting.size()), demand.at(name) - used[name]);
          used[name] += gets;
          left[cpu] -= gets;
        }
      }
    }
    return used;
  }
};

TEST_F(HomePlannerTest, NeverGoesBackAndForth) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    testing::Dice dice(seed);
    begin({asking("a", 1000, kHomeNode), asking("b", 500, kHomeNode), asking("c", 1000, kOtherNode),
           asking("d", 500, kOtherNode)});
    lasting_ = {};
    std::map<std::string, std::chrono::milliseconds> changed_at;
    std::map<std::string, std::int64_t> demand;
    const auto take = [&](const std::vector<HomePlanner::Change>& changes) {
      for (const HomePlanner::Change& change : changes) {
        const auto before = changed_at.find(change.key.name);
        if (before != changed_at.end()) {
          EXPECT_GE(now_ - before->second, seconds(10)) << change.reason;
        }
        changed_at[change.key.name] = now_;
        EXPECT_FALSE(change.cpus.intersects(of(change.key.name).within));
      }
    };
    for (int phase = 0; phase < 4; ++phase) {
      for (const char* name : {"a", "b", "c", "d"}) demand[name] = dice.below(5) * dice.below(1200);
      std::map<std::string, int> turns;  // from wider to narrower, or the other way
      std::map<std::string, std::size_t> size;
      for (int second = 0; second < 200; ++second) {
        for (const auto& [name, used] : Machine::use_of(ledger_, demand)) {
          // What is measured is never quite the same.
          use(name, used * static_cast<std::int64_t>(98 + dice.below(5)) / 100);
        }
        const auto changes = step();
        take(changes);
        for (const HomePlanner::Change& change : changes) {
          const std::string& name = change.key.name;
          turns[name] += 1;
          size[name] = change.cpus.size();
          EXPECT_LT(second, 120) << name << " still changes: " << change.reason;
        }
        if (dice.below(400) == 0) restart();
      }
      for (const auto& [name, count] : turns) EXPECT_LE(count, 4) << name << " in phase " << phase;
    }
  }
}

}  // namespace
}  // namespace topolet::engine
