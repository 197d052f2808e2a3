#include "plugins/gpu/device_kinds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "plugins/gpu/text.hpp"

namespace topolet::gpu {
namespace {

using ::testing::HasSubstr;

std::string error_of(const std::string& devices) {
  try {
    parse_device_kinds(devices);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(DeviceKinds, AreParsed) {
  const std::vector<DeviceKind> kinds = parse_device_kinds(
      " vacc: path=/dev/vacc* env=VA pci=link:class/vacc/vacc*/device;vf: env=PCIDEVICE_* ; "
      "x: path=/dev/x* pci=function:10de:1db8/0302;");
  ASSERT_EQ(kinds.size(), 4U);
  EXPECT_EQ(kinds[0].locate_by, LocateBy::kLink);
  EXPECT_EQ(kinds[0].link, "class/vacc/vacc*/device");
  EXPECT_EQ(kinds[0].env, "VA");
  EXPECT_EQ(kinds[1].locate_by, LocateBy::kItem);
  EXPECT_EQ(kinds[2].pci_match.vendor_id, 0x10deU);
  EXPECT_EQ(kinds[2].pci_match.device_id, 0x1db8U);
  EXPECT_EQ(kinds[2].pci_match.class_digits, "0302");
  EXPECT_EQ(kinds[3].name, "ascend");  // built in; the other one, vacc, is replaced
}

TEST(DeviceKinds, AcceptHexadecimalDigitsInAnyCase) {
  const DeviceKind kind = parse_device_kinds("x: path=/dev/x* pci=function:10DE/0B40").front();
  EXPECT_EQ(kind.pci_match.vendor_id, 0x10deU);
  EXPECT_EQ(kind.pci_match.class_digits, "0b40");
}

TEST(DeviceKinds, NameTheMistakeAndTheWayOut) {
  EXPECT_EQ(error_of("vacc path=/x"),
            "option devices: vacc path=/x: write it as NAME: path=PATTERN env=VARIABLE pci=HOW");
  EXPECT_EQ(error_of("a: path=/x pth=/y"),
            "option devices: a: 'pth=/y' must be one of path=PATTERN, env=VARIABLE or pci=HOW");
  EXPECT_THAT(error_of("a: path=/x pci=magic"), HasSubstr("pci=magic must be one of sysfs, link:PATTERN"));
  EXPECT_THAT(error_of("a: pci=sysfs"), HasSubstr("give path= or env="));
  EXPECT_THAT(error_of("a: path=/dev/*/* "), HasSubstr("only one '*'"));
  EXPECT_THAT(error_of("a: path=/dev/a pci=function:10de"), HasSubstr("requires path= with a '*'"));
  EXPECT_THAT(error_of("a: path=/dev/a* pci=function:10dex"), HasSubstr("is not a PCI ID"));
  EXPECT_THAT(error_of("a: path=/dev/a; a: path=/dev/b"), HasSubstr("two kinds have this name"));
  EXPECT_THAT(error_of("a: env=*"), HasSubstr("every variable"));
  EXPECT_THAT(error_of("a: path=dev/a"), HasSubstr("must begin with '/'"));
  EXPECT_EQ(error_of("a: path=/dev/a path=/dev/b"), "option devices: a: path= is given twice");
  EXPECT_THAT(error_of("a: env=NVIDIA_VISIBLE_DEVICES"), HasSubstr("pci=item has no effect with env=NVIDIA_"));
  EXPECT_THAT(error_of("a: env=A=none pci=node:0"), HasSubstr("env=A=none never matches"));
  EXPECT_THAT(error_of("a: env=A=1,2 pci=node:0"), HasSubstr("one item of the variable's list"));
  EXPECT_THAT(error_of("a: env=A= pci=node:0"), HasSubstr("VARIABLE or VARIABLE=ITEM"));
  EXPECT_THAT(error_of("a: env=A=*x* pci=node:0"), HasSubstr("only one '*'"));
  EXPECT_THAT(error_of("a: path=/dev//a"), HasSubstr("path=/dev//a never matches"));
  EXPECT_THAT(error_of("a: path=/dev/a/"), HasSubstr("path=/dev/a/ never matches"));
  EXPECT_THAT(error_of("a: env=A pci=link:class/a/a0/device"), HasSubstr("pci=link requires path="));
  EXPECT_THAT(error_of("a: path=/dev/a pci=link:/sys/class/a/a0/device"), HasSubstr("relative to /sys"));
  EXPECT_THAT(error_of("a: path=/dev/a* pci=link:class/a/a0/device"), HasSubstr("in both path= and pci=link:"));
  EXPECT_THAT(error_of("a: path=/dev/a pci=link:class/a/a*/device"), HasSubstr("in both path= and pci=link:"));
}

TEST(Text, ReadsPciAddresses) {
  EXPECT_EQ(parse_pci_address("00000000:C1:00.0"), "0000:c1:00.0");
  EXPECT_EQ(parse_pci_address("65:00.1"), "0000:65:00.1");
  EXPECT_EQ(parse_pci_address("10000:e1:00.0"), "10000:e1:00.0");
  for (const char* const text : {"", "65:00", "0000:65:00.8", "zz:00.0", "0000:65:0g.0", "1:2:3"}) {
    EXPECT_EQ(parse_pci_address(text), std::nullopt) << text;
  }
  EXPECT_EQ(find_pci_address("/sys/devices/pci0000:64/0000:64:00.0/0000:65:00.0/nvme/nvme0"), "0000:65:00.0");
  EXPECT_EQ(find_pci_address("/dev/disk/by-path/pci-0000:65:00.0-nvme-1"), "0000:65:00.0");
  EXPECT_EQ(find_pci_address("/sys/devices/virtual/tty/tty0"), std::nullopt);
}

TEST(Text, ReadsListsOfCpus) {
  EXPECT_EQ(parse_cpu_list("0-3,8, 10-11\n").to_string(), "0-3,8,10-11");
  EXPECT_EQ(parse_cpu_list("0-15,16-31").to_string(), "0-31");
  for (const char* const text : {"", "x", "-", "3-1", "1-", "0-99999999999"}) {
    EXPECT_TRUE(parse_cpu_list(text).empty()) << text;
  }
}

}  // namespace
}  // namespace topolet::gpu
