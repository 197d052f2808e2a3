// Devices in unusual places: on nodes without CPUs, and on machines that lose CPUs.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "tests/simulate/gpu_decisions.hpp"

namespace topolet::simulate {
namespace {

using testing::HasSubstr;
using testing::Not;

class GpuPlaces : public GpuDecisions {
 protected:
  /// A device on the last CPU node, whose CPUs go offline before anything else happens.
  static std::uint32_t take_away_a_node(SimulatedNode& node) {
    const topology::Topology topology = *node.snapshot().topology;
    const topology::Node* last = nullptr;
    for (const topology::Node& candidate : topology.nodes) last = candidate.memory_only ? last : &candidate;
    node.apply(fmt::format(R"({{"op":"offline","cpus":"{}"}})", last->cpus.to_string()));
    node.apply(fmt::format(R"({{"op":"device","path":"/dev/x0","kind":"gpu","nodes":"{}"}})", last->os_index));
    return last->os_index;
  }
};

TEST_F(GpuPlaces, ArePreferredAsNearAsCanBeWhileTheirOwnCpusAreOffline) {
  SimulatedNode node = machine("64intel64-fakeKNL-SNC4-hybrid.xml");
  const std::uint32_t preferred_nodes = take_away_a_node(node);
  const OperationResult placed = create(node, "a", devices("/dev/x0"));
  ASSERT_EQ(placed.outcome, "placed") << placed.reason;
  EXPECT_THAT(placed.reason, HasSubstr(fmt::format("/dev/x0: node {} has no CPU online", preferred_nodes)));
  EXPECT_THAT(placed.reason, Not(HasSubstr("not counted")));
  const auto topology = node.snapshot().topology;
  const std::uint32_t got = *topology->nodes_of(placed.cpus).begin();
  for (const topology::Node& other : topology->nodes) {
    if (other.memory_only) continue;
    EXPECT_LE(topology->distance(got, preferred_nodes), topology->distance(other.os_index, preferred_nodes))
        << other.os_index;
  }
}

TEST_F(GpuPlaces, AreDeniedWhereTheyAreRequiredAndTheirCpusAreOffline) {
  for (const char* const name : {"nvidia-dgx2.xml", "pack:2 numa:2 core:2 pu:1"}) {
    SimulatedNode node = machine(name, {"--gpu.affinity=require"});
    const std::uint32_t preferred_nodes = take_away_a_node(node);
    const OperationResult denied = create(node, "a", devices("/dev/x0"));
    EXPECT_EQ(denied.outcome, "denied") << denied.reason;
    EXPECT_THAT(denied.reason, HasSubstr(fmt::format("/dev/x0: node {} has no CPU online", preferred_nodes)));
  }
}

TEST_F(GpuPlaces, AreLocalAgainOnceTheirCpusAreBack) {
  SimulatedNode node = machine("pack:2 numa:2 core:2 pu:1", {"--gpu.affinity=require"});
  take_away_a_node(node);
  node.apply(R"({"op":"online","cpus":"6-7"})");
  EXPECT_EQ(nodes_of(node, create(node, "a", devices("/dev/x0"))), NodeSet{3});
}

class GpuTable : public GpuDecisions {
 protected:
  static constexpr const char* kMachine = "24em64t-2n6c2t-pci.xml";
  static constexpr const char* kMig = "MIG-5c8e6b46-1111-2222-3333-444455556666";

  static std::vector<std::string> table(const std::string& devices) { return {"--gpu.devices=" + devices}; }
};

TEST_F(GpuTable, PlacesAMigDevice) {
  const auto nvidia = [](const char* item) { return env("NVIDIA_VISIBLE_DEVICES", item); };
  const auto any = table("mig: env=NVIDIA_VISIBLE_DEVICES pci=address:0000:14:00.0");
  EXPECT_EQ(preferred_nodes(kMachine, nvidia(kMig), any), NodeSet{1});
  EXPECT_EQ(preferred_nodes(kMachine, nvidia("0"), any), NodeSet{0}) << "which is known without";
  EXPECT_EQ(preferred_nodes(kMachine, cdi(fmt::format("nvidia.com/gpu={}", kMig)), any), NodeSet{1});

  const auto some =
      table("a: env=NVIDIA_VISIBLE_DEVICES=MIG-5c8e* pci=node:1; b: env=NVIDIA_VISIBLE_DEVICES=1 pci=node:0");
  EXPECT_EQ(preferred_nodes(kMachine, nvidia(kMig), some), NodeSet{1});
  EXPECT_EQ(preferred_nodes(kMachine, nvidia("1"), some), NodeSet{0}) << "an item that is named counts first";
  EXPECT_THAT(reason(kMachine, nvidia("MIG-0"), some),
              HasSubstr("it is not known which GPU this MIG device belongs to"));
  const auto vain = table("a: env=NVIDIA_VISIBLE_DEVICES=MIG-* pci=address:0000:77:00.0");
  EXPECT_THAT(reason(kMachine, nvidia(kMig), vain), HasSubstr("the machine has no PCI device 0000:77:00.0"));
}

TEST_F(GpuTable, TakesSomeItemsOfAVariable) {
  const auto some = table("a: env=ACC=left* pci=node:0; b: env=ACC=right* pci=node:1; c: env=CARD=x* path=/dev/sd*");
  EXPECT_THAT(reason(kMachine, env("ACC", "right7,right8"), some), HasSubstr("gpu: node 1: 2 of 2 devices are local"));
  EXPECT_EQ(preferred_nodes(kMachine, env("ACC", "left0"), some), NodeSet{0});
  EXPECT_THAT(reason(kMachine, env("CARD", "xa"), some), HasSubstr("gpu: node 0: 1 of 1 disk is local"));
}

TEST_F(GpuTable, SaysWhyAMigDeviceIsNotKnownOnAnotherMachine) {
  root_.write("sys/devices/system/cpu/online", "0\n");
  EXPECT_THAT(reason(kMachine, env("NVIDIA_VISIBLE_DEVICES", kMig)),
              HasSubstr("belongs to: option nvml-library is empty"));
}

/// The display of a board at node 0, AMD's GPU at node 1.
class GpuDisplays : public GpuDecisions {
 protected:
  static std::string change(std::string text, const std::string& from, const std::string& to, bool last = false) {
    const std::size_t at = last ? text.rfind(from) : text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return at == std::string::npos ? text : text.replace(at, from.size(), to);
  }

