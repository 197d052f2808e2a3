// split = cpus: CPUs stay together where a node holds them all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/plugins/gpu/gpu_plugin.hpp"

namespace topolet::gpu {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class GpuSplit : public GpuPluginTest {
 protected:
  /// Four nodes of eight CPUs, a GPU on node 0, of which six CPUs are free.
  GpuSplit() : GpuPluginTest("pack:4 numa:1 core:8 pu:1") {
    gpu(0, "0000:41:00.0", set_of({0}));
    machine_.distances({10, 12, 20, 32, 12, 10, 20, 20, 20, 20, 10, 12, 32, 20, 12, 10});
    ledger_.place_exclusive({.name = "other"}, set_of({0, 1}));
  }

  Verdict of(const sdk::Set& nodes, std::uint32_t cpus, const char* split, const std::string& gpus = "0") {
    Request request(machine_, ledger_, with(gpus), cpus);
    for (const sdk::Set& all : {set_of({0, 1}), set_of({1, 2}), set_of({0, 1, 2}), set_of({0, 2, 3})})
      request.candidate(all);
    return Plugin(topolet_plugin_v1, host_, options({{"split", split}})).score(request)[request.position(nodes)];
  }
};

TEST_F(GpuSplit, PutsANodeThatHoldsAllCpusFirst) {
  EXPECT_GT(of(set_of({0, 1}), 8, "device").score, of(set_of({1}), 8, "device").score);
  EXPECT_LT(of(set_of({0, 1}), 8, "cpus").score, of(set_of({3}), 8, "cpus").score) << "the farthest of them";
  EXPECT_THAT(of(set_of({1}), 8, "cpus").reason, HasSubstr("split = cpus keeps all CPUs together"));
  EXPECT_THAT(of(set_of({0, 1}), 8, "cpus").reason, HasSubstr("split = cpus prefers 1 node for all CPUs"));
}

TEST_F(GpuSplit, PutsTheNearestOfTheseNodesFirst) {
  EXPECT_GT(of(set_of({1}), 8, "cpus").score, of(set_of({2}), 8, "cpus").score);
  EXPECT_GT(of(set_of({2}), 8, "cpus").score, of(set_of({3}), 8, "cpus").score);
}

TEST_F(GpuSplit, ChangesNothingWhereTheDevicesHaveRoom) {
  EXPECT_EQ(of(set_of({0}), 6, "cpus").score, 100);
  EXPECT_THAT(of(set_of({0}), 6, "cpus").reason, Not(HasSubstr("split")));
  EXPECT_GT(of(set_of({0}), 6, "cpus").score, of(set_of({1}), 6, "cpus").score);
}

TEST_F(GpuSplit, PrefersTheDeviceAmongSetsOfAsManyNodes) {
  EXPECT_GT(of(set_of({0, 1}), 12, "cpus").score, of(set_of({1, 2}), 12, "cpus").score);
  EXPECT_GT(of(set_of({1, 2}), 12, "cpus").score, of(set_of({0, 1, 2}), 12, "cpus").score) << "two nodes hold them";
  EXPECT_GT(of(set_of({0, 1, 2}), 12, "cpus").score, of(set_of({0, 2, 3}), 12, "cpus").score);
}

TEST_F(GpuSplit, IsForDevicesOfSeveralNodesToo) {
  gpu(1, "0000:81:00.0", set_of({2}));
  machine_.device({.name = "nvml2", .address = "0000:c1:00.0", .nodes = set_of({3})});
  EXPECT_GT(of(set_of({0, 2, 3}), 4, "device", "0,1,2").score, of(set_of({0}), 4, "device", "0,1,2").score);
  EXPECT_LT(of(set_of({0, 2, 3}), 4, "cpus", "0,1,2").score, of(set_of({1}), 4, "cpus", "0,1,2").score);
}

TEST_F(GpuSplit, IsNotForContainersThatShareCpus) {
  EXPECT_EQ(of(set_of({0, 1}), 0, "cpus").score, of(set_of({0, 1}), 0, "device").score);
}

TEST_F(GpuSplit, GivesWayToDevicesThatAreRequired) {
  Request request(machine_, ledger_, with("0"), 8);
  request.candidate(set_of({0, 1}));
  const auto verdicts =
      Plugin(topolet_plugin_v1, host_, options({{"split", "cpus"}, {"affinity", "require"}})).score(request);
  EXPECT_EQ(verdicts[request.position(set_of({1}))].kind, TOPOLET_VERDICT_REJECT);
  EXPECT_EQ(verdicts[request.position(set_of({0, 1}))].kind, TOPOLET_VERDICT_SCORE);
}

}  // namespace
}  // namespace topolet::gpu
