// The plugin through its entry.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <climits>

#include "tests/plugins/gpu/gpu_plugin.hpp"

namespace topolet::gpu {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(GpuPluginTest, SaysHowCloseDevicesAreToEachOther) {
  gpu(0, "0000:41:00.0", set_of({0}), "0000:40:01.0");
  gpu(1, "0000:42:00.0", set_of({0}), "0000:40:01.0");
  gpu(2, "0000:50:00.0", set_of({0}));
  gpu(3, "0000:81:00.0", set_of({1}));
  gpu(4, "0000:c1:00.0", set_of({2}));
  const auto package = set_of({0, 1});
  const auto reason = [&](const char* gpus) { return verdict(with(gpus), package).reason; };
  EXPECT_THAT(
      reason("0,1"),
      StartsWith(
          "nodes 0-1: 2 of 2 GPUs are local, behind the same PCIe switch; node 2: no GPU is local, distance 20"));
  EXPECT_THAT(reason("0,1,2"), StartsWith("nodes 0-1: 3 of 3 GPUs are local, behind the same PCIe root;"));
  EXPECT_THAT(reason("0,3"), StartsWith("nodes 0-1: 2 of 2 GPUs are local, in the same package;"));
  EXPECT_THAT(reason("0,4"),
              StartsWith("nodes 0-1: 1 of 2 GPUs is local, the other is at distance 20 (assumed); node 2: 1 "));
  EXPECT_THAT(verdict(with("0"), set_of({1})).reason,
              StartsWith("node 1: no GPU is local, distance 20 (assumed) in the same package;"));
}

TEST_F(GpuPluginTest, SaysHowFarDevicesAreThatAreNotLocal) {
  gpu(0, "0000:41:00.0", set_of({0}));
  gpu(1, "0000:81:00.0", set_of({1}));
  gpu(2, "0000:c1:00.0", set_of({2}));
  gpu(3, "0000:e1:00.0", set_of({3}));
  machine_.distances({10, 12, 21, 21, 12, 10, 21, 21, 21, 21, 10, 12, 21, 21, 12, 10});
  const auto reason = [&](const char* gpus, const sdk::Set& nodes) { return verdict(with(gpus), nodes).reason; };
  EXPECT_THAT(
      reason("all", set_of({0, 1, 2})),
      StartsWith("nodes 0-2: 3 of 4 GPUs are local, in different packages, the other is at distance 12 within its "
                 "package; node 3: 1 of 4 GPUs is local, the others are at distance 12 to 21"));
  EXPECT_THAT(reason("all", set_of({0, 2})),
              StartsWith("nodes 0,2: 2 of 4 GPUs are local, in different packages, the others "
                         "are at distance 12 within their packages;"));
  EXPECT_THAT(reason("1", set_of({0})), StartsWith("node 0: no GPU is local, distance 12 in the same package;"));
}

TEST_F(GpuPluginTest, SaysOnWhichNodesTooFewCpusAreFree) {
  gpu(0, "0000:41:00.0", set_of({1}));
  ledger_.place_exclusive({.pod_uid = "other"}, set_of({2}));
  EXPECT_THAT(verdict(with("0"), set_of({0}), {}, 2).reason,
              EndsWith("; node 1: 1 of 1 GPU is local, but only 1 of 2 CPUs is free; node 2: no GPU is local, distance "
                       "20 (assumed); "
                       "node 3: no GPU is local, distance 20 (assumed)"));
  EXPECT_THAT(verdict(with("0"), set_of({1}), {}, 2).reason,
              StartsWith("node 1: 1 of 1 GPU is local, but only 1 of 2 CPUs is free; node 0: no GPU is local, "));
  EXPECT_THAT(verdict(with("0"), set_of({0, 1}), {}, 3).reason,
              StartsWith("nodes 0-1: 1 of 1 GPU is local to 1 of 3 CPUs; "));
  EXPECT_THAT(verdict(with("0"), set_of({2}), {}, 3).reason,
              StartsWith("node 2: no GPU is local, distance 20 (assumed), and only 2 of 3 CPUs are free; "));
  ledger_.place_exclusive({.pod_uid = "another"}, set_of({3}));
  EXPECT_THAT(verdict(with("0"), set_of({0}), {}, 1).reason,
              HasSubstr("; node 1: 1 of 1 GPU is local, but no CPU is free;"));
  EXPECT_THAT(verdict(with("0"), set_of({0})).reason, HasSubstr("; node 1: 1 of 1 GPU is local, but no CPU is free;"));
}

TEST_F(GpuPluginTest, ScoresByDistance) {
  machine_.distances({10, 12, 21, 40, 12, 10, 21, 40, 21, 21, 10, 40, 40, 40, 40, 10});
  gpu(0, "0000:41:00.0", set_of({0}));
  EXPECT_EQ(verdict(with("0"), set_of({0})).score, 100);
  EXPECT_EQ(verdict(with("0"), set_of({0, 1})).score, 99);
  EXPECT_EQ(verdict(with("0"), set_of({1})).score, 67);
  EXPECT_EQ(verdict(with("0"), set_of({2})).score, -5);
  EXPECT_EQ(verdict(with("0"), set_of({3})).score, -50);
}

TEST_F(GpuPluginTest, PrefersAmongEqualsTheNodeWhereDevicesAreCloserToEachOther) {
  gpu(0, "0000:41:00.0", set_of({0}));
  gpu(1, "0000:42:00.0", set_of({0}));
  gpu(2, "0000:81:00.0", set_of({2}), "0000:80:01.0");
  gpu(3, "0000:82:00.0", set_of({2}), "0000:80:01.0");
  EXPECT_GT(verdict(with("all"), set_of({2})).score, verdict(with("all"), set_of({0})).score);
}

TEST_F(GpuPluginTest, PrefersAmongEqualsTheSamePackage) {
  gpu(0, "0000:41:00.0", set_of({0}));
  EXPECT_GT(verdict(with("0"), set_of({1})).score, verdict(with("0"), set_of({2})).score);
}

TEST_F(GpuPluginTest, CountsADeviceOnceHoweverOftenItIsNamed) {
  gpu(0, "0000:41:00.0", set_of({0}));
  const Container container{.devices = {"/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"},
                            .cdi_devices = {"nvidia.com/gpu=GPU-0"},
                            .env = {{"NVIDIA_VISIBLE_DEVICES", "0,GPU-0"}}};
  EXPECT_THAT(verdict(container, set_of({0})).reason, StartsWith("node 0: 1 of 1 GPU is local; "));
}

TEST_F(GpuPluginTest, HasNoOpinionOnDevicesNearEveryNode) {
  gpu(0, "0000:41:00.0", set_of({0, 1, 2, 3}));
  const Verdict verdict = this->verdict(with("0"), set_of({0}));
  EXPECT_EQ(verdict.kind, TOPOLET_VERDICT_ABSTAIN);
  EXPECT_EQ(verdict.reason,
            "not counted: 0000:41:00.0 of NVIDIA_VISIBLE_DEVICES: the machine does not say which node it is near");
}

TEST_F(GpuPluginTest, LocatesADeviceWithItsOwnMemoryNodeByTheNearestCpus) {
  Machine machine("pack:2 [numa] [numa] core:2 pu:1");
  std::uint32_t own = 0;
  for (const topolet_node& node : sdk::nodes(machine.view())) own = node.memory_only != 0 ? node.os_index : own;
  machine.device({.name = "nvml0", .address = "0000:41:00.0", .nodes = set_of({own})});
  const Ledger ledger(machine);
  const Request request(machine, ledger, with("0"), 0);
  const auto verdicts = Plugin(topolet_plugin_v1, host_, options()).score(request);
  int full = 0;
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    if (sdk::size_of(request.view().candidates[i].nodes) == 1) full += verdicts[i].score == 100 ? 1 : 0;
  }
  EXPECT_EQ(full, 1);
}

