// Containers without devices keep away from CPUs that unused GPUs will want; and who uses which GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <stdexcept>

#include "plugins/gpu/headroom.hpp"
#include "tests/plugins/gpu/gpu_plugin.hpp"

namespace topolet::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class GpuHeadroom : public GpuPluginTest {
 protected:
  /// Four nodes of eight CPUs, 0-7 and so on.
  GpuHeadroom() : GpuPluginTest("pack:4 numa:1 core:8 pu:1") {}

  /// By node.
  std::map<std::uint32_t, Verdict> verdicts(std::uint32_t cpus, const Plugin::Values& more = {},
                                            const Container& container = {}) {
    const Request request(machine_, ledger_, container, cpus);
    const auto all = Plugin(topolet_plugin_v1, host_, options(more)).score(request);
    std::map<std::uint32_t, Verdict> of_nodes;
    for (std::uint32_t node = 0; node < 4; ++node) of_nodes[node] = all[request.position(set_of({node}))];
    return of_nodes;
  }

  std::vector<std::string> used(const Container& container) {
    const Request request(machine_, ledger_, container, 2);
    return Plugin(topolet_plugin_v1, host_, options()).adjust(request, 0, set_of({0, 1})).used_devices;
  }
};

TEST_F(GpuHeadroom, PrefersNodesWithoutGpus) {
  gpu(0, "0000:41:00.0", set_of({0}));
  gpu(1, "0000:81:00.0", set_of({1}));
  const auto of = verdicts(2);
  EXPECT_EQ(of.at(2).score, 0);
  EXPECT_EQ(of.at(2).kind, TOPOLET_VERDICT_SCORE);
  EXPECT_EQ(of.at(3).score, 0);
  EXPECT_LT(of.at(0).score, 0);
  EXPECT_GE(of.at(0).score, -7);
  EXPECT_THAT(of.at(0).reason,
              HasSubstr("node 0: takes 2 CPUs that unused GPUs will want, while others have more room"));
}

TEST_F(GpuHeadroom, LeavesTheNodeAloneWhereTheRoomIsTightest) {
  for (std::uint32_t node = 0; node < 4; ++node)
    gpu(node, "0000:" + std::to_string(4 + node) + "1:00.0", set_of({node}));
  ledger_.place_exclusive({.pod_uid = "other"}, set_of({0, 1, 2, 3, 4}));
  const auto of = verdicts(1, {{"headroom", "3"}});
  EXPECT_LT(of.at(0).score, 0) << "three are left there, which its GPU may want";
  EXPECT_EQ(of.at(1).score, 0);
}

TEST_F(GpuHeadroom, TakesTheEmptierOfNodesWithGpus) {
  for (std::uint32_t node = 0; node < 4; ++node)
    gpu(node, "0000:" + std::to_string(4 + node) + "1:00.0", set_of({node}));
  ledger_.place_exclusive({.pod_uid = "other"}, set_of({0, 8, 9}));
  const auto of = verdicts(1, {{"headroom", "2"}});
  EXPECT_EQ(of.at(2).score, 0);
  EXPECT_EQ(of.at(3).score, 0);
  EXPECT_EQ(of.at(0).score, -2);
  EXPECT_EQ(of.at(1).score, -3);
  EXPECT_THAT(of.at(1).reason, HasSubstr("node 1: leaves the CPUs that unused GPUs will want, but others are emptier"));
}

TEST_F(GpuHeadroom, LeavesNodesWithoutGpusToTheStrategy) {
  gpu(0, "0000:41:00.0", set_of({0}));
  ledger_.place_exclusive({.pod_uid = "other"}, set_of({8}));
  EXPECT_EQ(verdicts(1).at(1).score, verdicts(1).at(2).score);
}

TEST_F(GpuHeadroom, EndsWhenTheGpuIsUsed) {
  gpu(0, "0000:41:00.0", set_of({0}));
  EXPECT_LT(verdicts(2).at(0).score, 0);
  ledger_.place_shared({.pod_uid = "trainer", .used_devices = {"0000:41:00.0"}}, set_of({0}));
  EXPECT_EQ(verdicts(2).at(0).kind, TOPOLET_VERDICT_ABSTAIN);
}

TEST_F(GpuHeadroom, IsForExclusiveCpusOfContainersWithoutDevices) {
  gpu(0, "0000:41:00.0", set_of({0}));
  EXPECT_EQ(verdicts(0).at(0).kind, TOPOLET_VERDICT_ABSTAIN);
  EXPECT_EQ(verdicts(2, {}, with("0")).at(0).score, 100);
}

TEST_F(GpuHeadroom, CanBeSwitchedOff) {
  gpu(0, "0000:41:00.0", set_of({0}));
  EXPECT_EQ(verdicts(2, {{"headroom", "0"}}).at(0).kind, TOPOLET_VERDICT_ABSTAIN);
}

