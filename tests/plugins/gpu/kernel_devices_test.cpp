#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "plugins/gpu/inventory.hpp"
#include "tests/plugins/gpu/fake_files.hpp"

namespace topolet::gpu {
namespace {

using ::testing::IsEmpty;

TEST(KernelDevices, AreFoundByTheirDeviceNodes) {
  const FakeFiles files;
  files.device("block", "259:0", "0000:41:00.0", "nvme/nvme0/nvme0n1", "nvme0n1", 1);
  files.device("char", "231:192", "0000:42:00.1", "infiniband_verbs/uverbs0", "infiniband/uverbs0", -1);
  files.write("sys/devices/virtual/tty/tty0/uevent", "DEVNAME=tty0\n");
  files.link("sys/dev/char/4:0", "../../devices/virtual/tty/tty0");
  files.write("sys/devices/platform/acc/numa_node", "2\n");
  files.write("sys/devices/platform/acc/misc/acc/uevent", "DEVNAME=acc0\n");
  files.link("sys/dev/char/10:9", "../../devices/platform/acc/misc/acc");
  files.link("dev/disk/by-id/nvme-x", "../../nvme0n1");
  files.write("dev/nvme0n1", "");
  files.link("dev/stdin", "/proc/self/fd/0");
  files.link("dev/dri/by-path/x", "../card9");

  const KernelDevices devices = read_kernel_devices(files.roots(), {});
  ASSERT_EQ(devices.locations.size(), 3U);
  EXPECT_EQ(devices.locations.at("/dev/nvme0n1").address, "0000:41:00.0");
  EXPECT_EQ(devices.locations.at("/dev/nvme0n1").node, 1U);
  EXPECT_EQ(devices.locations.at("/dev/infiniband/uverbs0").address, "0000:42:00.1");
  EXPECT_EQ(devices.locations.at("/dev/infiniband/uverbs0").node, std::nullopt);
  EXPECT_EQ(devices.locations.at("/dev/acc0").address, "");
  EXPECT_EQ(devices.locations.at("/dev/acc0").node, 2U);
  EXPECT_EQ(devices.aliases,
            (std::map<std::string, std::string, std::less<>>{{"/dev/disk/by-id/nvme-x", "/dev/nvme0n1"},
                                                             {"/dev/dri/by-path/x", "/dev/dri/card9"}}));
}

TEST(KernelDevices, AreFoundThroughConfiguredLinks) {
  const FakeFiles files;
  files.write("sys/devices/pci0000:00/0000:00:02.0/class", "");
  files.link("sys/class/vacc/vacc7/device", "../../../devices/pci0000:00/0000:00:02.0");
  files.link("sys/class/vacc/other/device", "../../../devices/pci0000:00/0000:00:02.0");
  const KernelDevices devices =
      read_kernel_devices(files.roots(), parse_device_kinds("vacc: path=/dev/vacc* pci=link:class/vacc/vacc*/device"));
  ASSERT_EQ(devices.locations.size(), 1U);
  EXPECT_EQ(devices.locations.at("/dev/vacc7").address, "0000:00:02.0");
}

TEST(KernelDevices, FindAVfioDeviceByItsIommuGroup) {
  const FakeFiles files;
  files.write("sys/devices/pci0000:00/0000:00:03.0/numa_node", "1\n");
  files.link("sys/kernel/iommu_groups/42/devices/0000:00:03.0", "../../../../devices/pci0000:00/0000:00:03.0");
  EXPECT_EQ(read_kernel_devices(files.roots(), {}).locations.at("/dev/vfio/42").address, "0000:00:03.0");
}

TEST(KernelDevices, LeaveOutTheBridgeOfAnIommuGroup) {
  const FakeFiles files;
  files.write("sys/devices/pci0000:00/0000:00:01.0/class", "0x060400\n");
  files.write("sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/class", "0x030200\n");
  const std::string group = "sys/kernel/iommu_groups/7/devices/";
  files.link(group + "0000:00:01.0", "../../../../devices/pci0000:00/0000:00:01.0");
  files.link(group + "0000:01:00.0", "../../../../devices/pci0000:00/0000:00:01.0/0000:01:00.0");
  EXPECT_EQ(read_kernel_devices(files.roots(), {}).locations.at("/dev/vfio/7").address, "0000:01:00.0");
}

TEST(KernelDevices, HaveTheLocationThatAllTheirPartsShare) {
  const FakeFiles files;
  files.device("block", "8:0", "0000:41:00.0", "block/sda", "sda", 1);
  files.device("block", "8:16", "0000:42:00.0", "block/sdb", "sdb", 1);
  files.device("char", "240:0", "0000:43:00.0", "nvme/nvme0", "nvme0", 0);
  files.device("char", "240:1", "0000:44:00.0", "nvme/nvme1", "nvme1", 1);
  const std::string pci = "sys/devices/pci0000:00/0000:00:01.0/";
  const auto made_of = [&files](const std::string& name, const std::string& number, const std::string& directory,
                                const std::vector<std::string>& links) {
    files.write("sys/devices/virtual/" + directory + "/uevent", "DEVNAME=" + name + "\n");
    files.link("sys/dev/block/" + number, files.path("sys/devices/virtual/" + directory));
    for (const std::string& link : links)
      files.link("sys/devices/virtual/" + link.substr(0, link.find('>')), files.path(link.substr(link.find('>') + 1)));
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

  const auto locations = read_kernel_devices(files.roots(), {}).locations;
  EXPECT_EQ(locations.at("/dev/dm-0").address, "0000:41:00.0");
  EXPECT_EQ(locations.at("/dev/dm-1").address, "") << "two disks";
  EXPECT_EQ(locations.at("/dev/dm-1").node, 1U) << "of one node";
  EXPECT_EQ(locations.at("/dev/nvme0n1").address, "0000:43:00.0") << "multipath, with one path";
  EXPECT_EQ(locations.at("/dev/nvme0n1p1").address, "0000:43:00.0");
  EXPECT_EQ(locations.count("/dev/nvme1n1"), 0U) << "its paths are at two nodes";
  EXPECT_EQ(locations.count("/dev/dm-2"), 0U) << "made of itself";
}

TEST(KernelDevices, DoNotWaitForPipes) {
  const FakeFiles files;
  for (const char* const name : {"sys/devices/system/cpu/online", "etc/cdi/pipe.json"}) {
    std::filesystem::create_directories(std::filesystem::path(files.path(name)).parent_path());
    ASSERT_EQ(mkfifo(files.path(name).c_str(), 0600), 0);
  }
  EXPECT_EQ(read_kernel_devices(files.roots(), {}).online, "");
  EXPECT_EQ(read_cdi(files.roots()).errors,
            std::vector<std::string>{"CDI spec " + files.path("etc/cdi/pipe.json") +
                                     ": cannot be read; it must be a regular file of at most 16 MiB"});
}

TEST(KernelDevices, HaveMinorAndUuidFromNvidiasDriver) {
  const FakeFiles files;
  files.write("proc/driver/nvidia/gpus/0000:81:00.0/information", "GPU UUID: \t GPU-1\nDevice Minor: \t 0\n");
  files.write("proc/driver/nvidia/gpus/0000:41:00.0/information", "Bus Location: \t 0000:41:00.0\nDevice Minor: 3\n");
  files.write("proc/driver/nvidia/gpus/10000:01:00.0/information", "");
  files.write("proc/driver/nvidia/gpus/2000:01:00.0/information", "");
  const std::vector<NvidiaGpu> gpus = read_kernel_devices(files.roots(), {}).nvidia;
  ASSERT_EQ(gpus.size(), 4U);
  EXPECT_EQ(gpus[3].address, "10000:01:00.0");
  EXPECT_EQ(gpus[0].address, "0000:41:00.0");
  EXPECT_EQ(gpus[0].minor, 3U);
  EXPECT_EQ(gpus[1].uuid, "GPU-1");
}

TEST(KernelDevices, AreEmptyWithoutFiles) {
  const FakeFiles files;
  EXPECT_THAT(read_kernel_devices(files.roots(), {}).locations, IsEmpty());
  EXPECT_THAT(read_cdi(files.roots()).devices, IsEmpty());
  EXPECT_EQ(cdi_fingerprint(files.roots()), "");
}

TEST(KernelDevices, AreNotReadFromTheWorkingDirectoryIfTheRootIsMissing) {
  const FakeFiles files;
  files.write("sys/devices/system/cpu/online", "0\n");
  files.device("block", "259:0", "0000:41:00.0", "nvme/nvme0/nvme0n1", "nvme0n1", 1);
  Roots roots = files.roots();
  roots.sysfs = files.path("none");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(files.path("sys"));
  const KernelDevices devices = read_kernel_devices(roots, {});
  std::filesystem::current_path(before);
  EXPECT_EQ(devices.online, "");
  EXPECT_THAT(devices.locations, IsEmpty());
}

TEST(KernelDevices, NoticeAChangeInDev) {
  const FakeFiles files;
  files.write("dev/dri/card0", "");
  const KernelDevices devices = read_kernel_devices(files.roots(), {});
  EXPECT_FALSE(has_changed(devices));
  std::filesystem::last_write_time(files.roots().dev / "dri", std::filesystem::file_time_type::min());
  EXPECT_TRUE(has_changed(devices));
}

TEST(CdiRegistry, ReadsAllSpecsAndNamesThoseThatItCannotRead) {
  const FakeFiles files;
  const auto spec = [](const char* path) {
    return std::string(R"({"kind":"a/b","devices":[{"name":"x","containerEdits":{"deviceNodes":[{"path":")") + path +
           R"("}]}}]})";
  };
  files.write("etc/cdi/one.json", spec("/dev/old"));
  files.write("run/cdi/two.json", spec("/dev/new"));
  files.write("run/cdi/bad.yaml", "kind\n");
  files.write("run/cdi/unread.yml", "kind\n");
  files.write("run/cdi/notes.txt", "kind\n");
  const CdiRegistry registry = read_cdi(files.roots());
  EXPECT_EQ(registry.devices.at("a/b=x").paths, std::vector<std::string>{"/dev/new"});
  ASSERT_EQ(registry.errors.size(), 1U);
  EXPECT_EQ(registry.errors[0], "CDI spec " + files.path("run/cdi/bad.yaml") +
                                    ": a spec needs a 'kind' such as vendor.com/class and a list 'devices'");
  const std::string before = cdi_fingerprint(files.roots());
  files.write("etc/cdi/three.json", spec("/dev/x"));
  EXPECT_NE(cdi_fingerprint(files.roots()), before);
  const std::string written = cdi_fingerprint(files.roots());
  const auto time = std::filesystem::last_write_time(files.path("etc/cdi/three.json"));
  files.write("etc/cdi/three.json", spec("/dev/longer"));
  std::filesystem::last_write_time(files.path("etc/cdi/three.json"), time);
  EXPECT_NE(cdi_fingerprint(files.roots()), written) << "written twice at one time";
}

}  // namespace
}  // namespace topolet::gpu
