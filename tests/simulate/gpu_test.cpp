// The gpu policy through whole decisions, on recorded machines.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "tests/simulate/gpu_decisions.hpp"

namespace topolet::simulate {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kDgx2 = "nvidia-dgx2.xml";
constexpr const char* kPower8 = "power8gpudistances.xml";
constexpr const char* kTwoSockets = "24em64t-2n6c2t-pci.xml";

TEST_F(GpuDecisions, FindEachOfSixteenGpusByEveryName) {
  for (int gpu = 0; gpu < 16; ++gpu) {
    const NodeSet wanted{gpu < 8 ? 0U : 1U};
    EXPECT_EQ(preferred_nodes(kDgx2, devices(fmt::format("/dev/nvidia{}", gpu))), wanted) << gpu;
    EXPECT_EQ(preferred_nodes(kDgx2, env("NVIDIA_VISIBLE_DEVICES", std::to_string(gpu))), wanted) << gpu;
    EXPECT_EQ(preferred_nodes(kDgx2, cdi(fmt::format("nvidia.com/gpu={}", gpu))), wanted) << gpu;
  }
  EXPECT_EQ(preferred_nodes(kDgx2, env("NVIDIA_VISIBLE_DEVICES", "GPU-27ce06e8-97e8-a3d3-f1e7-f81e0dff7929")),
            NodeSet{1});
  EXPECT_EQ(preferred_nodes(kDgx2, cdi("nvidia.com/gpu=GPU-ac1a8e86-5183-b838-64c9-71a0c82facc5")), NodeSet{1});
  EXPECT_EQ(preferred_nodes(kDgx2, R"("annotations":{"cdi.k8s.io/kubelet":"nvidia.com/gpu=9,nvidia.com/gpu=10"})"),
            NodeSet{1});
}

TEST_F(GpuDecisions, SayWhatIsLocalAndWhatIsNot) {
  EXPECT_THAT(
      reason(kDgx2, env("NVIDIA_VISIBLE_DEVICES", "8,9")),
      HasSubstr(
          "gpu: node 1: 2 of 2 GPUs are local, behind the same PCIe switch; node 0: no GPU is local, distance 21"));
  EXPECT_THAT(reason(kDgx2, env("NVIDIA_VISIBLE_DEVICES", "8,12")),
              HasSubstr("node 1: 2 of 2 GPUs are local, on the same node; node 0: no GPU is local"));
  EXPECT_THAT(reason(kPower8, devices("/dev/nvidia3")),
              HasSubstr("node 1: 1 of 1 GPU is local; node 0: no GPU is local, distance 40"));
  EXPECT_THAT(reason(kDgx2, env("NVIDIA_VISIBLE_DEVICES", "all")),
              HasSubstr("nodes 0-1: 16 of 16 GPUs are local, in different packages"));
}

TEST_F(GpuDecisions, HaveNoOpinionWithoutDevices) {
  for (const std::string& more :
       {std::string(), devices("/dev/fuse"), env("NVIDIA_VISIBLE_DEVICES", "void"),
        env("NVIDIA_VISIBLE_DEVICES", "none"), env("NVIDIA_VISIBLE_DEVICES", ""), env("PASSWORD", "GPU-secret")}) {
    EXPECT_THAT(reason(kDgx2, more), Not(HasSubstr("gpu:"))) << more;
  }
}

TEST_F(GpuDecisions, SayWhyADeviceIsNotCounted) {
  EXPECT_THAT(reason(kDgx2, env("NVIDIA_VISIBLE_DEVICES", "MIG-0f1b")),
              HasSubstr("NVIDIA_VISIBLE_DEVICES: it is not known which GPU this MIG device belongs to: option "
                        "nvml-library is empty"));
  EXPECT_THAT(reason(kDgx2, cdi("vendor.com/net=3")), HasSubstr("vendor.com/net=3: no CDI spec defines it"));
  EXPECT_THAT(reason(kDgx2, devices("/dev/nvidia77")), HasSubstr("/dev/nvidia77: its PCI device is not known"));
  EXPECT_THAT(reason(kDgx2, env("NVIDIA_VISIBLE_DEVICES", "8,77")),
              HasSubstr("node 1: 1 of 1 GPU is local; node 0: no GPU is local, distance 21; not counted: "
                        "item 2 of NVIDIA_VISIBLE_DEVICES: no such GPU was found"));
}

TEST_F(GpuDecisions, FindMigDevicesThatNameTheirGpu) {
  EXPECT_EQ(preferred_nodes(kDgx2, env("NVIDIA_VISIBLE_DEVICES", "8:1")), NodeSet{1});
  EXPECT_EQ(preferred_nodes(kDgx2, env("NVIDIA_VISIBLE_DEVICES", "MIG-GPU-27ce06e8-97e8-a3d3-f1e7-f81e0dff7929/3/0")),
            NodeSet{1});
  EXPECT_EQ(preferred_nodes(kDgx2, cdi("nvidia.com/gpu=mig8:0")), NodeSet{1});
}

TEST_F(GpuDecisions, CountNvidiaFunctionsByAddressWhereNobodyNamesThem) {
  EXPECT_EQ(preferred_nodes(kTwoSockets, devices("/dev/nvidia0")), NodeSet{0});
  // 11:00.0 and 14:00.0, which the machine lists the other way round.
  EXPECT_EQ(preferred_nodes(kTwoSockets, devices("/dev/nvidia1")), NodeSet{1});
  EXPECT_EQ(preferred_nodes(kTwoSockets, env("NVIDIA_VISIBLE_DEVICES", "2")), NodeSet{1});
  EXPECT_THAT(reason(kTwoSockets, env("NVIDIA_VISIBLE_DEVICES", "3")), HasSubstr("no such GPU was found"));
}

TEST_F(GpuDecisions, FindOtherDevicesByTheNamesOfTheTopology) {
  for (const char* const path : {"/dev/infiniband/uverbs0", "/dev/sda", "/dev/sda1", "/dev/dri/renderD128",
                                 "/dev/disk/by-path/pci-0000:04:00.0-x"}) {
    EXPECT_EQ(preferred_nodes(kTwoSockets, devices(path)), NodeSet{0}) << path;
  }
  EXPECT_THAT(reason(kTwoSockets, devices("/dev/infiniband/uverbs0")), HasSubstr("node 0: 1 of 1 NIC is local"));
  EXPECT_THAT(reason(kTwoSockets, devices("/dev/infiniband/uverbs1")), HasSubstr("its PCI device is not known"));
}

TEST_F(GpuDecisions, BelieveWhatTheSimulationSaysOfADevice) {
  SimulatedNode node = machine(kTwoSockets);
  node.apply(R"({"op":"device","path":"/dev/vacc0","kind":"vacc","nodes":"1"})");
  node.apply(R"({"op":"device","path":"/dev/davinci3","kind":"npu","pci":"0000:11:00.0"})");
  node.apply(R"({"op":"device","path":"/dev/nvidia0","kind":"gpu","pci":"0000:14:00.0"})");
  int pod = 0;
  for (const std::string& more :
       {env("VA_VISIBLE_DEVICES", "0"), devices("/dev/vacc0"), devices("/dev/davinci3"),
        env("ASCEND_VISIBLE_DEVICES", "Ascend910-3"), env("ASCEND_VISIBLE_DEVICES", "3-3"), devices("/dev/nvidia0")}) {
    EXPECT_EQ(nodes_of(node, create(node, std::to_string(++pod), more, 500)), NodeSet{1}) << more;
  }
  // The minor says nothing of the index: that still counts by address.
  EXPECT_EQ(nodes_of(node, create(node, "index", env("NVIDIA_VISIBLE_DEVICES", "0"), 500)), NodeSet{0});
}

TEST_F(GpuDecisions, FollowAMinorThatIsNotTheIndex) {
  root_.write("sys/devices/system/cpu/online", "0-1,24-25\n");
  root_.write("proc/driver/nvidia/gpus/0000:34:00.0/information",
              "Model: \t\t Tesla V100\nGPU UUID: \t GPU-far\nBus Location: \t 0000:34:00.0\nDevice Minor: \t 9\n");
  root_.write("proc/driver/nvidia/gpus/0000:b7:00.0/information", "Bus Location: 0000:b7:00.0\nDevice Minor: 0\n");
  EXPECT_EQ(preferred_nodes(kDgx2, devices("/dev/nvidia9")), NodeSet{0});
  EXPECT_EQ(preferred_nodes(kDgx2, devices("/dev/nvidia0")), NodeSet{1});
  EXPECT_EQ(preferred_nodes(kDgx2, env("NVIDIA_VISIBLE_DEVICES", "0")), NodeSet{0});
  EXPECT_EQ(preferred_nodes(kDgx2, env("NVIDIA_VISIBLE_DEVICES", "1")), NodeSet{1});
  EXPECT_EQ(preferred_nodes(kDgx2, env("NVIDIA_VISIBLE_DEVICES", "GPU-far")), NodeSet{0});
}

TEST_F(GpuDecisions, CountNoFunctionThatTheDriverLeavesOut) {
  root_.write("sys/devices/system/cpu/online", "0-23\n");
  root_.write("proc/driver/nvidia/gpus/0000:11:00.0/information", "Device Minor: 0\n");
  EXPECT_EQ(preferred_nodes(kTwoSockets, env("NVIDIA_VISIBLE_DEVICES", "0")), NodeSet{1});
  EXPECT_THAT(reason(kTwoSockets, env("NVIDIA_VISIBLE_DEVICES", "1")), HasSubstr("no such GPU was found"));
}

TEST_F(GpuDecisions, DoNotBelieveFilesOfAnotherMachine) {
  root_.write("sys/devices/system/cpu/online", "0-1\n");
  root_.write("proc/driver/nvidia/gpus/0000:34:00.0/information", "Device Minor: 9\n");
  EXPECT_EQ(preferred_nodes(kDgx2, devices("/dev/nvidia9")), NodeSet{1});
}

TEST_F(GpuDecisions, ReadCdiSpecs) {
  root_.write("etc/cdi/a.json", R"({"cdiVersion":"0.5.0","kind":"vendor.com/acc","devices":[
    {"name":"one","containerEdits":{"deviceNodes":[{"path":"/dev/null"},{"path":"/x","hostPath":"/dev/nvidia8"}]}},
    {"name":"two","containerEdits":{"env":["NVIDIA_VISIBLE_DEVICES=9"]}},
    {"name":"empty","containerEdits":{}}]})");
  root_.write(
      "run/cdi/nvidia.yaml",
      "---\ncdiVersion: 0.5.0\nkind: nvidia.com/gpu\ncontainerEdits:\n  deviceNodes:\n  - path: /dev/nvidiactl\n"
      "  env:\n  - NVIDIA_VISIBLE_DEVICES=void\ndevices:\n- name: \"0\"\n  containerEdits:\n    deviceNodes:\n"
      "    - path: /dev/nvidia12   # not its index\n      permissions: rw\n");
  root_.write("run/cdi/broken.yaml", "kind: &a x\n");
  EXPECT_EQ(preferred_nodes(kDgx2, cdi("vendor.com/acc=one")), NodeSet{1});
  EXPECT_EQ(preferred_nodes(kDgx2, cdi("vendor.com/acc=two")), NodeSet{1});
  EXPECT_EQ(preferred_nodes(kDgx2, cdi("nvidia.com/gpu=0")), NodeSet{1});
  EXPECT_EQ(preferred_nodes(kDgx2, env("NVIDIA_VISIBLE_DEVICES", "nvidia.com/gpu=0")), NodeSet{1});
  EXPECT_THAT(reason(kDgx2, cdi("vendor.com/acc=empty")),
              HasSubstr("none of the device nodes in its CDI spec could be located"));
  EXPECT_THAT(reason(kDgx2, cdi("vendor.com/acc=none")), HasSubstr("broken.yaml: line 1: "));
}