TEST_F(GpuPluginTest, CountsTheNearestNodeAsLocalIfTheDevicesOwnHasNoCpus) {
  Machine machine("[numa] pack:2 [numa] core:2 pu:1");
  std::vector<std::uint32_t> cpu_nodes;
  std::uint32_t own = 0;
  for (const topolet_node& node : sdk::nodes(machine.view())) {
    if (node.memory_only != 0) own = node.os_index;
    if (node.memory_only == 0) cpu_nodes.push_back(node.os_index);
  }
  ASSERT_EQ(cpu_nodes.size(), 2U);
  ASSERT_EQ(own, 2U);
  machine.distances({10, 20, 30, 20, 10, 15, 30, 15, 10});
  machine.device({.name = "nvml0", .address = "0000:41:00.0", .nodes = set_of({own})});
  const Ledger ledger(machine);
  const Request request(machine, ledger, with("0"), 0);
  Plugin plugin(topolet_plugin_v1, host_, options({{"affinity", "require"}}));
  const auto of = [&](std::uint32_t node) { return plugin.score(request)[request.position(set_of({node}))]; };
  EXPECT_EQ(of(1).reason,
            "node 1: 1 of 1 GPU is local; node 0: no GPU is local, distance 30; 0000:41:00.0 of "
            "NVIDIA_VISIBLE_DEVICES: node 2 has "
            "no CPUs, and the nearest CPUs are on node 1");
  EXPECT_EQ(of(1).score, 100);
  EXPECT_EQ(of(0).kind, TOPOLET_VERDICT_REJECT);
}

