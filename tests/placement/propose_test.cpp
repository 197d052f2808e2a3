// Node sets that policies propose where not every combination of nodes is a candidate.
#include <functional>

#include "core/placement/candidates.hpp"
#include "core/placement/decision.hpp"
#include "core/placement/policy.hpp"
#include "tests/placement/machine.hpp"

namespace topolet::placement {
namespace {

using testing::guaranteed;
using testing::TestNode;

/// Proposes node sets, and likes one.
class Proposer : public Policy {
 public:
  Proposer(std::vector<NodeSet> proposals, NodeSet liked)
      : proposals_(std::move(proposals)), liked_(std::move(liked)) {}

  const std::string& name() const override { return name_; }
  Result<std::vector<NodeSet>> propose(const PolicyRequest& /*request*/) override {
    ++asked;
    return proposals_;
  }
  Result<std::vector<Verdict>> score(const PolicyRequest& request) override {
    std::vector<Verdict> verdicts(request.candidates.size());
    for (std::size_t i = 0; i < verdicts.size(); ++i) {
      if (request.candidates[i].nodes == liked_) verdicts[i] = {Verdict::Kind::kScore, 100, "likes it"};
    }
    candidates = verdicts.size();
    return verdicts;
  }
  Result<Pick> pick(const PolicyRequest&, std::size_t, const CpuSet&, std::size_t) override { return Pick(); }

  int asked = 0;
  std::size_t candidates = 0;

 private:
  const std::string name_ = "proposer";
  const std::vector<NodeSet> proposals_;
  const NodeSet liked_;
};

constexpr const char* kNineNodes = "pack:3 numa:3 core:2 pu:1";

TEST(Propose, AddsANodeSetThatIsNoCandidate) {
  TestNode node(kNineNodes);
  const NodeSet far{1, 4, 8};
  const auto proposer = std::make_shared<Proposer>(std::vector<NodeSet>{far, far}, far);
  node.votes = {{proposer}};
  const Decision decision = node.run(guaranteed("a", 6));
  ASSERT_FALSE(decision.denied) << decision.reason;
  EXPECT_EQ(decision.nodes, far);
  EXPECT_EQ(decision.placement.cpus, (CpuSet{2, 3, 8, 9, 16, 17}));
}

TEST(Propose, LeavesOutWhatIsKnownOrNoPlace) {
  TestNode plain(kNineNodes);
  const auto silent = std::make_shared<Proposer>(std::vector<NodeSet>{}, NodeSet{});
  plain.votes = {{silent}};
  plain.run(guaranteed("a", 1));
  TestNode node(kNineNodes);
  const std::vector<NodeSet> proposals = {NodeSet{0}, NodeSet{3, 4, 5}, NodeSet{2, 9}, NodeSet{700}};
  const auto proposer = std::make_shared<Proposer>(proposals, NodeSet{});
  node.votes = {{proposer}};
  node.run(guaranteed("a", 1));
  EXPECT_EQ(proposer->asked, 1);
  EXPECT_EQ(proposer->candidates, silent->candidates);
}

TEST(Propose, IsNotAskedWhereEveryCombinationIsACandidate) {
  TestNode node("pack:2 numa:4 core:1 pu:1");
  const auto proposer = std::make_shared<Proposer>(std::vector<NodeSet>{NodeSet{0, 7}}, NodeSet{0, 7});
  node.votes = {{proposer}};
  EXPECT_EQ(node.run(guaranteed("a", 2)).nodes, (NodeSet{0, 7}));
  EXPECT_EQ(proposer->asked, 0);
}

}  // namespace
}  // namespace topolet::placement
