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
  EXPECT_THAT(reason("0,1"), StartsWith("nodes 0-1: 2 of 2 GPUs local, same PCIe switch; node 2: none, +20"));
  EXPECT_THAT(reason("0,1,2"), StartsWith("nodes 0-1: 3 of 3 GPUs local, same PCIe root;"));
  EXPECT_THAT(reason("0,3"), StartsWith("nodes 0-1: 2 of 2 GPUs local, same package;"));
  EXPECT_THAT(reason("0,4"),
              StartsWith("nodes 0-1: 1 of 2 GPUs local, the other one at +20 distance assumed; node 2: 1 "));
  EXPECT_THAT(verdict(with("0"), set_of({1})).reason, StartsWith("node 1: none, +20 distance assumed, same package;"));
}

TEST_F(GpuPluginTest, SaysWhereTheDevicesAreThatAreNotLocal) {
  gpu(0, "0000:41:00.0", set_of({0}));
  gpu(1, "0000:81:00.0", set_of({1}));
  gpu(2, "0000:c1:00.0", set_of({2}));
  gpu(3, "0000:e1:00.0", set_of({3}));
  machine_.distances({10, 12, 21, 21, 12, 10, 21, 21, 21, 21, 10, 12, 21, 21, 12, 10});
  const auto reason = [&](const char* gpus, const sdk::Set& nodes) { return verdict(with(gpus), nodes).reason; };
  EXPECT_THAT(reason("all", set_of({0, 1, 2})),
              StartsWith("nodes 0-2: 3 of 4 GPUs local, different packages, the other one at +12 distance within its "
                         "package; node 3: 1 of 4 GPUs local, the others at +12 to +21 distance"));
  EXPECT_THAT(reason("all", set_of({0, 2})), StartsWith("nodes 0,2: 2 of 4 GPUs local, different packages, the others "
                                                        "at +12 distance within their packages;"));
  EXPECT_THAT(reason("1", set_of({0})), StartsWith("node 0: none, +12 distance, same package;"));
}