TEST_F(GpuPluginTest, CountsOnlyNodesWithFreeCpus) {
  gpu(0, "0000:41:00.0", set_of({1}));
  ledger_.place_exclusive({.pod_uid = "other"}, machine_.cpus_of(set_of({1})));
  const Verdict wide = verdict(with("0"), set_of({0, 1}), {}, 1);
  EXPECT_THAT(
      wide.reason,
      StartsWith("nodes 0-1: no GPU is local, distance 20 (assumed) in the same package, no CPU free on node 1"));
  EXPECT_EQ(verdict(with("0"), set_of({0, 1}), {{"affinity", "require"}}, 1).kind, TOPOLET_VERDICT_REJECT);
}

TEST_F(GpuPluginTest, CountsNoMoreNodesThanTheContainerHasCpus) {
  gpu(0, "0000:41:00.0", set_of({0}));
  gpu(1, "0000:81:00.0", set_of({1}));
  EXPECT_GT(verdict(with("0,1"), set_of({0}), {}, 1).score, verdict(with("0,1"), set_of({0, 1}), {}, 1).score);
  EXPECT_LT(verdict(with("0,1"), set_of({0}), {}, 2).score, verdict(with("0,1"), set_of({0, 1}), {}, 2).score);
  // A node set meets the requirement if it misses no GPU.
  EXPECT_EQ(verdict(with("0,1"), set_of({0, 1}), {{"affinity", "require"}}, 1).kind, TOPOLET_VERDICT_SCORE);
}

TEST_F(GpuPluginTest, KeepsNodesOfGpusFree) {
  gpu(0, "0000:41:00.0", set_of({0}));
  machine_.device({.name = "eth0", .address = "0000:81:00.0", .nodes = set_of({1}), .kind = TOPOLET_OS_DEVICE_NETWORK});
  const Plugin::Values keep = {{"keep-free", "true"}};
  EXPECT_EQ(verdict({}, set_of({0}), keep).score, -4);
  EXPECT_EQ(verdict({}, set_of({0}), keep).reason, "node 0: keep-free avoids the GPUs of node 0");
  EXPECT_EQ(verdict({}, set_of({1}), keep).score, 4);
  EXPECT_EQ(verdict({}, set_of({0, 1}), keep).score, -2);
  EXPECT_EQ(verdict({}, set_of({1}), {}).reason, "");
  EXPECT_EQ(verdict(with("0"), set_of({0}), keep).score, 100);
  ledger_.place_shared({.pod_uid = "other", .cpu_request_milli = 1500}, machine_.cpus_of(set_of({1})));
  EXPECT_EQ(verdict({.cpu_request_milli = 600}, set_of({1}), keep).reason,
            "node 1: no GPUs, but the container does not fit");
}

