#include "plugins/gpu/kinds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "plugins/gpu/text.hpp"

namespace topolet::gpu {
namespace {

using ::testing::HasSubstr;

std::string refusal(const std::string& devices) {
  try {
    read_kinds(devices);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(Kinds, ReadTheTable) {
  const std::vector<Kind> kinds = read_kinds(
      " vacc: path=/dev/vacc* env=VA pci=link:class/vacc/vacc*/device;vf: env=PCIDEVICE_* ; "
      "x: path=/dev/x* pci=function:10de:1db8/0302;");
  ASSERT_EQ(kinds.size(), 4U);
  EXPECT_EQ(kinds[0].finding, Finding::kLink);
  EXPECT_EQ(kinds[0].link, "class/vacc/vacc*/device");
  EXPECT_EQ(kinds[0].env, "VA");
  EXPECT_EQ(kinds[1].finding, Finding::kItem);
  EXPECT_EQ(kinds[2].make.vendor_id, 0x10deU);
  EXPECT_EQ(kinds[2].make.device_id, 0x1db8U);
  EXPECT_EQ(kinds[2].make.class_digits, "0302");
  EXPECT_EQ(kinds[3].name, "ascend");  // ours, less the one that is replaced
}

TEST(Kinds, TakeHexadecimalDigitsInAnyCase) {
  const Kind kind = read_kinds("x: path=/dev/x* pci=function:10DE/0B40").front();
  EXPECT_EQ(kind.make.vendor_id, 0x10deU);
  EXPECT_EQ(kind.make.class_digits, "0b40");
}

TEST(Kinds, SayWhatIsWrongWithTheTable) {
  EXPECT_EQ(refusal("vacc path=/x"),
            "option devices: vacc path=/x: it should read NAME: path=PATTERN env=VARIABLE pci=HOW");
  EXPECT_EQ(refusal("a: path=/x pth=/y"),
            "option devices: a: 'pth=/y' is none of path=PATTERN, env=VARIABLE and pci=HOW");
  EXPECT_THAT(refusal("a: path=/x pci=magic"), HasSubstr("pci=magic is none of sysfs, link:PATTERN"));
  EXPECT_THAT(refusal("a: pci=sysfs"), HasSubstr("it needs path= or env="));
  EXPECT_THAT(refusal("a: path=/dev/*/* "), HasSubstr("one '*' at most"));
  EXPECT_THAT(refusal("a: path=/dev/a pci=function:10de"), HasSubstr("path= needs a '*'"));
  EXPECT_THAT(refusal("a: path=/dev/a* pci=function:10dex"), HasSubstr("is no PCI id"));
  EXPECT_THAT(refusal("a: path=/dev/a; a: path=/dev/b"), HasSubstr("two kinds of this name"));
  EXPECT_THAT(refusal("a: env=*"), HasSubstr("every variable"));
  EXPECT_THAT(refusal("a: path=dev/a"), HasSubstr("begins with '/'"));
  EXPECT_EQ(refusal("a: path=/dev/a path=/dev/b"), "option devices: a: path= is there twice");
  EXPECT_THAT(refusal("a: env=NVIDIA_VISIBLE_DEVICES"), HasSubstr("pci=item has no effect with env=NVIDIA_"));
  EXPECT_THAT(refusal("a: env=A=none pci=node:0"), HasSubstr("env=A=none has no effect"));
  EXPECT_THAT(refusal("a: env=A=1,2 pci=node:0"), HasSubstr("one item of its list"));
  EXPECT_THAT(refusal("a: env=A= pci=node:0"), HasSubstr("VARIABLE or VARIABLE=ITEM"));
  EXPECT_THAT(refusal("a: env=A=*x* pci=node:0"), HasSubstr("one '*' at most"));
  EXPECT_THAT(refusal("a: path=/dev//a"), HasSubstr("path=/dev//a has no effect"));
  EXPECT_THAT(refusal("a: path=/dev/a/"), HasSubstr("path=/dev/a/ has no effect"));
  EXPECT_THAT(refusal("a: env=A pci=link:class/a/a0/device"), HasSubstr("pci=link needs path="));
  EXPECT_THAT(refusal("a: path=/dev/a pci=link:/sys/class/a/a0/device"), HasSubstr("a path below /sys"));
  EXPECT_THAT(refusal("a: path=/dev/a* pci=link:class/a/a0/device"), HasSubstr("both need a '*'"));
  EXPECT_THAT(refusal("a: path=/dev/a pci=link:class/a/a*/device"), HasSubstr("both need a '*'"));
}

TEST(Text, ReadsPciAddresses) {
  EXPECT_EQ(pci_address("00000000:C1:00.0"), "0000:c1:00.0");
  EXPECT_EQ(pci_address("65:00.1"), "0000:65:00.1");
  EXPECT_EQ(pci_address("10000:e1:00.0"), "10000:e1:00.0");
  for (const char* const text : {"", "65:00", "0000:65:00.8", "zz:00.0", "0000:65:0g.0", "1:2:3"}) {
    EXPECT_EQ(pci_address(text), std::nullopt) << text;
  }
  EXPECT_EQ(pci_address_in("/sys/devices/pci0000:64/0000:64:00.0/0000:65:00.0/nvme/nvme0"), "0000:65:00.0");
  EXPECT_EQ(pci_address_in("/dev/disk/by-path/pci-0000:65:00.0-nvme-1"), "0000:65:00.0");
  EXPECT_EQ(pci_address_in("/sys/devices/virtual/tty/tty0"), std::nullopt);
}

TEST(Text, ReadsListsOfCpus) {
  EXPECT_EQ(cpu_list("0-3,8, 10-11\n").to_string(), "0-3,8,10-11");
  EXPECT_EQ(cpu_list("0-15,16-31").to_string(), "0-31");
  for (const char* const text : {"", "x", "-", "3-1", "1-", "0-99999999999"}) {
    EXPECT_TRUE(cpu_list(text).empty()) << text;
  }
}

}  // namespace
}  // namespace topolet::gpu