TEST_F(GpuPluginTest, SaysWhereTooFewCpusAreFree) {
  gpu(0, "0000:41:00.0", set_of({1}));
  ledger_.place_exclusive({.name = "other"}, set_of({2}));
  EXPECT_THAT(verdict(with("0"), set_of({0}), {}, 2).reason,
              EndsWith("; node 1: 1 of 1 GPUs local, but only 1 of 2 CPUs free; node 2: none, +20 distance assumed; "
                       "node 3: none, +20 distance assumed"));
  EXPECT_THAT(verdict(with("0"), set_of({1}), {}, 2).reason,
              StartsWith("node 1: 1 of 1 GPUs local, but only 1 of 2 CPUs free; node 0: none, "));
  EXPECT_THAT(verdict(with("0"), set_of({0, 1}), {}, 3).reason,
              StartsWith("nodes 0-1: 1 of 1 GPUs local to 1 of 3 CPUs; "));
  EXPECT_THAT(verdict(with("0"), set_of({2}), {}, 3).reason,
              StartsWith("node 2: none, +20 distance assumed, and only 2 of 3 CPUs free; "));
  ledger_.place_exclusive({.name = "another"}, set_of({3}));
  EXPECT_THAT(verdict(with("0"), set_of({0}), {}, 1).reason,
              HasSubstr("; node 1: 1 of 1 GPUs local, but no CPU free;"));
  EXPECT_THAT(verdict(with("0"), set_of({0})).reason, HasSubstr("; node 1: 1 of 1 GPUs local, but no CPU free;"));
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

TEST_F(GpuPluginTest, CountsADeviceOnceByWhateverNames) {
  gpu(0, "0000:41:00.0", set_of({0}));
  const Container container{.devices = {"/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"},
                            .cdi_devices = {"nvidia.com/gpu=GPU-0"},
                            .env = {{"NVIDIA_VISIBLE_DEVICES", "0,GPU-0"}}};
  EXPECT_THAT(verdict(container, set_of({0})).reason, StartsWith("node 0: 1 of 1 GPUs local; "));
}

TEST_F(GpuPluginTest, HasNoOpinionOnDevicesOfNoNode) {
  gpu(0, "0000:41:00.0", set_of({0, 1, 2, 3}));
  const Verdict verdict = this->verdict(with("0"), set_of({0}));
  EXPECT_EQ(verdict.kind, TOPOLET_VERDICT_ABSTAIN);
  EXPECT_EQ(verdict.reason, "not counted: NVIDIA_VISIBLE_DEVICES=0: the machine ties it to no node");
}

TEST_F(GpuPluginTest, KnowsADeviceBesideMemoryOfItsOwnByTheNearCpus) {
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

TEST_F(GpuPluginTest, TakesTheNearestNodesForTheHomeOfADeviceWhoseNodeHasNoCpus) {
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
            "node 1: 1 of 1 GPUs local; node 0: none, +30 distance; NVIDIA_VISIBLE_DEVICES=0: node 2 has no CPUs; "
            "nearest: node 1");
  EXPECT_EQ(of(1).score, 100);
  EXPECT_EQ(of(0).kind, TOPOLET_VERDICT_REJECT);
}

TEST_F(GpuPluginTest, CountsOnlyNodesWithFreeCpus) {
  gpu(0, "0000:41:00.0", set_of({1}));
  ledger_.place_exclusive({.name = "other"}, machine_.cpus_of(set_of({1})));
  const Verdict wide = verdict(with("0"), set_of({0, 1}), {}, 1);
  EXPECT_THAT(wide.reason, StartsWith("nodes 0-1: none, +20 distance assumed, same package, no free CPU on node 1"));
  EXPECT_EQ(verdict(with("0"), set_of({0, 1}), {{"affinity", "require"}}, 1).kind, TOPOLET_VERDICT_REJECT);
}

TEST_F(GpuPluginTest, DoesNotCountMoreNodesThanThereAreCpus) {
  gpu(0, "0000:41:00.0", set_of({0}));
  gpu(1, "0000:81:00.0", set_of({1}));
  EXPECT_GT(verdict(with("0,1"), set_of({0}), {}, 1).score, verdict(with("0,1"), set_of({0, 1}), {}, 1).score);
  EXPECT_LT(verdict(with("0,1"), set_of({0}), {}, 2).score, verdict(with("0,1"), set_of({0, 1}), {}, 2).score);
  // What is required of a node set is that it misses none.
  EXPECT_EQ(verdict(with("0,1"), set_of({0, 1}), {{"affinity", "require"}}, 1).kind, TOPOLET_VERDICT_SCORE);
}

TEST_F(GpuPluginTest, KeepsNodesOfGpusFree) {
  gpu(0, "0000:41:00.0", set_of({0}));
  machine_.device({.name = "eth0", .address = "0000:81:00.0", .nodes = set_of({1}), .kind = TOPOLET_OS_DEVICE_NETWORK});
  const Plugin::Values keep = {{"keep-free", "true"}};
  EXPECT_EQ(verdict({}, set_of({0}), keep).score, -4);
  EXPECT_EQ(verdict({}, set_of({0}), keep).reason, "node 0: GPUs of node 0 are kept free");
  EXPECT_EQ(verdict({}, set_of({1}), keep).score, 4);
  EXPECT_EQ(verdict({}, set_of({0, 1}), keep).score, -2);
  EXPECT_EQ(verdict({}, set_of({1}), {}).reason, "");
  EXPECT_EQ(verdict(with("0"), set_of({0}), keep).score, 100);
  ledger_.place_shared({.name = "other", .cpu_request_milli = 1500}, machine_.cpus_of(set_of({1})));
  EXPECT_EQ(verdict({.cpu_request_milli = 600}, set_of({1}), keep).reason, "node 1: no GPUs, but no room either");
}

TEST_F(GpuPluginTest, ReadsSpecsAndDevicesAnewWhenTheyChange) {
  gpu(8, "0000:41:00.0", set_of({2}));
  Plugin plugin(topolet_plugin_v1, host_, options());
  const Container container{.devices = {"/dev/nvme5n1"}, .cdi_devices = {"a/b=x"}};
  const Request request(machine_, ledger_, container, 0);
  EXPECT_THAT(plugin.score(request)[2].reason, HasSubstr("a/b=x: no CDI spec has it"));
  tree_.write("etc/cdi/x.json",
              R"({"kind":"a/b","devices":[{"name":"x","containerEdits":{"env":["NVIDIA_VISIBLE_DEVICES=8"]}}]})");
  tree_.device("block", "259:0", "0000:42:00.0", "nvme/nvme5/nvme5n1", "nvme5n1", 2);
  EXPECT_THAT(plugin.score(request)[2].reason, HasSubstr("a/b=x: no CDI spec has it")) << "files are read in tick only";
  const auto has_both = [&] {
    return plugin.score(request)[2].reason.starts_with("node 2: 2 of 2 devices local, same node;");
  };
  for (int ticks = 0; ticks < 1000 && !has_both(); ++ticks) plugin.tick(machine_, ledger_, 1000);
  EXPECT_TRUE(has_both()) << plugin.score(request)[2].reason;
}

TEST_F(GpuPluginTest, TakesWhatIsSlowToReadWithALaterTick) {
  gpu(8, "0000:41:00.0", set_of({2}));
  Plugin plugin(topolet_plugin_v1, host_, options());
  const Request request(machine_, ledger_, {.cdi_devices = {"a/last=x"}}, 0);
  for (int i = 0; i < 4000; ++i) {
    tree_.write("etc/cdi/" + std::to_string(i) + ".json",
                R"({"kind":"a/b)" + std::to_string(i) +
                    R"(","devices":[{"name":"x","containerEdits":{"env":["NVIDIA_VISIBLE_DEVICES=8"]}}]})");
  }
  tree_.write("etc/cdi/last.json",
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
              HasSubstr("which GPU this MIG device is of is not known: there is no libnone.so"));
}