TEST_F(GpuPluginTest, KeepsAContainerWithoutRequestsToAllOtherNodes) {
  gpu(0, "0000:41:00.0", set_of({0}));
  const Container besteffort{.qos = TOPOLET_QOS_BESTEFFORT};
  const Plugin::Values keep = {{"keep-free", "true"}};
  EXPECT_EQ(verdict(besteffort, set_of({1, 2, 3}), keep).score, 4);
  EXPECT_EQ(verdict(besteffort, set_of({2, 3}), keep).score, 0);
  EXPECT_EQ(verdict(besteffort, set_of({0, 1, 2, 3}), keep).score, -4);
  ledger_.place_exclusive({.pod_uid = "other"}, machine_.cpus_of(set_of({2})));
  EXPECT_EQ(verdict(besteffort, set_of({1, 2, 3}), keep).score, 4) << "what others hold now may come free";
  EXPECT_EQ(verdict(besteffort, set_of({1, 3}), keep).score, 0);
}

TEST_F(GpuPluginTest, ReadsSpecsAndDevicesAgainWhenTheyChange) {
  gpu(8, "0000:41:00.0", set_of({2}));
  Plugin plugin(topolet_plugin_v1, host_, options());
  const Container container{.devices = {"/dev/nvme5n1"}, .cdi_devices = {"a/b=x"}};
  const Request request(machine_, ledger_, container, 0);
  EXPECT_THAT(plugin.score(request)[2].reason, HasSubstr("a/b=x: no CDI spec defines it"));
  files_.write("etc/cdi/x.json",
               R"({"kind":"a/b","devices":[{"name":"x","containerEdits":{"env":["NVIDIA_VISIBLE_DEVICES=8"]}}]})");
  files_.device("block", "259:0", "0000:42:00.0", "nvme/nvme5/nvme5n1", "nvme5n1", 2);
  EXPECT_THAT(plugin.score(request)[2].reason, HasSubstr("a/b=x: no CDI spec defines it"))
      << "files are read in tick only";
  const auto has_both = [&] {
    return plugin.score(request)[2].reason.starts_with("node 2: 2 of 2 devices are local, on the same node;");
  };
  for (int ticks = 0; ticks < 1000 && !has_both(); ++ticks) plugin.tick(machine_, ledger_, 1000);
  EXPECT_TRUE(has_both()) << plugin.score(request)[2].reason;
}

TEST_F(GpuPluginTest, AppliesSlowlyReadFilesInALaterTick) {
  gpu(8, "0000:41:00.0", set_of({2}));
  Plugin plugin(topolet_plugin_v1, host_, options());
  const Request request(machine_, ledger_, {.cdi_devices = {"a/last=x"}}, 0);
  for (int i = 0; i < 4000; ++i) {
    files_.write("etc/cdi/" + std::to_string(i) + ".json",
                 R"({"kind":"a/b)" + std::to_string(i) +
                     R"(","devices":[{"name":"x","containerEdits":{"env":["NVIDIA_VISIBLE_DEVICES=8"]}}]})");
  }
  files_.write("etc/cdi/last.json",
               R"({"kind":"a/last","devices":[{"name":"x","containerEdits":{"env":["NVIDIA_VISIBLE_DEVICES=8"]}}]})");
  int ticks = 0;
  while (plugin.score(request)[2].score != 100 && ++ticks < 3000) plugin.tick(machine_, ledger_, 1000);
  EXPECT_EQ(plugin.score(request)[2].score, 100);
  EXPECT_GT(ticks, 1) << "the first tick waited for all of them";
}

