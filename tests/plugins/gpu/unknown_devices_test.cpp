// Reasons and notes about devices that the plugin cannot locate.
#include <gmock/gmock.h>

#include "tests/plugins/gpu/gpu_plugin.hpp"

namespace topolet::gpu {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

class UnknownDevices : public GpuPluginTest {};

TEST_F(UnknownDevices, AreReportedForAWholeDirectory) {
  const auto reason = [&](const char* path) { return verdict({.devices = {path}}, set_of({0})).reason; };
  EXPECT_EQ(reason("/dev/dri"), "not counted: /dev/dri: no GPU was found in this directory");
  EXPECT_EQ(reason("/dev/infiniband"), "not counted: /dev/infiniband: no device was found in this directory");
  EXPECT_EQ(reason("/dev/kfd"), "not counted: /dev/kfd: no AMD GPU was found");
  machine_.device(
      {.name = "renderD128", .address = "0000:41:00.0", .nodes = set_of({1}), .kind = TOPOLET_OS_DEVICE_GPU});
  EXPECT_EQ(reason("/dev/kfd"), "");
}

TEST_F(UnknownDevices, MayBeKnownToTheKernelOnly) {
  files_.device("char", "254:0", "0000:a1:00.0", "q", "q1", -1);
  files_.device("char", "254:1", "0000:a2:00.0", "q", "q2", 9);
  files_.link("dev/by-name", "q1");
  const auto reason = [&](const char* path) {
    return verdict({.devices = {path}}, set_of({0}), {{"affinity", "require"}}).reason;
  };
  const std::string why_not_in_topology =
      ": the topology has no PCI device 0000:a1:00.0, and the kernel reports no node for it";
  EXPECT_EQ(reason("/dev/q1"), "not counted: /dev/q1" + why_not_in_topology);
  EXPECT_EQ(reason("/dev/by-name"), "not counted: /dev/by-name" + why_not_in_topology);
  EXPECT_EQ(reason("/dev/q2"), "not counted: /dev/q2: the topology has no PCI device 0000:a2:00.0 and no node 9");
}

TEST_F(UnknownDevices, BlameABrokenSpecOnlyIfNoOtherSpecDefinesThem) {
  files_.write("etc/cdi/bad.json", "{");
  files_.write("etc/cdi/x.json", R"({"kind":"a/b","devices":[{"name":"mounts","containerEdits":{}}]})");
  const auto reason = [&](const char* name) { return verdict({.cdi_devices = {name}}, set_of({0})).reason; };
  EXPECT_THAT(reason("a/b=mounts"), EndsWith("none of the device nodes in its CDI spec could be located"));
  EXPECT_THAT(reason("a/b=none"), HasSubstr("no CDI spec defines it; CDI spec "));
}

TEST_F(UnknownDevices, MayComeFromAnInvalidRange) {
  const auto reason = [&](const char* list) {
    return verdict({.env = {{"ASCEND_VISIBLE_DEVICES", list}}}, set_of({0})).reason;
  };
  for (const char* const list : {"3-1", "0-2000000000", "99999999999-5"}) {
    EXPECT_EQ(
        reason(list),
        "not counted: ASCEND_VISIBLE_DEVICES: not a valid range: it takes two numbers below 1024, the lower one first");
  }
  EXPECT_THAT(reason("Ascend910-3"), EndsWith("its PCI device is not known"));
}

}  // namespace
}  // namespace topolet::gpu