TEST_F(GpuDecisions, DoNotCountTheDisplaysOfAnNvidiaGpuAmongOthers) {
  // The machine's only display of AMD is at node 0, this GPU at node 1.
  root_.write("etc/cdi/nvidia.yaml",
              "---\ncdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n- name: \"1\"\n  containerEdits:\n"
              "    deviceNodes:\n    - path: /dev/nvidia1\n      hostPath: /run/nvidia/driver/dev/nvidia1\n"
              "    - path: /dev/dri/card0\n    - path: /dev/dri/renderD128\n");
  EXPECT_THAT(reason(kTwoSockets, cdi("nvidia.com/gpu=1")),
              HasSubstr("gpu: node 1: 1 of 1 GPU is local; node 0: no GPU is local"));
}

TEST_F(GpuDecisions, CountAcceleratorsOfAmdAmongItsDisplays) {
  std::string xml = read_machine(kTwoSockets);
  const std::string display = "0300 [1002:515e]";
  ASSERT_NE(xml.find(display), std::string::npos);
  xml.replace(xml.find(display), display.size(), "0200 [8086:10c9]");
  // At node 1.
  const std::string gpu = "0302 [10de:06d2]";
  const std::size_t last = xml.rfind(gpu);
  ASSERT_NE(last, std::string::npos);
  xml.replace(last, gpu.size(), "1200 [1002:74a1]");
  const std::string machine = root_.write("mi300.xml", xml).string();
  EXPECT_EQ(preferred_nodes(machine.c_str(), devices("/dev/dri/renderD128")), NodeSet{1});
}