TEST_F(GpuPluginTest, AsksNvmlForMigDevices) {
  gpu(0, "0000:41:00.0", set_of({0}));
  gpu(1, "0000:c1:00.0", set_of({3}));
  const Plugin::Values nvml = {{"nvml-library", TOPOLET_FAKE_NVML}};
  EXPECT_EQ(verdict(with("MIG-slice"), set_of({3}), nvml).score, 100);
  EXPECT_EQ(verdict({.devices = {"/dev/nvidia0"}}, set_of({3}), nvml).score, 100) << "minor 0 has index 1";
  EXPECT_THAT(verdict(with("MIG-slice"), set_of({3}), {{"nvml-library", "libnone.so"}}).reason,
              HasSubstr("it is not known which GPU this MIG device belongs to: libnone.so is not installed"));
}

TEST_F(GpuPluginTest, SurvivesSpecsThatReferToThemselves) {
  gpu(0, "0000:41:00.0", set_of({0}));
  files_.write("etc/cdi/x.json", R"({"kind":"nvidia.com/gpu","devices":[
      {"name":"0","containerEdits":{"env":["NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=0"]}},
      {"name":"a","containerEdits":{"env":["NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=b"]}},
      {"name":"b","containerEdits":{"env":["NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=a"]}}]})");
  EXPECT_EQ(verdict({.cdi_devices = {"nvidia.com/gpu=0"}}, set_of({0})).score, 100);
  EXPECT_THAT(verdict({.cdi_devices = {"nvidia.com/gpu=a"}}, set_of({0})).reason,
              HasSubstr("NVIDIA_VISIBLE_DEVICES as set by nvidia.com/gpu=a: none of the device nodes"));
}

TEST_F(GpuPluginTest, LooksUpEachNameOnceAndOnlySoMany) {
  gpu(0, "0000:41:00.0", set_of({0}));
  std::string numbers;
  std::string same;
  for (int i = 0; i < 5000; ++i) {
    numbers += std::to_string(i) + ',';
    same += " 0 ,";
  }
  EXPECT_THAT(verdict(with(numbers), set_of({0})).reason,
              HasSubstr("; not counted: names after the first 1024; not counted: item 2 of NVIDIA_VISIBLE_DEVICES: "));
  EXPECT_THAT(verdict(with(same), set_of({0})).reason, Not(HasSubstr("after the first")));
  std::string ranges;
  for (int i = 0; i < 900; ++i) ranges += "0-" + std::to_string(1000 - i) + ',';
  EXPECT_THAT(verdict({.env = {{"VA_VISIBLE_DEVICES", ranges}}}, set_of({0})).reason,
              HasSubstr("names after the first 1024"));
}

TEST_F(GpuPluginTest, LetsTheVariablesOfASpecOverrideTheContainers) {
  gpu(0, "0000:41:00.0", set_of({0}));
  gpu(1, "0000:81:00.0", set_of({1}));
  files_.write("etc/cdi/x.json", R"({"kind":"nvidia.com/gpu","containerEdits":{"env":["NVIDIA_VISIBLE_DEVICES=void"]},
      "devices":[{"name":"0","containerEdits":{"deviceNodes":[{"path":"/dev/nvidia0"}]}},
                 {"name":"1"},
                 {"name":"x","containerEdits":{"deviceNodes":[{"path":"/dev/nvidia-x"}]}},
                 {"name":"y","containerEdits":{"deviceNodes":[{"path":"/dev/nvidia77"}]}}]})");
  const auto reason = [&](const char* device, const char* own) {
    const Container container{.cdi_devices = {device}, .env = {{"NVIDIA_VISIBLE_DEVICES", own}}};
    return verdict(container, set_of({0})).reason;
  };
  EXPECT_THAT(reason("nvidia.com/gpu=0", "all"), StartsWith("node 0: 1 of 1 GPU is local; "));
  EXPECT_THAT(reason("nvidia.com/gpu=1", "all"), StartsWith("node 0: no GPU is local, ")) << "by its name";
  for (const char* const unknown : {"nvidia.com/gpu=x", "nvidia.com/gpu=y"}) {
    EXPECT_THAT(reason(unknown, "0"), StartsWith("node 0: 1 of 1 GPU is local; ")) << "better than nothing";
  }
}