  std::string machine_with_amd() const {
    std::string xml = read_machine("24em64t-2n6c2t-pci.xml");
    xml = change(xml, "0300 [1002:515e]", "0300 [1a03:2000]");
    xml = change(xml, "0302 [10de:06d2]", "0300 [1002:740f]", true);
    return root_.write("amd.xml", xml).string();
  }
};

TEST_F(GpuDisplays, AreThoseThatComputeWhereTheDirectoryIsGiven) {
  const std::string machine = machine_with_amd();
  SimulatedNode node = this->machine(machine.c_str());
  const auto& functions = node.snapshot().topology->pci_devices;
  std::string board;
  std::string gpu;
  for (const topology::PciDevice& function : functions) {
    if (function.vendor_id == 0x1a03) board = function.address;
    if (function.vendor_id == 0x1002) gpu = function.address;
  }
  const std::string all = R"("devices":["/dev/kfd","/dev/dri"])";
  EXPECT_THAT(reason(machine.c_str(), all), HasSubstr("gpu: node 1: 1 of 1 GPU is local")) << "by the topology";

  root_.write("sys/devices/system/cpu/online", "0-23\n");
  for (const auto& [numbers, name, address] :
       {std::tuple{"226:0", "dri/card0", board}, {"226:1", "dri/card1", gpu}, {"226:128", "dri/renderD128", gpu}}) {
    const std::string device = "sys/devices/pci0000:00/" + address + "/drm/" + std::string(name).substr(4);
    root_.write(device + "/uevent", std::string("DEVNAME=") + name + "\n");
    std::filesystem::create_directories(root_.path() / "sys/dev/char");
    std::filesystem::create_symlink(root_.path() / device, root_.path() / "sys/dev/char" / numbers);
  }
  EXPECT_THAT(reason(machine.c_str(), all), HasSubstr("gpu: node 1: 1 of 1 GPU is local")) << "by /sys";
  EXPECT_THAT(reason(machine.c_str(), devices("/dev/dri/card0")), HasSubstr("gpu: node 0: 1 of 1 GPU is local"));
}

/// Two packages with a GPU each, whose minors are the other way round than their indexes.
class GpuFiles : public GpuDecisions {
 protected:
  static constexpr const char* kMachine = "nvidia-dgx2.xml";  // CPUs 0-1 and 24-25

  void write_files(const char* online) const {
    root_.write("sys/devices/system/cpu/online", online);
    root_.write("proc/driver/nvidia/gpus/0000:b7:00.0/information", "Bus Location: 0000:b7:00.0\nDevice Minor: 0\n");
  }

  OperationResult after_offline(const char* cpus) const {
    SimulatedNode node = machine(kMachine);
    node.apply(fmt::format(R"({{"op":"offline","cpus":"{}"}})", cpus));
    const OperationResult outcome = create(node, "p", devices("/dev/nvidia0"), 500);
    EXPECT_EQ(outcome.outcome, "placed");
    return outcome;
  }
};

TEST_F(GpuFiles, AreThisMachinesWhateverCpusGoOffline) {
  write_files("0-1,24-25\n");
  for (const char* const offline : {"1", "0", "24"}) {
    EXPECT_THAT(after_offline(offline).reason, HasSubstr("gpu: node 1: 1 of 1 GPU is local")) << offline;
  }
}

TEST_F(GpuFiles, AreThisMachinesHoweverTheirListIsWritten) {
  write_files("0,1,24,25\n");
  EXPECT_EQ(preferred_nodes(kMachine, devices("/dev/nvidia0")), NodeSet{1});
}

TEST_F(GpuFiles, MayBeOfATimeWhenCpusWereOffline) {
  write_files("0,24-25\n");
  EXPECT_EQ(preferred_nodes(kMachine, devices("/dev/nvidia0")), NodeSet{0}) << "a machine of three CPUs";
  root_.write("sys/devices/system/cpu/present", "0-1,24-25\n");
  EXPECT_EQ(preferred_nodes(kMachine, devices("/dev/nvidia0")), NodeSet{1});
}

TEST_F(GpuFiles, OfAnotherMachineAreNotItsWithCpusOffline) {
  write_files("0,24-25\n");
  const OperationResult outcome = after_offline("1");
  EXPECT_THAT(outcome.reason, HasSubstr("gpu: node 0: 1 of 1 GPU is local"));
  EXPECT_THAT(outcome.reason, HasSubstr("not counted: NVML and the files below " + root_.file("sys")));
  EXPECT_THAT(
      outcome.reason,
      HasSubstr("they describe another machine, which has CPUs 0,24-25 online, while this one has CPUs 0-1,24-25"));
  EXPECT_THAT(reason(kMachine, devices("/dev/fuse")), Not(HasSubstr("gpu:"))) << "no device, no opinion";
}

}  // namespace
}  // namespace topolet::simulate