TEST_F(GpuHeadroom, SendsNobodyAwayFromTheGpuOfItsPod) {
  gpu(0, "0000:41:00.0", set_of({0}));
  gpu(1, "0000:42:00.0", set_of({0}));
  ledger_.place_exclusive({.name = "trainer", .cpu_request_milli = 2000, .used_devices = {"0000:41:00.0"}},
                          set_of({0, 1}));
  const Container loader{.name = "loader"};
  EXPECT_EQ(verdicts(2, {}, loader).at(0).kind, TOPOLET_VERDICT_ABSTAIN);
  EXPECT_EQ(verdicts(2, {{"keep-free", "true"}}, loader).at(0).kind, TOPOLET_VERDICT_ABSTAIN);
  EXPECT_EQ(verdicts(0, {{"keep-free", "true"}}, {.name = "loader", .cpu_request_milli = 100}).at(0).kind,
            TOPOLET_VERDICT_ABSTAIN);
  EXPECT_LT(verdicts(2, {}, {.pod_uid = "other", .name = "loader"}).at(0).score, 0) << "of another pod";
}

TEST_F(GpuHeadroom, LeavesPodsWithoutGpusTogether) {
  for (std::uint32_t node = 0; node < 4; ++node)
    gpu(node, "0000:" + std::to_string(4 + node) + "1:00.0", set_of({node}));
  ledger_.place_exclusive({.name = "app", .cpu_request_milli = 2000}, set_of({8, 9}));
  const auto of = verdicts(2, {{"headroom", "2"}}, {.name = "helper"});
  EXPECT_EQ(of.at(1).score, 0);
  EXPECT_LT(verdicts(2, {{"headroom", "2"}}, {.pod_uid = "other"}).at(1).score, 0);
}

TEST_F(GpuHeadroom, CountsAllThatThePodRequests) {
  gpu(0, "0000:41:00.0", set_of({0}));
  gpu(1, "0000:81:00.0", set_of({1}));
  ledger_.place_exclusive({.pod_uid = "other"}, set_of({16, 17, 18, 19, 20, 24, 25, 26, 27, 28}));
  const auto alone = verdicts(2, {{"headroom", "2"}}, {.pod_cpu_request_milli = 2000});
  EXPECT_EQ(alone.at(2).score, 0);
  EXPECT_LE(alone.at(0).score, 0);
  const auto of = verdicts(2, {{"headroom", "2"}}, {.pod_cpu_request_milli = 6000});
  EXPECT_EQ(of.at(0).score, 0);
  EXPECT_LT(of.at(2).score, 0);
  EXPECT_THAT(of.at(2).reason, HasSubstr("node 2: has no room for the rest of the pod"));
}

TEST_F(GpuHeadroom, RejectsNothing) {
  for (std::uint32_t node = 0; node < 4; ++node)
    gpu(node, "0000:" + std::to_string(4 + node) + "1:00.0", set_of({node}));
  for (const auto& [node, verdict] : verdicts(8)) EXPECT_NE(verdict.kind, TOPOLET_VERDICT_REJECT) << node;
}

TEST(GpuHeadroomOption, IsAutoOrANumber) {
  EXPECT_FALSE(parse_headroom("auto").cpus_per_gpu.has_value());
  EXPECT_EQ(parse_headroom("12").cpus_per_gpu, 12U);
  EXPECT_TRUE(parse_headroom("0").is_off());
  for (const char* const wrong : {"-1", "many", "3 CPUs", "99999"}) {
    EXPECT_THROW(parse_headroom(wrong), std::invalid_argument) << wrong;
  }
}

TEST_F(GpuHeadroom, TellsWhichDevicesAContainerUses) {
  gpu(0, "0000:41:00.0", set_of({0}));
  gpu(1, "0000:81:00.0", set_of({1}));
  EXPECT_THAT(used(with("all")), ElementsAre("0000:41:00.0", "0000:81:00.0"));
  EXPECT_THAT(used({.devices = {"/dev/nvidia1", "/dev/nvidia1", "/dev/fuse"}}), ElementsAre("0000:81:00.0"));
  EXPECT_THAT(used({}), IsEmpty());
}

TEST_F(GpuHeadroom, KnowsTheDevicesOfAContainerThatIsPlacedAnew) {
  gpu(0, "0000:41:00.0", set_of({1}));
  const Container again{.used_devices = {"0000:41:00.0"}};
  EXPECT_EQ(verdicts(2, {}, again).at(1).score, 100);
  EXPECT_LT(verdicts(2, {}, again).at(0).score, 100);
  EXPECT_THAT(used(again), ElementsAre("0000:41:00.0"));
}

}  // namespace
}  // namespace topolet::gpu