TEST_F(GpuPluginTest, TellsNoValueOfAVariableThatOnlyAPatternNames) {
  const Plugin::Values table = {{"devices", "vf: env=P* pci=item; card: path=/dev/card* env=CARD"}};
  const Container container{.env = {{"PASSWORD", "hunter2"}, {"CARD", "7"}, {"SECRET", "hunter2"}}};
  const std::string reason = verdict(container, set_of({0}), table).reason;
  EXPECT_THAT(reason, HasSubstr("PASSWORD: no PCI device is known for it"));
  EXPECT_THAT(reason, HasSubstr("CARD=7: no PCI device is known for it"));
  EXPECT_EQ(reason.find("hunter2"), std::string::npos);
}

TEST_F(GpuPluginTest, SurvivesSpecsThatNameThemselves) {
  gpu(0, "0000:41:00.0", set_of({0}));
  tree_.write("etc/cdi/x.json", R"({"kind":"nvidia.com/gpu","devices":[
      {"name":"0","containerEdits":{"env":["NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=0"]}},
      {"name":"a","containerEdits":{"env":["NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=b"]}},
      {"name":"b","containerEdits":{"env":["NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=a"]}}]})");
  EXPECT_EQ(verdict({.cdi_devices = {"nvidia.com/gpu=0"}}, set_of({0})).score, 100);
  EXPECT_THAT(verdict({.cdi_devices = {"nvidia.com/gpu=a"}}, set_of({0})).reason, HasSubstr("gpu=b: no device node"));
}

TEST_F(GpuPluginTest, LooksUpEachNameOnceAndNotEverything) {
  gpu(0, "0000:41:00.0", set_of({0}));
  std::string numbers;
  std::string same;
  for (int i = 0; i < 5000; ++i) {
    numbers += std::to_string(i) + ',';
    same += " 0 ,";
  }
  EXPECT_THAT(verdict(with(numbers), set_of({0})).reason,
              HasSubstr("; not counted: what it names beyond the first 1024; not counted: NVIDIA_VISIBLE_DEVICES=1: "));
  EXPECT_THAT(verdict(with(same), set_of({0})).reason, Not(HasSubstr("beyond")));
  std::string ranges;
  for (int i = 0; i < 900; ++i) ranges += "0-" + std::to_string(1000 - i) + ',';
  EXPECT_THAT(verdict({.env = {{"VA_VISIBLE_DEVICES", ranges}}}, set_of({0})).reason,
              HasSubstr("what it names beyond the first 1024"));
}

