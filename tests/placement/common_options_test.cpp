// Options of one policy that the requests tell to all.
#include "core/placement/decide.hpp"
#include "tests/placement/machine.hpp"

namespace topolet::placement {
namespace {

using testing::guaranteed;
using testing::TestNode;

/// Notes the options that it is told.
class NotesOptions : public Policy {
 public:
  NotesOptions(std::string name, std::vector<CommonOptions>& seen) : name_(std::move(name)), seen_(seen) {}

  const std::string& name() const override { return name_; }
  Result<std::vector<Verdict>> score(const PolicyRequest& request) override {
    seen_.push_back(request.common_options);
    return std::vector<Verdict>(request.candidates.size());
  }
  Result<Pick> pick(const PolicyRequest&, std::size_t, const CpuSet&, std::size_t) override { return Pick(); }

 private:
  const std::string name_;
  std::vector<CommonOptions>& seen_;
};

TEST(Decide, TellsEveryPolicyTheOptionsThatConcernAll) {
  TestNode node("node:2 core:4 pu:1");
  std::vector<CommonOptions> seen;
  const auto vote = [&seen](const char* name) { return Vote{.policy = std::make_shared<NotesOptions>(name, seen)}; };
  node.votes = {vote("first"), vote("second"), vote("third")};
  node.votes[1].common_options = {.whole_cores = true, .pod_scope = false, .spread_cores = true};
  node.votes[2].common_options = {.whole_cores = false, .pod_scope = true, .spread_cores = false};
  node.ask(guaranteed("a", 2));
  const CommonOptions all{.whole_cores = true, .pod_scope = true, .spread_cores = true};
  EXPECT_EQ(seen, (std::vector<CommonOptions>{all, all, all}));
  seen.clear();
  node.votes[1].common_options = node.votes[2].common_options = {};
  node.ask(guaranteed("a", 2));
  EXPECT_EQ(seen, std::vector<CommonOptions>(3));
}

}  // namespace
}  // namespace topolet::placement
