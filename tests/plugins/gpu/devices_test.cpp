#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "plugins/gpu/inventory.hpp"
#include "tests/plugins/gpu/tree.hpp"

namespace topolet::gpu {
namespace {

using ::testing::IsEmpty;

TEST(Devices, AreFoundByTheirNodesInDev) {
  const Tree tree;
  tree.device("block", "259:0", "0000:41:00.0", "nvme/nvme0/nvme0n1", "nvme0n1", 1);
  tree.device("char", "231:192", "0000:42:00.1", "infiniband_verbs/uverbs0", "infiniband/uverbs0", -1);
  tree.write("sys/devices/virtual/tty/tty0/uevent", "DEVNAME=tty0\n");
  tree.link("sys/dev/char/4:0", "../../devices/virtual/tty/tty0");
  tree.write("sys/devices/platform/acc/numa_node", "2\n");
  tree.write("sys/devices/platform/acc/misc/acc/uevent", "DEVNAME=acc0\n");
  tree.link("sys/dev/char/10:9", "../../devices/platform/acc/misc/acc");
  tree.link("dev/disk/by-id/nvme-x", "../../nvme0n1");
  tree.write("dev/nvme0n1", "");
  tree.link("dev/stdin", "/proc/self/fd/0");
  tree.link("dev/dri/by-path/x", "../card9");

  const Devices devices = read_devices(tree.roots(), {});
  ASSERT_EQ(devices.places.size(), 3U);
  EXPECT_EQ(devices.places.at("/dev/nvme0n1").address, "0000:41:00.0");
  EXPECT_EQ(devices.places.at("/dev/nvme0n1").node, 1U);
  EXPECT_EQ(devices.places.at("/dev/infiniband/uverbs0").address, "0000:42:00.1");
  EXPECT_EQ(devices.places.at("/dev/infiniband/uverbs0").node, std::nullopt);
  EXPECT_EQ(devices.places.at("/dev/acc0").address, "");
  EXPECT_EQ(devices.places.at("/dev/acc0").node, 2U);
  EXPECT_EQ(devices.aliases,
            (std::map<std::string, std::string, std::less<>>{{"/dev/disk/by-id/nvme-x", "/dev/nvme0n1"},
                                                             {"/dev/dri/by-path/x", "/dev/dri/card9"}}));
}

TEST(Devices, AreFoundThroughTheLinksOfATable) {
  const Tree tree;
  tree.write("sys/devices/pci0000:00/0000:00:02.0/class", "");
  tree.link("sys/class/vacc/vacc7/device", "../../../devices/pci0000:00/0000:00:02.0");
  tree.link("sys/class/vacc/other/device", "../../../devices/pci0000:00/0000:00:02.0");
  const Devices devices =
      read_devices(tree.roots(), read_kinds("vacc: path=/dev/vacc* pci=link:class/vacc/vacc*/device"));
  ASSERT_EQ(devices.places.size(), 1U);
  EXPECT_EQ(devices.places.at("/dev/vacc7").address, "0000:00:02.0");
}

TEST(Devices, KnowThatOfVfioByItsGroup) {
  const Tree tree;
  tree.write("sys/devices/pci0000:00/0000:00:03.0/numa_node", "1\n");
  tree.link("sys/kernel/iommu_groups/42/devices/0000:00:03.0", "../../../../devices/pci0000:00/0000:00:03.0");
  EXPECT_EQ(read_devices(tree.roots(), {}).places.at("/dev/vfio/42").address, "0000:00:03.0");
}

TEST(Devices, OfAGroupAreNotTheBridgeAboveThem) {
  const Tree tree;
  tree.write("sys/devices/pci0000:00/0000:00:01.0/class", "0x060400\n");
  tree.write("sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/class", "0x030200\n");
  const std::string group = "sys/kernel/iommu_groups/7/devices/";
  tree.link(group + "0000:00:01.0", "../../../../devices/pci0000:00/0000:00:01.0");
  tree.link(group + "0000:01:00.0", "../../../../devices/pci0000:00/0000:00:01.0/0000:01:00.0");
  EXPECT_EQ(read_devices(tree.roots(), {}).places.at("/dev/vfio/7").address, "0000:01:00.0");
}

TEST(Devices, OfSeveralPartsAreWhereAllOfThemAre) {
  const Tree tree;
  tree.device("block", "8:0", "0000:41:00.0", "block/sda", "sda", 1);
  tree.device("block", "8:16", "0000:42:00.0", "block/sdb", "sdb", 1);
  tree.device("char", "240:0", "0000:43:00.0", "nvme/nvme0", "nvme0", 0);
  tree.device("char", "240:1", "0000:44:00.0", "nvme/nvme1", "nvme1", 1);
  const std::string pci = "sys/devices/pci0000:00/0000:00:01.0/";
  const auto made_of = [&tree](const std::string& name, const std::string& number, const std::string& directory,
                               const std::vector<std::string>& links) {
    tree.write("sys/devices/virtual/" + directory + "/uevent", "DEVNAME=" + name + "\n");
    tree.link("sys/dev/block/" + number, tree.path("sys/devices/virtual/" + directory));
    for (const std::string& link : links)
      tree.link("sys/devices/virtual/" + link.substr(0, link.find('>')), tree.path(link.substr(link.find('>') + 1)));
  };
  made_of("dm-0", "253:0", "block/dm-0", {"block/dm-0/slaves/sda>" + pci + "0000:41:00.0/block/sda"});
  made_of("dm-1", "253:1", "block/dm-1",
          {"block/dm-1/slaves/dm-0>sys/devices/virtual/block/dm-0",
           "block/dm-1/slaves/sdb>" + pci + "0000:42:00.0/block/sdb"});
  const std::string subsystem = "nvme-subsystem/nvme-subsys0/";
  made_of("nvme0n1", "259:0", subsystem + "nvme0n1", {subsystem + "nvme0>" + pci + "0000:43:00.0/nvme/nvme0"});
  made_of("nvme0n1p1", "259:1", subsystem + "nvme0n1/nvme0n1p1", {});
  const std::string shared = "nvme-subsystem/nvme-subsys1/";
  made_of("nvme1n1", "259:2", shared + "nvme1n1",
          {shared + "nvme0>" + pci + "0000:43:00.0/nvme/nvme0", shared + "nvme1>" + pci + "0000:44:00.0/nvme/nvme1"});
  made_of("dm-2", "253:2", "block/dm-2", {"block/dm-2/slaves/dm-2>sys/devices/virtual/block/dm-2"});

  const auto places = read_devices(tree.roots(), {}).places;
  EXPECT_EQ(places.at("/dev/dm-0").address, "0000:41:00.0");
  EXPECT_EQ(places.at("/dev/dm-1").address, "") << "two disks";
  EXPECT_EQ(places.at("/dev/dm-1").node, 1U) << "of one node";
  EXPECT_EQ(places.at("/dev/nvme0n1").address, "0000:43:00.0") << "multipath, with one path";
  EXPECT_EQ(places.at("/dev/nvme0n1p1").address, "0000:43:00.0");
  EXPECT_EQ(places.count("/dev/nvme1n1"), 0U) << "its paths are at two nodes";
  EXPECT_EQ(places.count("/dev/dm-2"), 0U) << "made of itself";
}

TEST(Devices, DoNotWaitForFilesThatArePipes) {
  const Tree tree;
  for (const char* const name : {"sys/devices/system/cpu/online", "etc/cdi/pipe.json"}) {
    std::filesystem::create_directories(std::filesystem::path(tree.path(name)).parent_path());
    ASSERT_EQ(mkfifo(tree.path(name).c_str(), 0600), 0);
  }
  EXPECT_EQ(read_devices(tree.roots(), {}).online, "");
  EXPECT_EQ(read_cdi(tree.roots()).faults,
            std::vector<std::string>{"CDI spec " + tree.path("etc/cdi/pipe.json") +
                                     ": it cannot be read, or is no regular file of at most 16 MiB"});
}

TEST(Devices, NvidiasDriverTellsMinorAndUuid) {
  const Tree tree;
  tree.write("proc/driver/nvidia/gpus/0000:81:00.0/information", "GPU UUID: \t GPU-1\nDevice Minor: \t 0\n");
  tree.write("proc/driver/nvidia/gpus/0000:41:00.0/information", "Bus Location: \t 0000:41:00.0\nDevice Minor: 3\n");
  tree.write("proc/driver/nvidia/gpus/10000:01:00.0/information", "");
  tree.write("proc/driver/nvidia/gpus/2000:01:00.0/information", "");
  const std::vector<NvidiaGpu> gpus = read_devices(tree.roots(), {}).nvidia;
  ASSERT_EQ(gpus.size(), 4U);
  EXPECT_EQ(gpus[3].address, "10000:01:00.0");
  EXPECT_EQ(gpus[0].address, "0000:41:00.0");
  EXPECT_EQ(gpus[0].minor, 3U);
  EXPECT_EQ(gpus[1].uuid, "GPU-1");
}

TEST(Devices, AreNoneWithoutFiles) {
  const Tree tree;
  EXPECT_THAT(read_devices(tree.roots(), {}).places, IsEmpty());
  EXPECT_THAT(read_cdi(tree.roots()).devices, IsEmpty());
  EXPECT_EQ(cdi_stamp(tree.roots()), "");
}

TEST(Devices, OfAMissingRootAreNotThoseOfTheWorkingDirectory) {
  const Tree tree;
  tree.write("sys/devices/system/cpu/online", "0\n");
  tree.device("block", "259:0", "0000:41:00.0", "nvme/nvme0/nvme0n1", "nvme0n1", 1);
  Roots roots = tree.roots();
  roots.sysfs = tree.path("none");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(tree.path("sys"));
  const Devices devices = read_devices(roots, {});
  std::filesystem::current_path(before);
  EXPECT_EQ(devices.online, "");
  EXPECT_THAT(devices.places, IsEmpty());
}

TEST(Devices, ChangeWithDev) {
  const Tree tree;
  tree.write("dev/dri/card0", "");
  const Devices devices = read_devices(tree.roots(), {});
  EXPECT_FALSE(has_changed(devices));
  std::filesystem::last_write_time(tree.roots().dev / "dri", std::filesystem::file_time_type::min());
  EXPECT_TRUE(has_changed(devices));
}

TEST(CdiRegistry, ReadsAllSpecsAndNamesThoseItCannot) {
  const Tree tree;
  const auto spec = [](const char* path) {
    return std::string(R"({"kind":"a/b","devices":[{"name":"x","containerEdits":{"deviceNodes":[{"path":")") + path +
           R"("}]}}]})";
  };
  tree.write("etc/cdi/one.json", spec("/dev/old"));
  tree.write("run/cdi/two.json", spec("/dev/new"));
  tree.write("run/cdi/bad.yaml", "kind\n");
  tree.write("run/cdi/unread.yml", "kind\n");
  tree.write("run/cdi/notes.txt", "kind\n");
  const CdiRegistry registry = read_cdi(tree.roots());
  EXPECT_EQ(registry.devices.at("a/b=x").paths, std::vector<std::string>{"/dev/new"});
  ASSERT_EQ(registry.faults.size(), 1U);
  EXPECT_EQ(registry.faults[0], "CDI spec " + tree.path("run/cdi/bad.yaml") +
                                    ": it has no kind such as vendor.com/class, or no list of devices");
  const std::string before = cdi_stamp(tree.roots());
  tree.write("etc/cdi/three.json", spec("/dev/x"));
  EXPECT_NE(cdi_stamp(tree.roots()), before);
  const std::string written = cdi_stamp(tree.roots());
  const auto time = std::filesystem::last_write_time(tree.path("etc/cdi/three.json"));
  tree.write("etc/cdi/three.json", spec("/dev/longer"));
  std::filesystem::last_write_time(tree.path("etc/cdi/three.json"), time);
  EXPECT_NE(cdi_stamp(tree.roots()), written) << "written twice at one time";
}

}  // namespace
}  // namespace topolet::gpu
