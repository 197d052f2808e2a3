#include "core/topology/discover.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <stdexcept>

#include "tests/support/temp_dir.hpp"
#include "tests/topology/outline.hpp"

namespace topolet::topology {
namespace {

using testing::HasSubstr;

std::shared_ptr<const Topology> made_of(const std::string& synthetic) {
  const auto machine = discover({.synthetic = synthetic});
  if (!machine) throw std::runtime_error(machine.error().message);
  return *machine;
}

/// Two NUMA nodes with one PU each in hwloc's own form; `nodes` are the NUMA node elements' attributes and children.
std::string xml(const std::string& first_node, const std::string& second_node, const std::string& allowed_nodeset,
                const std::string& after = "") {
  const auto package = [](const std::string& mask, const std::string& pu, const std::string& node_mask,
                          const std::string& node) {
    const std::string sets = " cpuset=\"" + mask + "\" complete_cpuset=\"" + mask + "\" nodeset=\"" + node_mask +
                             "\" complete_nodeset=\"" + node_mask + "\"";
    return "<object type=\"Package\" os_index=\"" + pu + "\"" + sets + " gp_index=\"1" + pu +
           "\"><object type=\"NUMANode\" os_index=\"" + pu + "\"" + sets + " gp_index=\"2" + pu + "\" " + node +
           "<object type=\"Core\" os_index=\"" + pu + "\"" + sets + " gp_index=\"3" + pu +
           "\"><object type=\"PU\" os_index=\"" + pu + "\"" + sets + " gp_index=\"4" + pu + "\"/></object></object>";
  };
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology "
         "version=\"2.0\">"
         "<object type=\"Machine\" os_index=\"0\" cpuset=\"0x3\" complete_cpuset=\"0x3\" allowed_cpuset=\"0x3\" "
         "nodeset=\"0x3\" complete_nodeset=\"0x3\" allowed_nodeset=\"" +
         allowed_nodeset + "\" gp_index=\"1\">" + package("0x1", "0", "0x1", first_node) +
         package("0x2", "1", "0x2", second_node) + "</object>" + after + "</topology>";
}

std::shared_ptr<const Topology> read_back(const std::string& text) {
  const TempDir directory;
  const auto file = directory.write("machine.xml", text);
  const auto machine = discover({.xml_file = file});
  if (!machine) throw std::runtime_error(machine.error().message);
  return *machine;
}

TEST(SyntheticMachine, HasItsDiesAndPackagesAsDomains) {
  EXPECT_EQ(outline(*made_of("pack:2 die:2 numa:2 core:1 pu:2")),
            "online 0-15; allowed 0-15\n"
            "8 cores, 0 L3, 4 dies, 2 packages\n"
            "node 0: cpus 0-1, 1024 MiB\n"
            "node 1: cpus 2-3, 1024 MiB\n"
            "node 2: cpus 4-5, 1024 MiB\n"
            "node 3: cpus 6-7, 1024 MiB\n"
            "node 4: cpus 8-9, 1024 MiB\n"
            "node 5: cpus 10-11, 1024 MiB\n"
            "node 6: cpus 12-13, 1024 MiB\n"
            "node 7: cpus 14-15, 1024 MiB\n"
            "node domain {0}: cpus 0-1\n"
            "node domain {1}: cpus 2-3\n"
            "node domain {2}: cpus 4-5\n"
            "node domain {3}: cpus 6-7\n"
            "node domain {4}: cpus 8-9\n"
            "node domain {5}: cpus 10-11\n"
            "node domain {6}: cpus 12-13\n"
            "node domain {7}: cpus 14-15\n"
            "die domain {0-1}: cpus 0-3\n"
            "die domain {2-3}: cpus 4-7\n"
            "die domain {4-5}: cpus 8-11\n"
            "die domain {6-7}: cpus 12-15\n"
            "package domain {0-3}: cpus 0-7\n"
            "package domain {4-7}: cpus 8-15\n"
            "machine domain {0-7}: cpus 0-15\n"
            "assumed distances | 10 20 20 20 20 20 20 20 | 20 10 20 20 20 20 20 20 | 20 20 10 20 20 20 20 20"
            " | 20 20 20 10 20 20 20 20 | 20 20 20 20 10 20 20 20 | 20 20 20 20 20 10 20 20"
            " | 20 20 20 20 20 20 10 20 | 20 20 20 20 20 20 20 10\n");
}

TEST(SyntheticMachine, KeepsItsPuNumbers) {
  const auto machine = made_of("pack:1 numa:1 core:4 pu:2(indexes=0,4,1,5,2,6,3,7)");
  EXPECT_EQ(machine->cores, (std::vector<CpuSet>{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
}

TEST(SyntheticMachine, OfOneUmaNodeIsOneDomain) {
  EXPECT_EQ(outline(*made_of("pack:2 l3:2 core:2 pu:1")),
            "online 0-7; allowed 0-7\n"
            "8 cores, 4 L3, 0 dies, 2 packages\n"
            "node 0: cpus 0-7, 1024 MiB\n"
            "node domain {0}: cpus 0-7\n"
            "assumed distances | 10\n");
}

TEST(SyntheticMachine, WithMemoryAroundItsNodesCallsThatMemoryOnly) {
  const auto machine = made_of("pack:2 [numa] group:2 [numa] core:2 pu:2");
  EXPECT_EQ(machine->nodes_of(machine->online), (NodeSet{0, 1, 3, 4}));
  EXPECT_TRUE(machine->node(2)->memory_only);
  EXPECT_TRUE(machine->node(5)->memory_only);
}

TEST(SyntheticMachine, MayBeVeryLarge) {
  const auto machine = made_of("pack:4 numa:16 core:16 pu:2");
  EXPECT_EQ(machine->pus.size(), 2048U);
  EXPECT_EQ(machine->domains.size(), 64U + 4U + 1U);
  EXPECT_EQ(machine->pu(2047)->node, 63U);
  EXPECT_EQ(machine->pu(2047)->core, 1023U);
  EXPECT_EQ(machine->pu(2047)->package, 3U);
}

TEST(XmlMachine, LeavesOutTheNodesThatItForbids) {
  const auto machine = read_back(xml("local_memory=\"1048576\"/>", "local_memory=\"1048576\"/>", "0x1"));
  EXPECT_EQ(outline(*machine),
            "online 0-1; allowed 0-1\n"
            "2 cores, 0 L3, 0 dies, 2 packages\n"
            "node 0: cpus 0, 1 MiB\n"
            "node domain {}: cpus 1\n"
            "node domain {0}: cpus 0\n"
            "assumed distances | 10\n");
}

TEST(XmlMachine, TellsHugePagesFromOrdinaryOnes) {
  const auto machine = read_back(
      xml("local_memory=\"8388608\"><page_type size=\"4096\" count=\"1024\"/><page_type size=\"2097152\" count=\"2\"/>"
          "<page_type size=\"1073741824\" count=\"0\"/></object>",
          "local_memory=\"4194304\"><page_type size=\"4096\" count=\"1024\"/></object>", "0x3"));
  ASSERT_EQ(machine->node(0)->huge_pages.size(), 1U);
  EXPECT_EQ(machine->node(0)->huge_pages[0].page_bytes, 2097152);
  EXPECT_EQ(machine->node(0)->huge_pages[0].count, 2);
  EXPECT_TRUE(machine->node(1)->huge_pages.empty());
}

TEST(XmlMachine, TakesTheKernelsDistancesBeforeAnyOthers) {
  const auto matrix = [](const char* name, const char* kind, const char* values) {
    return std::string("<distances2 type=\"NUMANode\" nbobjs=\"2\" kind=\"") + kind + "\" name=\"" + name +
           "\" indexing=\"os\"><indexes length=\"4\">0 1 </indexes><u64values length=\"12\">" + values +
           "</u64values></distances2>";
  };
  const std::string node = "local_memory=\"1048576\"/>";
  const auto machine = read_back(xml(node, node, "0x3",
                                     matrix("Bandwidth", "9", "99 50 50 99 ") +  // FROM_OS | MEANS_BANDWIDTH
                                         matrix("Ping", "6", "90 99 99 90 ") +   // FROM_USER | MEANS_LATENCY
                                         matrix("NUMALatency", "5", "10 21 31 10 ")));
  EXPECT_TRUE(machine->distances_known);
  EXPECT_EQ(machine->distances, (std::vector<std::uint32_t>{10, 21, 31, 10}));
}

TEST(XmlMachine, TellsADramNodeByBandwidthWhereSubtypesAreMissing) {
  const std::string hbm = "local_memory=\"1048576\"/>";
  const std::string dram =
      "local_memory=\"8388608\"/><object type=\"NUMANode\" os_index=\"2\" cpuset=\"0x2\" complete_cpuset=\"0x2\" "
      "nodeset=\"0x4\" complete_nodeset=\"0x4\" gp_index=\"50\" local_memory=\"16777216\"/>";
  std::string text = xml(hbm, dram, "0x7",
                         "<memattr name=\"Bandwidth\" flags=\"5\">"
                         "<memattr_value target_obj_type=\"NUMANode\" target_obj_gp_index=\"21\" value=\"90000\" "
                         "initiator_cpuset=\"0x2\"/>"
                         "<memattr_value target_obj_type=\"NUMANode\" target_obj_gp_index=\"50\" value=\"22500\" "
                         "initiator_cpuset=\"0x2\"/></memattr>");
  const auto machine = read_back(text);
  ASSERT_NE(machine->node(2), nullptr);
  EXPECT_EQ(machine->nodes_of(machine->online), (NodeSet{0, 2}));
  EXPECT_TRUE(machine->node(1)->memory_only);
}

TEST(XmlMachine, HasItsDevicesBelowTheirBridges) {
  const std::string node = "local_memory=\"1048576\"/>";
  const std::string pci =
      "<object type=\"PCIDev\" gp_index=\"73\" pci_busid=\"0000:42:00.1\" "
      "pci_type=\"0302 [10de:20b0] [10de:1463] a1\" pci_link_speed=\"0.000000\">"
      "<info name=\"PCIVendor\" value=\"NVIDIA\"/>"
      "<object type=\"OSDev\" gp_index=\"74\" name=\"nvml0\" subtype=\"NVML\" osdev_type=\"1\">"
      "<info name=\"NVIDIAUUID\" value=\"GPU-1\"/></object></object>";
  const auto machine = read_back(
      xml(node,
          node +
              "<object type=\"Bridge\" gp_index=\"71\" bridge_type=\"0-1\" depth=\"0\" bridge_pci=\"0000:[40-4f]\">"
              "<object type=\"Bridge\" gp_index=\"72\" bridge_type=\"1-1\" depth=\"1\" bridge_pci=\"0000:[42-42]\" "
              "pci_busid=\"0000:40:03.0\" pci_type=\"0604 [8086:340a] [0000:0000] 22\" "
              "pci_link_speed=\"0.000000\">" +
              pci + "</object></object>",
          "0x3"));
  ASSERT_EQ(machine->pci_bridges.size(), 2U);
  EXPECT_EQ(machine->pci_bridges[0].address, "");
  EXPECT_EQ(machine->pci_bridges[0].parent, kNoPosition);
  EXPECT_EQ(machine->pci_bridges[1].address, "0000:40:03.0");
  EXPECT_EQ(machine->pci_bridges[1].parent, 0U);
  EXPECT_EQ(machine->pci_bridges[1].vendor_id, 0x8086);
  EXPECT_EQ(machine->pci_bridges[1].device_id, 0x340a);
  ASSERT_EQ(machine->pci_devices.size(), 1U);
  const PciDevice& device = machine->pci_devices[0];
  EXPECT_EQ(device.address, "0000:42:00.1");
  EXPECT_EQ(device.bridge, 1U);
  EXPECT_EQ(device.class_id, 0x0302);
  EXPECT_EQ(device.vendor_id, 0x10de);
  EXPECT_EQ(device.device_id, 0x20b0);
  EXPECT_EQ(device.cpus, CpuSet{1});
  EXPECT_EQ(device.nodes, NodeSet{1});
  EXPECT_EQ(device.info, (DeviceInfo{{"PCIVendor", "NVIDIA"}}));
  ASSERT_EQ(machine->os_devices.size(), 1U);
  EXPECT_EQ(machine->os_devices[0].name, "nvml0");
  EXPECT_EQ(machine->os_devices[0].subtype, "NVML");
  EXPECT_EQ(machine->os_devices[0].kind, OsDeviceKind::kGpu);
  EXPECT_EQ(machine->os_devices[0].pci_device, 0U);
  EXPECT_EQ(machine->os_devices[0].nodes, NodeSet{1});
  EXPECT_EQ(machine->os_devices[0].info, (DeviceInfo{{"NVIDIAUUID", "GPU-1"}}));
}

TEST(SyntheticMachine, HasCachesOfAllLevels) {
  const auto machine = made_of("pack:1 numa:1 l3:2(size=8MB) l2:2(size=1MB) core:1 pu:2");
  ASSERT_EQ(machine->caches.size(), 6U);
  EXPECT_EQ(machine->caches[0].level, 3U);
  EXPECT_EQ(machine->caches[0].bytes, 8000000);
  EXPECT_EQ(machine->caches[1].cpus, CpuSet::range(4, 7));
  EXPECT_EQ(machine->caches[2].level, 2U);
  EXPECT_EQ(machine->caches[5].cpus, (CpuSet{6, 7}));
  EXPECT_EQ(machine->caches[5].kind, CacheKind::kUnified);
}

TEST(Discover, NamesWhatItCannotRead) {
  EXPECT_THAT(discover({.xml_file = "/no/such.xml"}).error().message,
              HasSubstr("cannot read a machine from /no/such.xml: No such file or directory"));
  EXPECT_THAT(discover({.synthetic = "shoe:2 pu:1"}).error().message,
              HasSubstr("cannot read the machine 'shoe:2 pu:1'"));
  EXPECT_EQ(discover({.xml_file = "/no/such.xml", .synthetic = "pu:1"}).error().code, Code::kInvalidArgument);
}

TEST(LiveMachine, IsOnlineAsTheKernelSays) {
  const auto machine = discover({});
  ASSERT_TRUE(machine.has_value()) << machine.error().message;
  std::string online;
  std::getline(std::ifstream("/sys/devices/system/cpu/online"), online);
  EXPECT_EQ((*machine)->online.to_string(), online);
  EXPECT_EQ((*machine)->allowed, (*machine)->online);
  EXPECT_FALSE((*machine)->nodes.empty());
}

TEST(LiveMachine, TakesOnlineAndIsolatedFromSysfs) {
  const auto whole = discover({});
  ASSERT_TRUE(whole.has_value());
  const std::string last = std::to_string((*whole)->pus.back().os_index);
  const TempDir sysfs;
  sysfs.write("devices/system/cpu/online", last + "\n");
  sysfs.write("devices/system/cpu/isolated", "0-65535\n");
  const auto machine = discover({.sysfs_root = sysfs.path()});
  ASSERT_TRUE(machine.has_value()) << machine.error().message;
  EXPECT_EQ((*machine)->online.to_string(), last);
  EXPECT_EQ((*machine)->isolated.to_string(), last);
  EXPECT_EQ((*machine)->pus.size(), 1U);
}

TEST(LiveMachine, NamesTheKernelFileThatHoldsNoList) {
  const TempDir sysfs;
  const auto file = sysfs.write("devices/system/cpu/isolated", "some\n");
  EXPECT_THAT(discover({.sysfs_root = sysfs.path()}).error().message,
              HasSubstr(file.string() + ": cannot read 'some'"));
}

}  // namespace
}  // namespace topolet::topology