TEST_F(GpuPluginTest, IgnoresASecondCdiDeviceWithTheSameGpu) {
  gpu(0, "0000:41:00.0", set_of({0}));
  files_.write("etc/cdi/x.json", R"({"kind":"a/b","containerEdits":{"env":["NVIDIA_VISIBLE_DEVICES=0"]},
      "devices":[{"name":"x"},{"name":"y"}]})");
  EXPECT_THAT(verdict({.cdi_devices = {"a/b=x", "a/b=y"}}, set_of({0})).reason, Not(HasSubstr("not counted")));
}

TEST_F(GpuPluginTest, FindsAGpuByTheBeginningOfItsUuid) {
  machine_.device(
      {.name = "nvml0", .address = "0000:41:00.0", .nodes = set_of({1}), .info = {{"NVIDIAUUID", "GPU-ac1a8e86-51"}}});
  EXPECT_EQ(verdict(with("GPU-ac1a"), set_of({1})).score, 100);
  EXPECT_EQ(verdict(with("GPU-AC1A8E86-51"), set_of({1})).score, 100);
  for (const char* const other : {"GPU-", "GPU-ac1a8e86-518", "GPU-b"}) {
    EXPECT_THAT(verdict(with(other), set_of({1})).reason, HasSubstr("no such GPU was found")) << other;
  }
}

TEST_F(GpuPluginTest, FindsADeviceByOtherSpellingsOfItsPath) {
  gpu(0, "0000:41:00.0", set_of({1}));
  files_.device("char", "226:0", "0000:41:00.0", "drm/card0", "dri/card0", 1);
  files_.write("dev/dri/card0", "");
  files_.link("dev/graphics", "dri");
  for (const char* const path : {"/dev//nvidia0", "/dev/dri/../nvidia0", "/run/nvidia/driver/dev/nvidia0",
                                 "/dev/graphics", "/dev/dri/", "/dev/./dri/card0"}) {
    EXPECT_EQ(verdict({.devices = {path}}, set_of({1})).score, 100) << path;
  }
  for (const char* const path :
       {"/dev", "/dev/", "/", "", "dev/nvidia0", "/dev/../nvidia0", "/dev/fuse", "/dev/nvidiactl"}) {
    EXPECT_EQ(verdict({.devices = {path}}, set_of({1})).reason, "") << path;
  }
}

TEST_F(GpuPluginTest, IgnoresAPathThatTheKernelWouldNotOpen) {
  gpu(0, "0000:41:00.0", set_of({1}));
  const auto spelled_with = [&](std::size_t slashes) {
    return verdict({.devices = {std::string(slashes, '/') + "dev/nvidia0"}}, set_of({1})).score;
  };
  EXPECT_EQ(spelled_with(1000), 100);
  EXPECT_EQ(spelled_with(PATH_MAX), 0);
}

TEST_F(GpuPluginTest, FollowsALinkThatIsNamedLikeAnotherDevice) {
  gpu(0, "0000:41:00.0", set_of({0}));
  gpu(1, "0000:81:00.0", set_of({1}));
  files_.write("dev/nvidia1", "");
  files_.link("dev/nvidia0", "nvidia1");
  EXPECT_EQ(verdict({.devices = {"/dev/nvidia0"}}, set_of({1})).score, 100);
}

