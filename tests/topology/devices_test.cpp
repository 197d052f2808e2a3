#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <stdexcept>

#include "core/topology/build_topology.hpp"
#include "core/topology/device_files.hpp"
#include "core/topology/discover.hpp"
#include "core/topology/find_device.hpp"
#include "core/topology/pci_address.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::topology {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::FieldsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

std::shared_ptr<const Topology> recorded(const std::string& file) {
  const auto machine = discover({.xml_file = fs::path(TOPOLET_TEST_DATA) / "topologies" / file});
  if (!machine) throw std::runtime_error(machine.error().message);
  return *machine;
}

TEST(PciAddress, IsWrittenAsTheKernelWritesIt) {
  for (const char* address : {"0000:65:00.0", "10000:e1:1f.7", "0000:AB:00.1"}) EXPECT_TRUE(is_pci_address(address));
  for (const char* other : {"", "65:00.0", "000:65:00.0", "0000:65:00:0", "pci0000:00", "0000:65:00.0:pcie001",
                            "0003:046D:C31C.0001", "1-1:1.0"}) {
    EXPECT_FALSE(is_pci_address(other)) << other;
  }
}

TEST(DeviceNodes, AreTheKernelsWhereHwlocHasThemElsewhere) {
  MachineDescription description;
  description.online = CpuSet::range(0, 5);
  description.nodes.resize(3);
  for (std::uint32_t node = 0; node < 3; ++node) {
    description.nodes[node].os_index = node;
    description.nodes[node].cpus = CpuSet::range(4 * node, 4 * node + 3);
  }
  const auto device = [](const char* address, const CpuSet& cpus, const NodeSet& nodes) {
    PciDevice made;
    made.address = address;
    made.cpus = cpus;
    made.nodes = nodes;
    return made;
  };
  description.pci_devices = {
      device("0000:01:00.0", CpuSet::range(0, 5), NodeSet{0, 1, 2}),  // hwloc knows it for the whole machine
      device("0000:02:00.0", CpuSet::range(0, 5), NodeSet{0, 1, 2}),  // so does the kernel
      device("0000:03:00.0", CpuSet{4, 5}, NodeSet{1, 3}),            // with memory of no CPU node
      device("0000:04:00.0", CpuSet::range(0, 5), NodeSet{0, 1, 2}),
  };
  description.os_devices.resize(1);
  description.os_devices[0].pci_device = 3;
  description.os_devices[0].cpus = CpuSet::range(0, 5);
  description.device_nodes = {{"0000:01:00.0", 1}, {"0000:03:00.0", 1}, {"0000:04:00.0", 2}, {"0000:09:00.0", 0}};
  const Topology topology = build_topology(description);
  EXPECT_EQ(topology.pci_devices[0].nodes, NodeSet{1});
  EXPECT_EQ(topology.pci_devices[0].cpus, (CpuSet{4, 5}));
  EXPECT_EQ(topology.pci_devices[1].nodes, (NodeSet{0, 1, 2}));
  EXPECT_EQ(topology.pci_devices[2].cpus, (CpuSet{4, 5}));
  EXPECT_EQ(topology.pci_devices[3].nodes, NodeSet{2}) << "none of whose CPUs are online";
  EXPECT_TRUE(topology.pci_devices[3].cpus.empty());
  EXPECT_EQ(topology.os_devices[0].nodes, NodeSet{2});
  EXPECT_TRUE(topology.os_devices[0].cpus.empty());
}

TEST(DeviceNodes, AreReadForTheDevicesThatHaveOne) {
  const TempDir sysfs;
  sysfs.write("bus/pci/devices/0000:01:00.0/numa_node", "1\n");
  sysfs.write("bus/pci/devices/0000:02:00.0/numa_node", "-1\n");
  sysfs.write("bus/pci/devices/0000:03:00.0/class", "0x030000\n");
  EXPECT_THAT(read_device_nodes(sysfs.path()), ElementsAre(testing::Pair("0000:01:00.0", 1)));
  EXPECT_THAT(read_device_nodes(sysfs.file("nowhere")), IsEmpty());
}

/// Below /sys: a device, and the link to it that the kernel makes for its number.
class DeviceFiles : public testing::Test {
 protected:
  void add(const std::string& type, const std::string& number, const std::string& device, const std::string& uevent) {
    sysfs_.write(device + "/uevent", uevent);
    const fs::path link = sysfs_.path() / "dev" / type / number;
    fs::create_directories(link.parent_path());
    fs::create_directory_symlink("../../" + device, link);
  }

  TempDir sysfs_;
};