TEST_F(GpuPluginTest, TakesASpecsVariablesForTheContainers) {
  gpu(0, "0000:41:00.0", set_of({0}));
  gpu(1, "0000:81:00.0", set_of({1}));
  tree_.write("etc/cdi/x.json", R"({"kind":"nvidia.com/gpu","containerEdits":{"env":["NVIDIA_VISIBLE_DEVICES=void"]},
      "devices":[{"name":"0","containerEdits":{"deviceNodes":[{"path":"/dev/nvidia0"}]}},
                 {"name":"1"},
                 {"name":"x","containerEdits":{"deviceNodes":[{"path":"/dev/nvidia-x"}]}},
                 {"name":"y","containerEdits":{"deviceNodes":[{"path":"/dev/nvidia77"}]}}]})");
  const auto reason = [&](const char* device, const char* own) {
    const Container container{.cdi_devices = {device}, .env = {{"NVIDIA_VISIBLE_DEVICES", own}}};
    return verdict(container, set_of({0})).reason;
  };
  EXPECT_THAT(reason("nvidia.com/gpu=0", "all"), StartsWith("node 0: 1 of 1 GPUs local; "));
  EXPECT_THAT(reason("nvidia.com/gpu=1", "all"), StartsWith("node 0: none, ")) << "by its name";
  for (const char* const unknown : {"nvidia.com/gpu=x", "nvidia.com/gpu=y"}) {
    EXPECT_THAT(reason(unknown, "0"), StartsWith("node 0: 1 of 1 GPUs local; ")) << "better than nothing";
  }
}

TEST_F(GpuPluginTest, SaysNothingOfASecondSpecDeviceWithTheSameGpu) {
  gpu(0, "0000:41:00.0", set_of({0}));
  tree_.write("etc/cdi/x.json", R"({"kind":"a/b","containerEdits":{"env":["NVIDIA_VISIBLE_DEVICES=0"]},
      "devices":[{"name":"x"},{"name":"y"}]})");
  EXPECT_THAT(verdict({.cdi_devices = {"a/b=x", "a/b=y"}}, set_of({0})).reason, Not(HasSubstr("not counted")));
}

TEST_F(GpuPluginTest, KnowsAGpuByTheBeginningOfItsUuid) {
  machine_.device(
      {.name = "nvml0", .address = "0000:41:00.0", .nodes = set_of({1}), .info = {{"NVIDIAUUID", "GPU-ac1a8e86-51"}}});
  EXPECT_EQ(verdict(with("GPU-ac1a"), set_of({1})).score, 100);
  EXPECT_EQ(verdict(with("GPU-AC1A8E86-51"), set_of({1})).score, 100);
  for (const char* const other : {"GPU-", "GPU-ac1a8e86-518", "GPU-b"}) {
    EXPECT_THAT(verdict(with(other), set_of({1})).reason, HasSubstr("no such GPU is known")) << other;
  }
}

TEST_F(GpuPluginTest, KnowsAPathInOtherSpellings) {
  gpu(0, "0000:41:00.0", set_of({1}));
  tree_.device("char", "226:0", "0000:41:00.0", "drm/card0", "dri/card0", 1);
  tree_.write("dev/dri/card0", "");
  tree_.link("dev/graphics", "dri");
  for (const char* const path : {"/dev//nvidia0", "/dev/dri/../nvidia0", "/run/nvidia/driver/dev/nvidia0",
                                 "/dev/graphics", "/dev/dri/", "/dev/./dri/card0"}) {
    EXPECT_EQ(verdict({.devices = {path}}, set_of({1})).score, 100) << path;
  }
  for (const char* const path :
       {"/dev", "/dev/", "/", "", "dev/nvidia0", "/dev/../nvidia0", "/dev/fuse", "/dev/nvidiactl"}) {
    EXPECT_EQ(verdict({.devices = {path}}, set_of({1})).reason, "") << path;
  }
}

TEST_F(GpuPluginTest, KnowsNoPathThatTheKernelWouldNotOpen) {
  gpu(0, "0000:41:00.0", set_of({1}));
  const auto spelled_with = [&](std::size_t slashes) {
    return verdict({.devices = {std::string(slashes, '/') + "dev/nvidia0"}}, set_of({1})).score;
  };
  EXPECT_EQ(spelled_with(1000), 100);
  EXPECT_EQ(spelled_with(PATH_MAX), 0);
}

TEST_F(GpuPluginTest, FollowsALinkThatIsCalledLikeAnotherDevice) {
  gpu(0, "0000:41:00.0", set_of({0}));
  gpu(1, "0000:81:00.0", set_of({1}));
  tree_.write("dev/nvidia1", "");
  tree_.link("dev/nvidia0", "nvidia1");
  EXPECT_EQ(verdict({.devices = {"/dev/nvidia0"}}, set_of({1})).score, 100);
}

