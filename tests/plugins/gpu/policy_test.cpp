#include "plugins/gpu/policy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <topolet/testing.hpp>

namespace topolet::gpu {
namespace {

using sdk::testing::Container;
using sdk::testing::FakeHost;
using sdk::testing::Ledger;
using sdk::testing::Machine;
using sdk::testing::Plugin;
using sdk::testing::Request;
using sdk::testing::set_of;
using sdk::testing::Workload;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Five GPUs: two behind one switch, one more below their root, one on the node beside, one on the other package.
class GpuTest : public ::testing::Test {
 protected:
  GpuTest() {
    const std::string addresses[] = {"0000:41:00.0", "0000:42:00.0", "0000:50:00.0", "0000:81:00.0", "0000:c1:00.0"};
    const std::uint32_t nodes[] = {0, 0, 0, 1, 2};
    for (std::uint32_t i = 0; i < 5; ++i) {
      machine_.device({.name = "nvml" + std::to_string(i),
                       .address = addresses[i],
                       .nodes = set_of({nodes[i]}),
                       .info = {{"NVIDIAUUID", "GPU-" + std::to_string(i)}},
                       .bridge = i < 2 ? "0000:40:01.0" : ""});
    }
  }
  std::vector<std::uint32_t> devices(const Container& container) {
    return devices_of(machine_.view(), Workload(container).view());
  }

  Machine machine_{"pack:2 numa:2 core:2 pu:1"};
  Ledger ledger_{machine_};
  FakeHost host_;
};

TEST_F(GpuTest, TellsHowCloseDevicesAre) {
  const auto to_first = [this](std::uint32_t other) { return closeness(machine_.view(), 0, other); };
  EXPECT_EQ(to_first(1), Closeness::kSameSwitch);
  EXPECT_EQ(to_first(2), Closeness::kSameRoot);
  EXPECT_EQ(to_first(3), Closeness::kSamePackage);
  EXPECT_EQ(to_first(4), Closeness::kFar);
}

TEST_F(GpuTest, FindsDevicesByPathAndUuid) {
  EXPECT_THAT(devices({.devices = {"/dev/nvml1", "/dev/null"}}), ElementsAre(1));
  EXPECT_THAT(devices({.env = {{"NVIDIA_VISIBLE_DEVICES", "GPU-3"}}}), ElementsAre(3));
  EXPECT_THAT(devices({.cdi_devices = {"nvidia.com/gpu=GPU-4"}}), ElementsAre(4));
  EXPECT_THAT(devices({.devices = {"/dev/my-nvml1"}}), IsEmpty());
}

TEST_F(GpuTest, AbstainsAndNamesTheDevicesItSees) {
  Plugin plugin(topolet_plugin_v1, host_);
  const Request request(machine_, ledger_, {.devices = {"/dev/nvml4"}}, 1);
  for (const auto& verdict : plugin.score(request)) {
    EXPECT_EQ(verdict.kind, TOPOLET_VERDICT_ABSTAIN);
    EXPECT_EQ(verdict.reason, "gpu has no policy yet; nvml4 on nodes 2");
  }
  const auto adjusted = plugin.adjust(request, 0, set_of({0}));
  EXPECT_FALSE(adjusted.bound);
  EXPECT_TRUE(adjusted.env.empty());
  EXPECT_EQ(adjusted.reason, "gpu has no policy yet");
}

TEST_F(GpuTest, RemembersDevicesUntilTheyAreReleased) {
  Plugin plugin(topolet_plugin_v1, host_);
  const Container container{.pod_uid = "u", .name = "web", .devices = {"/dev/nvml0"}};
  plugin.notify(TOPOLET_EVENT_PLACED, machine_, container, set_of({0}));
  EXPECT_EQ(host_.state, (std::map<std::string, std::string>{{"u/web", "nvml0 on nodes 0"}}));
  plugin.notify(TOPOLET_EVENT_RELEASED, machine_, container, set_of({0}));
  EXPECT_TRUE(host_.state.empty());
  EXPECT_THAT(plugin.tick(machine_, ledger_, 0), IsEmpty());
}

TEST_F(GpuTest, RefusesAKindOfDeviceThatItDoesNotKnow) {
  try {
    Plugin plugin(topolet_plugin_v1, host_, {{"kinds", "gpu shoe"}});
    FAIL() << "it started";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(),
                 "create failed: option kinds: there is no kind of device 'shoe'; there are gpu, network, openfabrics, "
                 "block and coprocessor");
  }
}

}  // namespace
}  // namespace topolet::gpu
