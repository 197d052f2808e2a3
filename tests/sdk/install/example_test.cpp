// The examples of the SDK, built from its installed copy, in today's host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/plugin/plugins.hpp"

namespace topolet::plugin {
namespace {

using placement::LedgerEntry;
using placement::Verdict;
using ::testing::ElementsAre;

class Example : public testing::TestWithParam<const char*> {
 protected:
  std::vector<Verdict> ask(const OptionValues& options, std::uint32_t replicas_on_node_0) {
    const auto plugin = start_plugin(TOPOLET_EXAMPLE_PLUGINS, GetParam(), options);
    const auto request = two_node_request();
    for (std::uint32_t i = 0; i < replicas_on_node_0; ++i) {
      request->ledger.entries.push_back(holding("uid-" + std::to_string(i), "web", CpuSet{i}));
    }
    request->ledger.entries.push_back(holding("uid-other", "batch", CpuSet::range(0, 7)));
    auto verdicts = plugin ? plugin->score(abi_view(*request)) : Result<std::vector<Verdict>>(std::vector<Verdict>());
    EXPECT_TRUE(verdicts) << verdicts.error().message;
    return verdicts ? *std::move(verdicts) : std::vector<Verdict>();
  }
  static LedgerEntry holding(const std::string& pod_uid, const std::string& container, const CpuSet& cpus) {
    LedgerEntry entry;
    entry.key = {pod_uid, container, 0, "sandbox-" + pod_uid};
    entry.placement.cpus = cpus;
    return entry;
  }
  static Verdict says(std::int32_t score, const std::string& reason) { return {Verdict::Kind::kScore, score, reason}; }
};

TEST_P(Example, ScoresANodeLowerForEachReplicaOnIt) {
  EXPECT_THAT(ask({}, 2), ElementsAre(says(-20, "other containers named web on these nodes: 2"),
                                      says(0, "other containers named web on these nodes: 0"),
                                      says(-20, "other containers named web on these nodes: 2")));
}

TEST_P(Example, TakesItsOption) { EXPECT_EQ(ask({{"points", "7"}}, 1).at(0).score, -7); }

TEST_P(Example, StaysWithinTheScores) { EXPECT_EQ(ask({{"points", "60"}}, 3).at(0).score, -100); }

INSTANTIATE_TEST_SUITE_P(Sdk, Example, testing::Values("apart", "apart-c"),
                         [](const auto& language) { return language.index == 0 ? "InCpp" : "InC"; });

}  // namespace
}  // namespace topolet::plugin