TEST_F(GpuPluginTest, ReadsPciAddressesFromAVariableInJson) {
  machine_.device({.name = "eth0", .address = "0000:41:00.0", .nodes = set_of({1}), .kind = TOPOLET_OS_DEVICE_NETWORK});
  const Plugin::Values table = {{"devices", "vf: env=PCIDEVICE_* pci=item"}};
  const std::string json = R"({"0000:41:00.0":{"generic":{"deviceID":"0000:41:00.0"},"extra":{"mac":"1,2"}}})";
  const Container container{.env = {{"PCIDEVICE_VF", "0000:41:00.0"}, {"PCIDEVICE_VF_INFO", json}}};
  const std::string reason = verdict(container, set_of({1}), table).reason;
  EXPECT_THAT(reason, StartsWith("node 1: 1 of 1 device is local; "));
  EXPECT_THAT(reason, Not(HasSubstr("not counted")));
}

TEST_F(GpuPluginTest, ShowsTheFullNameOfABrokenSpec) {
  const std::string name = "k8s.gpu.vendor.com-claim_0f1b2c3d-0f1b-0f1b-0f1b-0f1b2c3d4e5f-and-so-on\n.json";
  files_.write("etc/cdi/" + name, "{");
  EXPECT_THAT(
      verdict({.cdi_devices = {"a/b=x"}}, set_of({0})).reason,
      EndsWith("-and-so-on?.json: line 1: not JSON, and not YAML either (line 2: did not find expected node content)"));
}

TEST_F(GpuPluginTest, TellsDevicesThatAreNotFoundFromPathsThatAreNoHardware) {
  const auto reason = [&](const char* path) { return verdict({.devices = {path}}, set_of({0})).reason; };
  for (const char* const path : {"/dev/nvme7n1", "/dev/vfio/7", "/dev/nvidia7", "/dev/dri/card7", "/dev/vacc7"}) {
    EXPECT_EQ(reason(path), "not counted: " + std::string(path) + ": its PCI device is not known");
  }
  for (const char* const path : {"/dev/nvme-fabrics", "/dev/vfio/vfio", "/dev/nvidia-caps/nvidia-cap1",
                                 "/dev/nvidia-nvswitch0", "/dev/infiniband/rdma_cm", "/dev/loop0"}) {
    EXPECT_EQ(reason(path), "");
  }
}

TEST_F(GpuPluginTest, SaysWhatConfiguredKindsNameInVain) {
  const Plugin::Values table = {{"devices", "n: path=/dev/n env=N pci=node:9; a: path=/dev/a pci=address:77:00.0"}};
  EXPECT_EQ(verdict({.devices = {"/dev/n", "/dev/a"}, .env = {{"N", "0"}}}, set_of({0}), table).reason,
            "not counted: /dev/n: the machine has no node 9; not counted: /dev/a: the machine has no PCI device "
            "0000:77:00.0; not counted: N: the machine has no node 9");
}

TEST_F(GpuPluginTest, FindsAllDevicesOfAKindWhateverTheirNames) {
  machine_.device({.name = "/dev/acc_a", .address = "0000:41:00.0", .nodes = set_of({1})});
  files_.device("char", "240:0", "0000:42:00.0", "acc/b", "acc_b", 1);
  const Plugin::Values table = {{"devices", "acc: path=/dev/acc_* env=ACC"}};
  EXPECT_THAT(verdict({.env = {{"ACC", "all"}}}, set_of({1}), table).reason, StartsWith("node 1: 2 of 2 "));
  EXPECT_EQ(verdict({.env = {{"VA_VISIBLE_DEVICES", "all"}}}, set_of({1})).reason,
            "not counted: VA_VISIBLE_DEVICES: no device of this kind was found");
}

TEST_F(GpuPluginTest, RefusesKindsThatItCannotParse) {
  try {
    Plugin plugin(topolet_plugin_v1, host_, options({{"devices", "shoe"}}));
    FAIL() << "it started";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(),
                 "create failed: option devices: shoe: write it as NAME: path=PATTERN env=VARIABLE pci=HOW");
  }
}

}  // namespace
}  // namespace topolet::gpu