TEST_F(GpuPluginTest, ReadsTheAddressesOfASecondVariableInJson) {
  machine_.device({.name = "eth0", .address = "0000:41:00.0", .nodes = set_of({1}), .kind = TOPOLET_OS_DEVICE_NETWORK});
  const Plugin::Values table = {{"devices", "vf: env=PCIDEVICE_* pci=item"}};
  const std::string json = R"({"0000:41:00.0":{"generic":{"deviceID":"0000:41:00.0"},"extra":{"mac":"1,2"}}})";
  const Container container{.env = {{"PCIDEVICE_VF", "0000:41:00.0"}, {"PCIDEVICE_VF_INFO", json}}};
  const std::string reason = verdict(container, set_of({1}), table).reason;
  EXPECT_THAT(reason, StartsWith("node 1: 1 of 1 devices local; "));
  EXPECT_THAT(reason, Not(HasSubstr("not counted")));
}

TEST_F(GpuPluginTest, NamesAFaultySpecWhole) {
  const std::string name = "k8s.gpu.vendor.com-claim_0f1b2c3d-0f1b-0f1b-0f1b-0f1b2c3d4e5f-and-so-on\n.json";
  tree_.write("etc/cdi/" + name, "{");
  EXPECT_THAT(verdict({.cdi_devices = {"a/b=x"}}, set_of({0})).reason,
              EndsWith("-and-so-on?.json: it is not JSON, though it begins like it"));
}

TEST_F(GpuPluginTest, SaysWhatIsNoDeviceAndWhatIsNotFound) {
  const auto reason = [&](const char* path) { return verdict({.devices = {path}}, set_of({0})).reason; };
  for (const char* const path : {"/dev/nvme7n1", "/dev/vfio/7", "/dev/nvidia7", "/dev/dri/card7", "/dev/vacc7"}) {
    EXPECT_EQ(reason(path), "not counted: " + std::string(path) + ": no PCI device is known for it");
  }
  for (const char* const path : {"/dev/nvme-fabrics", "/dev/vfio/vfio", "/dev/nvidia-caps/nvidia-cap1",
                                 "/dev/nvidia-nvswitch0", "/dev/infiniband/rdma_cm", "/dev/loop0"}) {
    EXPECT_EQ(reason(path), "");
  }
}

TEST_F(GpuPluginTest, SaysWhatATableNamesInVain) {
  const Plugin::Values table = {{"devices", "n: path=/dev/n env=N pci=node:9; a: path=/dev/a pci=address:77:00.0"}};
  EXPECT_EQ(verdict({.devices = {"/dev/n", "/dev/a"}, .env = {{"N", "0"}}}, set_of({0}), table).reason,
            "not counted: /dev/n: the machine has no node 9; not counted: /dev/a: the machine has no PCI device "
            "0000:77:00.0; not counted: N=0: the machine has no node 9");
}

TEST_F(GpuPluginTest, KnowsAllOfAKindWhateverTheyAreCalled) {
  machine_.device({.name = "/dev/acc_a", .address = "0000:41:00.0", .nodes = set_of({1})});
  tree_.device("char", "240:0", "0000:42:00.0", "acc/b", "acc_b", 1);
  const Plugin::Values table = {{"devices", "acc: path=/dev/acc_* env=ACC"}};
  EXPECT_THAT(verdict({.env = {{"ACC", "all"}}}, set_of({1}), table).reason, StartsWith("node 1: 2 of 2 "));
  EXPECT_EQ(verdict({.env = {{"VA_VISIBLE_DEVICES", "all"}}}, set_of({1})).reason,
            "not counted: VA_VISIBLE_DEVICES=all: no device of this kind is known");
}

TEST_F(GpuPluginTest, RefusesATableThatItCannotRead) {
  try {
    Plugin plugin(topolet_plugin_v1, host_, options({{"devices", "shoe"}}));
    FAIL() << "it started";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(),
                 "create failed: option devices: shoe: it should read NAME: path=PATTERN env=VARIABLE pci=HOW");
  }
}

}  // namespace
}  // namespace topolet::gpu