TEST_F(GpuDecisions, SeeACdiSpecThatIsWrittenLater) {
  SimulatedNode node = machine(kDgx2);
  EXPECT_THAT(create(node, "before", cdi("vendor.com/claim=x"), 500).reason, HasSubstr("no CDI spec defines it"));
  root_.write("run/cdi/claim.json", R"({"kind":"vendor.com/claim","devices":[
    {"name":"x","containerEdits":{"deviceNodes":[{"path":"/dev/nvidia8"}]}}]})");
  node.apply(R"({"op":"clock","advance_s":60})");
  EXPECT_EQ(nodes_of(node, create(node, "after", cdi("vendor.com/claim=x"), 500)), NodeSet{1});
}

TEST_F(GpuDecisions, LearnNewKindsFromATable) {
  const std::vector<std::string> table = {
      "--gpu.devices=nic: env=PCIDEVICE_* pci=item; fpga: path=/dev/fpga* pci=function:10de:06d2/0302; "
      "one: path=/dev/one pci=address:0000:14:00.0; two: path=/dev/two pci=node:1"};
  EXPECT_EQ(preferred_nodes(kTwoSockets, env("PCIDEVICE_INTEL_COM_VF", "0000:11:00.0"), table), NodeSet{1});
  EXPECT_EQ(preferred_nodes(kTwoSockets, devices("/dev/fpga1"), table), NodeSet{1});
  EXPECT_EQ(preferred_nodes(kTwoSockets, devices("/dev/one"), table), NodeSet{1});
  EXPECT_EQ(preferred_nodes(kTwoSockets, devices("/dev/two"), table), NodeSet{1});
  EXPECT_THAT(reason(kTwoSockets, devices("/dev/fpga3"), table), HasSubstr("its PCI device is not known"));
}

