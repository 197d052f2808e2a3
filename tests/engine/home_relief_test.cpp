#include "core/engine/converge/home_relief.hpp"

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "core/placement/decide.hpp"
#include "tests/engine/converge_test.hpp"
#include "tests/engine/crowds.hpp"

namespace topolet::engine {
namespace {

using std::chrono::seconds;
using ::testing::IsEmpty;

const CpuSet kOwnNode = CpuSet::range(0, 3);
const CpuSet kSpareNode = CpuSet::range(4, 7);

/// Lets containers run beside their homes, or not.
class HomePolicy : public LeastAskedPolicy {
 public:
  Result<placement::Pick> pick(const placement::PolicyRequest& /*request*/, std::size_t /*candidate*/,
                               const CpuSet& /*usable*/, std::size_t /*count*/) override {
    return placement::Pick();
  }
  Result<placement::Pick> review_pick(const placement::PolicyRequest& /*request*/, std::size_t /*candidate*/,
                                      const CpuSet& /*usable*/, const CpuSet& /*chosen*/) override {
    placement::Pick pick;
    pick.soft_home = is_soft;
    return pick;
  }

  bool is_soft = true;
};

/// Node 0 is the home of one or more containers; "b", which does nothing, has node 1.
class HomeReliefTest : public ConvergeTest {
 protected:
  /// With a policy that is asked about each of `names`.
  void begin_with(const std::vector<std::string>& names) {
    PlacerDeps deps{topology_,
                    placement::make_candidates(*topology_, topology_->allowed),
                    {},
                    [this](const auto& request, const placement::PlacementRules& rules) {
                      ++decisions_;
                      placement::Decision decision = decide(*request, rules, {{.policy = policy_}});
                      if (loses_votes_) decision.lost_votes = {"home"};
                      return decision;
                    }};
    deps.load = [this] { return load_; };
    placer_ = Placer(std::move(deps));
    std::vector<Allocation> allocations = {asking("b", 100, kSpareNode)};
    for (const std::string& name : names) allocations.push_back(asking(name, 100, kOwnNode));
    begin(allocations);
    for (const Allocation& allocation : allocations) start_converged(allocation.workload.key.name);
    relief_ = std::make_unique<HomeRelief>(HomeRelief::Deps{*committer_, placer_, loop_.clock()});
    use("b", 0);
    for (const std::string& name : names) use(name, 4000 / static_cast<std::int64_t>(names.size()));
  }
  void use(const std::string& name, std::int64_t milli) {
    auto load = std::make_shared<load::Load>(load_ ? *load_ : load::Load());
    load->containers["c-" + name] = {milli, {}, {}};
    load_ = std::move(load);
  }
  void pass(int count) {
    for (int i = 0; i < count; ++i) {
      loop_.advance(seconds(1));
      relief_->check();
      loop_.run();
    }
  }
  CpuSet told(const std::string& name) { return runtime_.container("c-" + name).cpus(); }

  const std::shared_ptr<HomePolicy> policy_ = std::make_shared<HomePolicy>();
  std::shared_ptr<const load::Load> load_;
  bool loses_votes_ = false;
  int decisions_ = 0;
  std::unique_ptr<HomeRelief> relief_;
};

TEST_F(HomeReliefTest, TellsTheRuntimeOfCpusBesideAHomeThatIsPressed) {
  begin_with({"a"});
  pass(10);
  EXPECT_EQ(told("a"), kOwnNode);
  pass(1);
  EXPECT_TRUE(kOwnNode.is_subset_of(told("a")));
  EXPECT_TRUE(told("a").intersects(kSpareNode));
  use("a", 100);
  pass(30);
  EXPECT_EQ(told("a"), kOwnNode);
}

TEST_F(HomeReliefTest, AsksThePoliciesOnceWhileNothingChanges) {
  begin_with({"a"});
  policy_->is_soft = false;
  pass(60);
  EXPECT_EQ(told("a"), kOwnNode);
  EXPECT_EQ(decisions_, 1);
  policy_->is_soft = true;
  pass(60);
  EXPECT_EQ(told("a"), kOwnNode) << "the same configuration answers the same";
  commit(event::SetupChanged{engine::Setup{7, {}, {}, {}}});
  pass(1);
  EXPECT_NE(told("a"), kOwnNode);
}

TEST_F(HomeReliefTest, NarrowsWhoWasWidenedWithAnotherConfiguration) {
  begin_with({"a"});
  pass(11);
  ASSERT_TRUE(find("a")->is_widened());
  pass(10);
  policy_->is_soft = false;
  commit(event::SetupChanged{engine::Setup{7, {}, {}, {}}});
  pass(1);
  EXPECT_FALSE(find("a")->is_widened());
  EXPECT_EQ(told("a"), kOwnNode);
}

TEST_F(HomeReliefTest, ChangesNobodyTwiceInTenSeconds) {
  begin_with({"a"});
  pass(11);
  ASSERT_TRUE(find("a")->is_widened());
  policy_->is_soft = false;
  commit(event::SetupChanged{engine::Setup{7, {}, {}, {}}});
  pass(9);
  EXPECT_TRUE(find("a")->is_widened());
  pass(1);
  EXPECT_FALSE(find("a")->is_widened());
}

TEST_F(HomeReliefTest, AsksAgainWhereAPolicyLostItsVote) {
  begin_with({"a"});
  loses_votes_ = true;
  pass(20);
  EXPECT_EQ(told("a"), kOwnNode);
  loses_votes_ = false;
  pass(1);
  EXPECT_NE(told("a"), kOwnNode);
}

TEST_F(HomeReliefTest, AsksAboutSoManyASecond) {
  std::vector<std::string> names;
  for (char name = 'm'; name < 'm' + 12; ++name) names.emplace_back(1, name);
  begin_with(names);
  policy_->is_soft = false;
  pass(10);
  EXPECT_EQ(decisions_, 0);
  pass(1);
  EXPECT_EQ(decisions_, 8) << "the loop waits for the policies";
  pass(1);
  EXPECT_EQ(decisions_, 12) << "the others a second later";
  pass(30);
  EXPECT_EQ(decisions_, 12);
}

TEST_F(HomeReliefTest, WidensNobodyWhereNothingIsMeasuredAndNarrowsAfterAWhile) {
  begin_with({"a"});
  pass(11);
  ASSERT_TRUE(find("a")->is_widened());
  load_ = nullptr;
  pass(60);
  EXPECT_FALSE(find("a")->is_widened());
  take_transitions();
  pass(60);
  EXPECT_THAT(take_transitions(), IsEmpty());
}

}  // namespace
}  // namespace topolet::engine
