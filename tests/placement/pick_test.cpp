// How the picks of several policies become one placement, step by step.
#include <algorithm>
#include <functional>

#include "core/placement/decide.hpp"
#include "tests/placement/machine.hpp"

namespace topolet {
namespace {

using testing::guaranteed;
using testing::TestNode;

/// Picks as it is told for each set of CPUs it is asked about, and again when they are chosen.
class TwoSteps : public Policy {
 public:
  using PickCpus = std::function<Pick(const CpuSet& usable)>;
  using PickBeside = std::function<Pick(const CpuSet& usable, const CpuSet& chosen)>;

  TwoSteps(std::string name, PickCpus pick, PickBeside beside)
      : name_(std::move(name)), pick_(std::move(pick)), beside_(std::move(beside)) {}

  const std::string& name() const override { return name_; }
  Result<std::vector<Verdict>> score(const PolicyRequest& request) override {
    return std::vector<Verdict>(request.candidates.size());
  }
  Result<Pick> pick(const PolicyRequest&, std::size_t, const CpuSet& usable) override { return pick_(usable); }
  Result<Pick> pick_beside(const PolicyRequest&, std::size_t, const CpuSet& usable, const CpuSet& chosen) override {
    return beside_(usable, chosen);
  }

 private:
  const std::string name_;
  const PickCpus pick_;
  const PickBeside beside_;
};

/// Loves node 0, and gives up its vote if it is lost.
class Fond : public Policy {
 public:
  explicit Fond(bool lost) : lost_(lost) {}

  const std::string& name() const override { return name_; }
  Result<std::vector<Verdict>> score(const PolicyRequest& request) override {
    if (lost_) return Error{Code::kInternal, "threw"};
    std::vector<Verdict> verdicts(request.candidates.size());
    for (std::size_t i = 0; i < verdicts.size(); ++i) {
      if (request.candidates[i].nodes == NodeSet{0}) verdicts[i] = {Verdict::Kind::kScore, 100, "it is fond of it"};
    }
    return verdicts;
  }
  Result<Pick> pick(const PolicyRequest&, std::size_t, const CpuSet&) override { return Pick(); }

 private:
  const std::string name_ = "fond";
  const bool lost_;
};

Voter two_step(
    const std::string& name, TwoSteps::PickCpus pick,
    TwoSteps::PickBeside beside = [](const CpuSet&, const CpuSet&) { return Pick(); }) {
  return {std::make_shared<TwoSteps>(name, std::move(pick), std::move(beside)), 1, false};
}

Pick nothing(const CpuSet& /*usable*/) { return {}; }

/// The highest two of what it is asked about.
Pick highest_first(const CpuSet& usable) {
  Pick pick;
  pick.order.assign(usable.begin(), usable.end());
  std::reverse(pick.order.begin(), pick.order.end());
  if (pick.order.size() > 2) pick.order.resize(2);
  return pick;
}

TEST(DecidePick, OrdersWhatOthersHaveNarrowedWhoeverComesFirst) {
  TestNode node("pack:1 numa:1 core:6 pu:1");
  const Voter orders = two_step("orders", highest_first);
  const Voter narrows = two_step("narrows", [](const CpuSet& usable) {
    Pick pick;
    pick.narrow = usable & CpuSet{0, 1, 2, 3};
    return pick;
  });
  node.voters = {orders, narrows};
  EXPECT_EQ(node.ask(guaranteed("a", 2)).placement.cpus, (CpuSet{2, 3}));
  node.voters = {narrows, orders};
  EXPECT_EQ(node.ask(guaranteed("a", 2)).placement.cpus, (CpuSet{2, 3}));
}

TEST(DecidePick, AsksWhatToWithholdBesideTheChosenCpus) {
  TestNode node("pack:1 numa:1 core:4 pu:2");
  node.voters = {two_step("orders", highest_first),
                 two_step("idle", nothing, [](const CpuSet& usable, const CpuSet& chosen) {
                   EXPECT_EQ(usable, CpuSet::range(0, 7));
                   Pick pick;
                   pick.withhold = CpuSet{chosen.first() - 1};
                   pick.reason = "quiet";
                   return pick;
                 })};
  const Decision decision = node.ask(guaranteed("a", 1));
  EXPECT_EQ(decision.placement.cpus, CpuSet{7});
  EXPECT_EQ(decision.placement.withheld, CpuSet{6});
  EXPECT_NE(decision.reason.find("; idle: quiet"), std::string::npos) << decision.reason;
}

/// Cannot do what it is for where CPU 0 is chosen.
Voter demanding(bool required) {
  Voter voter = two_step("demanding", nothing, [](const CpuSet&, const CpuSet& chosen) {
    Pick pick;
    if (chosen.contains(0)) pick.unmet = "not with CPU 0";
    return pick;
  });
  voter.required = required;
  return voter;
}

TEST(DecidePick, AuditsWhatIsUnmet) {
  TestNode node("numa:1 core:2 pu:1");
  node.voters = {demanding(false)};
  const Decision decision = node.ask(guaranteed("a", 1));
  EXPECT_FALSE(decision.denied);
  EXPECT_EQ(decision.verdicts.dropped, std::vector<std::string>{"demanding: not with CPU 0"});
}

TEST(DecidePick, TriesTheNextCandidateWhereARequiredPolicyCannotHaveItsWay) {
  TestNode node("numa:2 core:2 pu:1");
  node.voters = {{std::make_shared<Fond>(false), 1, false}, demanding(true)};
  EXPECT_EQ(node.ask(guaranteed("a", 1)).placement.cpus, CpuSet{2});
}

TEST(DecidePick, DeniesWhatARequiredPolicyCannotHaveItsWayWith) {
  TestNode node("numa:1 core:2 pu:1");
  node.voters = {demanding(true)};
  const Decision decision = node.ask(guaranteed("a", 1));
  EXPECT_TRUE(decision.denied);
  EXPECT_NE(decision.reason.find("demanding: not with CPU 0 (required.demanding = true)"), std::string::npos)
      << decision.reason;
  Workload system = guaranteed("dns", 1);
  system.pod_namespace = "kube-system";
  EXPECT_FALSE(node.ask(system).denied) << "never for reserved namespaces";
}

TEST(DecidePick, DeniesWhatARequiredPolicyCannotWithhold) {
  TestNode node("numa:1 core:1 pu:2");
  Voter idle = two_step("idle", nothing, [](const CpuSet& usable, const CpuSet& chosen) {
    Pick pick;
    pick.withhold = usable - chosen;
    return pick;
  });
  node.voters = {idle};
  const Decision dropped = node.ask(guaranteed("a", 1));
  EXPECT_EQ(dropped.verdicts.dropped,
            std::vector<std::string>{"idle: withholding 1: the pool would keep 0 CPUs, min-shared-cpus is 1"});
  node.voters[0].required = true;
  EXPECT_TRUE(node.ask(guaranteed("a", 1)).denied);
}

TEST(DecidePick, DeniesWithoutTheVoteOfARequiredPolicy) {
  TestNode node("numa:1 core:2 pu:1");
  node.voters = {{std::make_shared<Fond>(true), 1, false, true}};
  EXPECT_EQ(node.ask(guaranteed("a", 1)).reason, "plugin fond did not answer (threw) and required.fond = true");
}

}  // namespace
}  // namespace topolet