TEST_F(GpuDecisions, TellDevicesApartThatAreOnlyKnownByTheirNode) {
  const std::vector<std::string> table = {
      "--gpu.devices=a: path=/dev/a* env=AS pci=node:0; b: path=/dev/b* pci=node:1"};
  EXPECT_THAT(reason("pack:2 numa:1 core:8 pu:1", R"("devices":["/dev/a0","/dev/b0","/dev/b1","/dev/b1"])", table),
              HasSubstr("3 of 3 devices are local"));
  EXPECT_THAT(reason("pack:2 numa:1 core:8 pu:1", R"("devices":["/dev/a0"],"env":{"AS":"0,1"})", table),
              HasSubstr("2 of 2 devices are local"));
}

TEST_F(GpuDecisions, LocateFunctionsThatCameLaterAlsoForWhoIsPlacedAnew) {
  SimulatedNode node = machine("pack:2 numa:1 core:4 pu:1");
  const std::string function = env("PCIDEVICE_VENDOR_COM_NIC", "0000:65:00.2");
  EXPECT_EQ(nodes_of(node, create(node, "before", function, 500)), NodeSet{0}) << "nobody knows it";
  root_.write("sys/bus/pci/devices/0000:65:00.2/numa_node", "1\n");
  EXPECT_EQ(nodes_of(node, create(node, "after", function, 500)), NodeSet{1});
  create(node, "web", "", 3000);
  node.apply(R"({"op":"restart"})");
  node.apply(R"({"op":"offline","cpus":"4-7"})");
  node.apply(R"({"op":"online","cpus":"4-7"})");
  for (const placement::LedgerEntry& entry : node.snapshot().ledger.entries) {
    if (entry.key.pod_uid != "after") continue;
    EXPECT_EQ(entry.tags, (SharedStringMap{{"gpu/late-devices", "0000:65:00.2"}}));
    EXPECT_EQ(node.snapshot().topology->nodes_of(entry.placement.cpus), NodeSet{1});
  }
}

