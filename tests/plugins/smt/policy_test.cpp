#include "plugins/smt/policy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <topolet/testing.hpp>

namespace topolet::smt {
namespace {

using sdk::testing::FakeHost;
using sdk::testing::Ledger;
using sdk::testing::Machine;
using sdk::testing::Plugin;
using sdk::testing::Request;
using sdk::testing::set_of;

class SmtTest : public ::testing::Test {
 protected:
  Machine machine_{"numa:2 core:2 pu:2"};
  Ledger ledger_{machine_};
  FakeHost host_;
};

TEST_F(SmtTest, AbstainsWithAReasonAndWithholdsNothing) {
  ledger_.place_exclusive({}, set_of({1}));
  Plugin plugin(topolet_plugin_v1, host_);
  const Request request(machine_, ledger_, {}, 2);
  for (const auto& verdict : plugin.score(request)) {
    EXPECT_EQ(verdict.kind, TOPOLET_VERDICT_ABSTAIN);
    EXPECT_EQ(verdict.reason, "smt has no policy yet");
  }
  const auto picked = plugin.pick(request, 0);
  EXPECT_TRUE(picked.withhold.empty());
  EXPECT_TRUE(picked.order.empty());
  EXPECT_EQ(picked.reason, "smt has no policy yet; 1 siblings of 3 usable CPUs are in other hands");
}

TEST_F(SmtTest, FindsSiblingsThroughTheCores) {
  EXPECT_EQ(siblings_of(machine_.view(), set_of({0, 5})).to_string(), "1,4");
  EXPECT_TRUE(siblings_of(machine_.view(), set_of({2, 3})).empty());
}

TEST_F(SmtTest, RemembersWhatIsWithheldUntilItIsReleased) {
  Plugin plugin(topolet_plugin_v1, host_);
  plugin.notify(TOPOLET_EVENT_PLACED, machine_, {.pod_uid = "u", .name = "web"}, set_of({0}), set_of({1}));
  EXPECT_EQ(host_.state, (std::map<std::string, std::string>{{"u/web", "1"}}));
  plugin.notify(TOPOLET_EVENT_RELEASED, machine_, {.pod_uid = "u", .name = "web"}, set_of({0}), set_of({1}));
  EXPECT_TRUE(host_.state.empty());
}

TEST(SmtOptions, AreReadAsTheTableHasThem) {
  const topolet_kv values[] = {{TOPOLET_STR("isolate-siblings"), TOPOLET_STR("exclusive")},
                               {TOPOLET_STR("round"), TOPOLET_STR("deny")},
                               {TOPOLET_STR("pair"), TOPOLET_STR("true")}};
  const PolicyOptions options = read_options(sdk::Options({values, 3}));
  EXPECT_EQ(options.isolate, Isolate::kExclusive);
  EXPECT_EQ(options.round, Round::kDeny);
  EXPECT_TRUE(options.pair);
}

}  // namespace
}  // namespace topolet::smt
