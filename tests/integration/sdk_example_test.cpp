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

  /// Runs a pod of the service "web".
  TestPod replica(const std::string& name) {
    TestPod actor{{name, "uid-" + name, besteffort(), runtime_->cgroups(), {{"app", "web"}}, {}}, {}};
    const Status ran = topolet_->run(actor.pod);
    EXPECT_TRUE(ran.has_value()) << ran.error().message;
    auto id = topolet_->create(actor.pod, {.image = kImage});
    EXPECT_TRUE(id.has_value()) << name << ": " << id.error().message;
    if (id) actor.container_id = *id;
    const Status started = topolet_->start(actor.container_id);
    EXPECT_TRUE(started.has_value()) << name << ": " << started.error().message;
    return actor;
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

TEST_F(SdkExampleTest, HasItsSayInTheDatabase) {
  const TestPod first = replica("first");
  EXPECT_THAT(said(first), ElementsAre("spread 0: other pods with app=web here: 0"));
  const TestPod second = replica("second");
  const bool on_the_same = ledger(first)->cpus == ledger(second)->cpus;
  EXPECT_THAT(said(second), ElementsAre(on_the_same ? "spread -20: other pods with app=web here: 1"
                                                    : "spread 0: other pods with app=web here: 0"));
  expect_kernel_is_ledger(second);
}

}  // namespace
}  // namespace topolet::integration