TEST_F(DeviceFiles, AreThoseOfPciDevices) {
  add("char", "226:128", "devices/pci0000:00/0000:00:01.0/0000:65:00.0/drm/renderD128",
      "MAJOR=226\nMINOR=128\nDEVNAME=dri/renderD128\n");
  add("block", "259:1", "devices/pci0000:00/0000:00:1d.0/0000:02:00.0/nvme/nvme0/nvme0n1/nvme0n1p1",
      "DEVNAME=nvme0n1p1\n");
  add("char", "1:3", "devices/virtual/mem/null", "DEVNAME=null\n");
  add("char", "5:0", "devices/pci0000:00/0000:00:1f.0/nameless", "MAJOR=5\n");
  EXPECT_THAT(read_device_files(sysfs_.path()), UnorderedElementsAre(FieldsAre("/dev/dri/renderD128", "0000:65:00.0"),
                                                                     FieldsAre("/dev/nvme0n1p1", "0000:02:00.0")));
}

TEST_F(DeviceFiles, AreNoneWhereTheKernelDoesNotTell) { EXPECT_THAT(read_device_files(sysfs_.path()), IsEmpty()); }

TEST_F(DeviceFiles, AreReadWithTheMachineWeRunOn) {
  const auto machine = discover({});
  ASSERT_TRUE(machine.has_value()) << machine.error().message;
  if ((*machine)->pci_devices.empty()) GTEST_SKIP() << "this machine has no PCI device";
  const std::string address = (*machine)->pci_devices.front().address;
  add("char", "508:7", "devices/pci0000:00/" + address + "/accel/accel7", "DEVNAME=accel/accel7\n");
  const auto with_file = discover({.sysfs_root = sysfs_.path()});
  ASSERT_TRUE(with_file.has_value()) << with_file.error().message;
  EXPECT_THAT((*with_file)->device_files, ElementsAre(FieldsAre("/dev/accel/accel7", address)));
}

TEST_F(DeviceFiles, StayWithThePciDevicesThatTheMachineHas) {
  MachineDescription description;
  description.online = {0};
  description.nodes.resize(1);
  description.nodes[0].cpus = {0};
  description.pci_devices.resize(1);
  description.pci_devices[0].address = "0000:65:00.0";
  description.pci_devices[0].nodes = {0};
  description.device_files = {{"/dev/z", "0000:65:00.0"}, {"/dev/usb", "0000:00:14.0"}, {"/dev/a", "0000:65:00.0"}};
  const Topology topology = build_topology(description);
  EXPECT_THAT(topology.device_files,
              ElementsAre(FieldsAre("/dev/a", "0000:65:00.0"), FieldsAre("/dev/z", "0000:65:00.0")));
  EXPECT_EQ(find_device(topology, "/dev/a"), (DevicePlace{"0000:65:00.0", {0}}));
  EXPECT_EQ(find_device(topology, "/dev/usb"), DevicePlace());
}

TEST(FindDevice, KnowsWhatTheMachineNames) {
  const auto machine = recorded("24em64t-2n6c2t-pci.xml");
  EXPECT_EQ(find_device(*machine, "/dev/sda"), (DevicePlace{"0000:00:1f.2", {0}}));
  EXPECT_EQ(find_device(*machine, "vendor.com/nic=mlx4_0"), (DevicePlace{"0000:05:00.0", {0}}));
  EXPECT_EQ(find_device(*machine, "/dev/dri/by-path/pci-0000:14:00.0-render"), (DevicePlace{"0000:14:00.0", {1}}));
  EXPECT_EQ(find_device(*machine, "vendor.com/gpu=0000:11:00.0"), (DevicePlace{"0000:11:00.0", {1}}));
  EXPECT_EQ(find_device(*machine, "/sys/0000:00:1f.2/0000:14:00.0"), (DevicePlace{"0000:14:00.0", {1}}))
      << "the last one in the name";
  for (const char* unknown : {"", "/", "/dev/nvidia0", "nvidia.com/gpu=0", "/dev/0000:ff:00.0", "10000:14:00.0"}) {
    EXPECT_EQ(find_device(*machine, unknown), DevicePlace()) << unknown;
  }
}

TEST(FindDevice, WritesAddressesAsTheMachineDoes) {
  EXPECT_EQ(find_device(*recorded("power8gpudistances.xml"), "nvidia.com/gpu=000A:01:00.0").address, "000a:01:00.0");
}

TEST(FindDevice, BelievesTheKernelBeforeNames) {
  Topology machine = *recorded("24em64t-2n6c2t-pci.xml");
  machine.device_files = {{"/dev/sda", "0000:14:00.0"}};
  EXPECT_EQ(find_device(machine, "/dev/sda").nodes, NodeSet{1});
}

}  // namespace
}  // namespace topolet::topology