TEST_F(GpuDecisions, RequireRejectsWhatMissesADevice) {
  const std::vector<std::string> require = {"--gpu.affinity=require", "--placement.min-shared-cpus=0"};
  SimulatedNode node = machine(kDgx2, require);
  EXPECT_EQ(nodes_of(node, create(node, "a", env("NVIDIA_VISIBLE_DEVICES", "8"))), NodeSet{1});
  EXPECT_EQ(nodes_of(node, create(node, "b", env("NVIDIA_VISIBLE_DEVICES", "9"))), NodeSet{1});
  const OperationResult full = create(node, "c", env("NVIDIA_VISIBLE_DEVICES", "10"));
  EXPECT_EQ(full.outcome, "denied");
  EXPECT_THAT(full.reason, HasSubstr("affinity = require: "));
  EXPECT_EQ(nodes_of(node, create(node, "d", "")), NodeSet{0});
}

TEST_F(GpuDecisions, RequireDeniesInFewWordsOnManyNodes) {
  SimulatedNode node =
      machine("pack:2 numa:4 core:2 pu:1", {"--gpu.affinity=require", "--placement.reserved-cpus=0-1"});
  node.apply(R"({"op":"device","path":"/dev/vacc0","kind":"npu","nodes":"0"})");
  const OperationResult denied = create(node, "a", devices("/dev/vacc0"));
  ASSERT_EQ(denied.outcome, "denied");
  EXPECT_LT(denied.reason.size(), 2000U);
  EXPECT_THAT(denied.reason, HasSubstr("gpu: affinity = require: 3 nodes together: no GPU is local (56 candidates)"));
  EXPECT_THAT(denied.reason, HasSubstr("gpu: affinity = require: node 7: no GPU is local, distance 20 (assumed);"));
  EXPECT_THAT(
      denied.reason,
      HasSubstr("gpu: affinity = require: nodes 0-7: no GPU is local, distance 20 (assumed) in the same package, no "
                "CPU free on node 0"));
}

TEST_F(GpuDecisions, QuoteNoAnnotations) {
  for (const std::string value : {"hunter2", "hunter2/x=0", "nvidia.com/gpu=hunter2", "=hunter2"}) {
    const std::string words =
        reason(kDgx2, R"("annotations":{"cdi.k8s.io/x":")" + value + R"(","other.io/y":"hunter2"})");
    EXPECT_THAT(words, HasSubstr("annotation cdi.k8s.io/x: no CDI spec defines it"));
    EXPECT_THAT(words, Not(HasSubstr("hunter2")));
  }
}

TEST_F(GpuDecisions, PreferGoesElsewhereWhereTheNodeIsFull) {
  SimulatedNode node = machine(kDgx2, {"--placement.min-shared-cpus=0"});
  create(node, "a", env("NVIDIA_VISIBLE_DEVICES", "8"));
  create(node, "b", env("NVIDIA_VISIBLE_DEVICES", "9"));
  const OperationResult elsewhere = create(node, "c", env("NVIDIA_VISIBLE_DEVICES", "10"));
  EXPECT_EQ(nodes_of(node, elsewhere), NodeSet{0});
  EXPECT_THAT(elsewhere.reason,
              HasSubstr("gpu: node 0: no GPU is local, distance 21; node 1: 1 of 1 GPU is local, but no CPU is free"));
}

TEST_F(GpuDecisions, BeatPacking) {
  SimulatedNode node = machine(kTwoSockets);
  EXPECT_EQ(nodes_of(node, create(node, "a", "", 4000)), NodeSet{0});
  EXPECT_EQ(nodes_of(node, create(node, "b", devices("/dev/nvidia1"), 4000)), NodeSet{1});
  EXPECT_EQ(nodes_of(node, create(node, "c", devices("/dev/nvidia0"), 4000)), NodeSet{0});
}

