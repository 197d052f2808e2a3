// Containers that have all devices of a kind to look at them.
#include "plugins/gpu/watched_devices.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/plugins/gpu/gpu_plugin.hpp"

namespace topolet::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class WatchedDevices : public GpuPluginTest {
 protected:
  /// Four nodes of eight CPUs with a GPU on each of the first two.
  WatchedDevices() : GpuPluginTest("pack:4 numa:1 core:8 pu:1") {
    gpu(0, "0000:41:00.0", set_of({0}));
    gpu(1, "0000:81:00.0", set_of({1}));
  }

  static Container requesting(std::int64_t milli, Container container) {
    container.cpu_request_milli = milli;
    return container;
  }
  std::vector<std::string> used(const Container& container, std::uint32_t exclusive = 0) {
    const Request request(machine_, ledger_, container, exclusive);
    return Plugin(topolet_plugin_v1, host_, options()).adjust(request, 0, set_of({0, 1})).used_devices;
  }
  /// Returns true if other containers keep off the nodes of the GPUs.
  bool keeps_headroom() {
    const Request request(machine_, ledger_, {}, 2);
    const auto verdicts = Plugin(topolet_plugin_v1, host_, options()).score(request);
    return verdicts[request.position(set_of({0}))].score < verdicts[request.position(set_of({2}))].score;
  }
};

TEST_F(WatchedDevices, AreNotUsed) {
  EXPECT_THAT(used(requesting(100, with("all"))), IsEmpty());
  EXPECT_THAT(used(requesting(999, with("0,1"))), IsEmpty());
  EXPECT_THAT(used(requesting(100, with("GPU-1,GPU-0"))), IsEmpty());
  EXPECT_THAT(used(requesting(0, {.devices = {"/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl"}})), IsEmpty());
  EXPECT_THAT(used(requesting(100, {.cdi_devices = {"nvidia.com/gpu=all"}})), IsEmpty());
}

TEST_F(WatchedDevices, AreUsedByWhoRequestsMoreOrHasSomeOfThemOnly) {
  EXPECT_THAT(used(requesting(1000, with("all"))), ElementsAre("0000:41:00.0", "0000:81:00.0"));
  EXPECT_THAT(used(requesting(100, with("1"))), ElementsAre("0000:81:00.0"));
  EXPECT_THAT(used(requesting(500, with("all")), 1), ElementsAre("0000:41:00.0", "0000:81:00.0"))
      << "it gets a CPU of its own";
}

TEST_F(WatchedDevices, AreThoseOfOneVendor) {
  machine_.device({.name = "card7", .address = "0000:c1:00.0", .nodes = set_of({3})});
  EXPECT_THAT(used(requesting(100, with("all"))), IsEmpty()) << "all of those that the variable stands for";
}

TEST_F(WatchedDevices, AreOfTheKindThatIsComplete) {
  machine_.device(
      {.name = "mlx5_0", .address = "0000:c1:00.0", .nodes = set_of({3}), .kind = TOPOLET_OS_DEVICE_OPENFABRICS});
  Container container = requesting(100, with("all"));
  container.devices = {"/dev/infiniband/uverbs0"};
  EXPECT_THAT(used(container), ElementsAre("0000:c1:00.0")) << "the machine has one of these";
  machine_.device(
      {.name = "mlx5_1", .address = "0000:c2:00.0", .nodes = set_of({3}), .kind = TOPOLET_OS_DEVICE_OPENFABRICS});
  EXPECT_THAT(used(container), ElementsAre("0000:c1:00.0")) << "it has one of two";
  container.devices = {"/dev/infiniband/uverbs0", "/dev/infiniband/uverbs1"};
  EXPECT_THAT(used(container), IsEmpty());
}

TEST_F(WatchedDevices, AreWhereTheirContainerIsBestButNeverDenyIt) {
  ledger_.place_exclusive({.name = "other"}, set_of({8, 9, 10, 11, 12, 13, 14, 15}));
  const Plugin::Values require = {{"affinity", "require"}};
  EXPECT_EQ(verdict(requesting(1000, with("all")), set_of({0, 1}), require).kind, TOPOLET_VERDICT_REJECT);
  EXPECT_EQ(verdict(requesting(100, with("all")), set_of({0, 1}), require).kind, TOPOLET_VERDICT_SCORE);
  EXPECT_GT(verdict(requesting(100, with("all")), set_of({0}), require).score,
            verdict(requesting(100, with("all")), set_of({2}), require).score);
}

TEST_F(WatchedDevices, ComeAfterThoseThatTheirContainerUses) {
  for (const std::uint32_t nic : {2U, 3U})
    machine_.device({.name = "mlx5_" + std::to_string(nic),
                     .address = "0000:c" + std::to_string(nic) + ":00.0",
                     .nodes = set_of({nic}),
                     .kind = TOPOLET_OS_DEVICE_OPENFABRICS});
  Container container = requesting(100, with("all"));
  container.devices = {"/dev/infiniband/uverbs0"};
  EXPECT_THAT(used(container), ElementsAre("0000:c2:00.0"));
  const Plugin::Values require = {{"affinity", "require"}};
  const Verdict near = verdict(container, set_of({2}), require);
  EXPECT_EQ(near.score, 100) << near.reason;
  EXPECT_EQ(verdict(container, set_of({0, 1}), require).kind, TOPOLET_VERDICT_REJECT) << "what it uses is elsewhere";
}

TEST_F(WatchedDevices, AreToldOfInTheReason) {
  const Request request(machine_, ledger_, requesting(100, with("all")), 0);
  EXPECT_EQ(Plugin(topolet_plugin_v1, host_, options()).adjust(request, 0, set_of({0, 1})).reason,
            "it has all 2 GPUs and requests less than one CPU: taken to watch them, and to use none");
}

TEST_F(WatchedDevices, CountAsUnusedAlsoWhereTheLedgerListsThem) {
  const std::vector<std::string> both = {"0000:41:00.0", "0000:81:00.0"};
  ledger_.place_shared({.pod_uid = "monitoring", .name = "exporter", .cpu_request_milli = 100, .used_devices = both},
                       set_of({0}));
  EXPECT_TRUE(keeps_headroom());
  ledger_.place_shared({.name = "trainer", .cpu_request_milli = 1000, .used_devices = both}, set_of({0}));
  EXPECT_FALSE(keeps_headroom());
}

TEST(WatchedDevicesOfOneGpu, AreUsed) {
  sdk::testing::Machine machine("pack:2 numa:1 core:2 pu:1");
  machine.device({.name = "nvml0", .address = "0000:41:00.0", .nodes = set_of({0})});
  EXPECT_THAT(DevicesByKind(machine.view()).of_complete_kinds({"0000:41:00.0"}), IsEmpty());
}

TEST(WatchedDevicesWithoutPci, AreKnownByTheirNames) {
  sdk::testing::Machine machine("pack:2 numa:1 core:2 pu:1");
  machine.device({.name = "/dev/fpga0", .address = "", .nodes = set_of({0})});
  machine.device({.name = "/dev/fpga1", .address = "", .nodes = set_of({1})});
  machine.device({.name = "/dev/other0", .address = "", .nodes = set_of({1})});
  const DevicesByKind kinds(machine.view());
  EXPECT_THAT(kinds.of_complete_kinds({"/dev/fpga0", "/dev/fpga1", "/dev/other0"}),
              ElementsAre("/dev/fpga0", "/dev/fpga1"));
  EXPECT_THAT(kinds.of_complete_kinds({"/dev/fpga0", "/dev/other0"}), IsEmpty());
}

}  // namespace
}  // namespace topolet::gpu
