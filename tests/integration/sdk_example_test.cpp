// The examples of the SDK, built from its installed copy, at work on a real node.
#include "tests/integration/node_test.hpp"

namespace topolet::integration {
namespace {

using testing::ElementsAre;

class SdkExampleTest : public NodeTest {
 protected:
  void SetUp() override {
    NodeTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    daemon_->use_plugins(TOPOLET_EXAMPLE_PLUGINS, TOPOLET_EXAMPLE_CONFIG);
    restart_daemon(SIGTERM);
  }

  /// "policy score: reason" of each, on the candidate that won.
  std::vector<std::string> said(const TestPod& actor) {
    const auto rows = state_->said();
    EXPECT_TRUE(rows.has_value()) << rows.error().message;
    std::vector<std::string> lines;
    for (const OpinionRow& row : rows ? *rows : std::vector<OpinionRow>()) {
      if (row.pod == actor.pod.name) lines.push_back(row.policy + " " + row.score + ": " + row.reason);
    }
    return lines;
  }
};

TEST_F(SdkExampleTest, BothLanguagesHaveTheirSayInTheDatabase) {
  const TestPod first = running("first", besteffort());
  EXPECT_THAT(said(first), ElementsAre("apart 0: other containers named main on these nodes: 0",
                                       "apart-c 0: other containers named main on these nodes: 0"));
  const TestPod second = running("second", besteffort());
  ASSERT_EQ(said(second).size(), 2U);
  if (ledger(first)->cpus == ledger(second)->cpus) {
    EXPECT_THAT(said(second), ElementsAre("apart -20: other containers named main on these nodes: 1",
                                          "apart-c -10: other containers named main on these nodes: 1"));
  } else {
    EXPECT_THAT(said(second), ElementsAre("apart 0: other containers named main on these nodes: 0",
                                          "apart-c 0: other containers named main on these nodes: 0"));
  }
  expect_kernel_is_ledger(second);
}

}  // namespace
}  // namespace topolet::integration