/// All three plugins, on the first and the last node: packing would fill the one where the first container is.
TEST_F(GpuDecisions, BeatPackingOnEveryMachine) {
  const std::vector<std::vector<std::string>> settings = {
      {}, {"--smt.isolate-siblings=exclusive"}, {"--smt.pair=true", "--numa.strategy=spread"}};
  for (const char* const name : {"16amd64-8n2c-cpusets.xml", "16em64t-4s2c2t.xml", "192em64t-24n8c2t.xml", kTwoSockets,
                                 "64intel64-fakeKNL-SNC4-hybrid.xml", kDgx2, kPower8}) {
    for (const std::vector<std::string>& more : settings) {
      std::vector<std::string> options = {"--plugins.enable=smt", "--placement.min-shared-cpus=0"};
      options.insert(options.end(), more.begin(), more.end());
      SimulatedNode node = machine(name, options);
      create(node, "tenant", "");
      const Snapshot snapshot = node.snapshot();
      NodeSet homes;
      for (const topology::Node& preferred_nodes : snapshot.topology->nodes) {
        if (!preferred_nodes.memory_only && preferred_nodes.cpus.intersects(snapshot.ledger.pool))
          homes.insert(preferred_nodes.os_index);
      }
      const std::vector<std::uint32_t> all(homes.begin(), homes.end());
      for (const std::uint32_t preferred_nodes : {all.front(), all.back()}) {
        node.apply(
            fmt::format(R"({{"op":"device","path":"/dev/made{0}","kind":"gpu","nodes":"{0}"}})", preferred_nodes));
        const OperationResult placed =
            create(node, fmt::format("gpu{}", preferred_nodes), devices(fmt::format("/dev/made{}", preferred_nodes)));
        EXPECT_EQ(nodes_of(node, placed), NodeSet{preferred_nodes})
            << name << ' ' << fmt::format("{}", fmt::join(more, " ")) << ": " << placed.reason;
      }
    }
  }
}

TEST_F(GpuDecisions, KeepNodesOfGpusFreeWhileThereIsRoomElsewhere) {
  // Accelerators on nodes 0 and 1 of four.
  SimulatedNode node("pack:2 numa:2 core:2 pu:1", flags({"--gpu.keep-free=true", "--placement.min-shared-cpus=0"}));
  node.apply(R"({"op":"device","path":"/dev/vacc0","kind":"vacc","nodes":"0"})");
  node.apply(R"({"op":"device","path":"/dev/vacc1","kind":"vacc","nodes":"1"})");
  const NodeSet away{2, 3};
  EXPECT_TRUE(nodes_of(node, create(node, "a", "", 500)).is_subset_of(away));
  for (const char* const pod : {"b", "c", "d"}) {
    EXPECT_TRUE(nodes_of(node, create(node, pod, "")).is_subset_of(away)) << pod;
  }
  EXPECT_EQ(nodes_of(node, create(node, "e", devices("/dev/vacc1"))), NodeSet{1});
  const OperationResult last = create(node, "f", "", 2000);
  EXPECT_EQ(last.outcome, "placed");
  EXPECT_THAT(last.reason, HasSubstr("nothing can be kept away from the GPUs of nodes 0-1"));
}

/// All three plugins in every order of their `enable` lines.
TEST_F(GpuDecisions, DoNotDependOnTheOrderOfThePlugins) {
  std::vector<std::string> order = {"gpu", "numa", "smt"};
  for (const char* const name : {kDgx2, kPower8, kTwoSockets}) {
    std::set<std::string> stories;
    do {
      std::vector<std::string> all;
      for (const std::string& plugin : order) all.push_back("--plugins.enable=" + plugin);
      const std::vector<std::string> rest = flags();
      all.insert(all.end(), rest.begin() + 2, rest.end());
      SimulatedNode node(name, all);
      std::string story;
      int pod = 0;
      for (const std::string& more : {devices("/dev/nvidia2"), std::string(), env("NVIDIA_VISIBLE_DEVICES", "0,1"),
                                      std::string(), env("NVIDIA_VISIBLE_DEVICES", "all")}) {
        const OperationResult outcome = create(node, std::to_string(pod), more, pod % 2 == 0 ? 1000 : 500);
        story += fmt::format("{} {} {}; ", outcome.outcome, outcome.cpus.to_string(), outcome.withheld.to_string());
        ++pod;
      }
      stories.insert(story);
    } while (std::next_permutation(order.begin(), order.end()));
    EXPECT_EQ(stories.size(), 1U) << name << ": " << testing::PrintToString(stories);
  }
}

}  // namespace
}  // namespace topolet::simulate
