// Values of environment variables are secrets, of which reasons show nothing.
#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "tests/plugins/gpu/gpu_plugin.hpp"

namespace topolet::gpu {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// GPU 0 is near node 1, GPU 1 near all nodes.
class SecretValues : public GpuPluginTest {
 protected:
  SecretValues() {
    gpu(0, "0000:41:00.0", set_of({1}));
    gpu(1, "0000:42:00.0", set_of({0, 1, 2, 3}));
  }

  /// Returns every reason of the plugin, and its log.
  std::string all_words(const Container& container, const Plugin::Values& more = {}) {
    std::string words;
    host_.log.clear();
    Plugin plugin(topolet_plugin_v1, host_, options(more));
    for (const std::uint32_t exclusive : {0U, 2U}) {
      const Request request(machine_, ledger_, container, exclusive);
      for (const Verdict& verdict : plugin.score(request)) words += verdict.reason + '\n';
    }
    for (const std::string& line : host_.log) words += line + '\n';
    return words;
  }

  std::string reason(const std::string& variable, const std::string& value, const Plugin::Values& more = {}) {
    return verdict({.env = {{variable, value}}}, set_of({0}), more).reason;
  }
};

/// Every part of a value begins or ends with one of these, none of which the machine or the plugin uses itself.
bool shows_a_part(std::string_view words) {
  const std::vector<std::string_view> parts = {"hunter", "7731", "secret", "f00d"};
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return words.find(part) != std::string_view::npos; });
}

TEST_F(SecretValues, NeverAppearInReasons) {
  const Plugin::Values table = {{"devices",
                                 "vf: env=P* pci=item; card: path=/dev/card* env=CARD; near: env=NEAR=secret* "
                                 "pci=node:9; mig: env=NVIDIA_VISIBLE_DEVICES=MIG-secret* pci=address:77:00.0"}};
  const std::vector<std::string> values = {"hunter2",
                                           "7731",
                                           "0,7731,hunter2",
                                           "7731-7735",
                                           "7735-7731",
                                           "7731:1",
                                           "GPU-f00d-secret",
                                           "GPU-f00d,GPU-0",
                                           "MIG-f00d",
                                           "MIG-secret-f00d",
                                           "MIG-GPU-f00d/1/0",
                                           "nvidia.com/gpu=7731",
                                           "0,nvidia.com/gpu=GPU-f00d",
                                           "hunter.com/secret=f00d",
                                           "=hunter2",
                                           "f00d:65:00.0",
                                           "0000:41:00.0,f00d:65:00.0",
                                           "/dev/nvidia7731",
                                           "/dev/hunter2,/dev/dri/card7731",
                                           "secret7731",
                                           "Ascend910-7731",
                                           R"({"f00d:65:00.0":{"secret":"hunter2"}})",
                                           "hunter\x01\xff, ,secret"};
  for (const char* const variable : {"NVIDIA_VISIBLE_DEVICES", "ASCEND_VISIBLE_DEVICES", "VA_VISIBLE_DEVICES",
                                     "PASSWORD", "CARD", "NEAR", "UNRELATED"}) {
    for (const std::string& value : values) {
      const std::string words = all_words({.env = {{variable, value}}}, table);
      EXPECT_FALSE(shows_a_part(words)) << variable << '=' << value << '\n' << words;
      EXPECT_THAT(words, Not(HasSubstr(std::string(variable) + '='))) << value;
    }
  }
}

TEST_F(SecretValues, NeverAppearInReasonsWhereACdiSpecSetsTheVariable) {
  files_.write("etc/cdi/x.json", R"({"kind":"a/b","devices":[
      {"name":"x","containerEdits":{"env":["NVIDIA_VISIBLE_DEVICES=0,GPU-f00d,hunter.com/secret=7731"]}}]})");
  const std::string words = all_words({.cdi_devices = {"a/b=x"}});
  EXPECT_FALSE(shows_a_part(words)) << words;
  EXPECT_THAT(words, HasSubstr("item 2 of NVIDIA_VISIBLE_DEVICES as set by a/b=x: no such GPU was found"));
  EXPECT_THAT(words, HasSubstr("item 3 of NVIDIA_VISIBLE_DEVICES as set by a/b=x: no CDI spec defines it"));
}

TEST_F(SecretValues, AreReplacedByThePositionInTheList) {
  const std::string gpus = "NVIDIA_VISIBLE_DEVICES";
  EXPECT_EQ(reason(gpus, "GPU-f00d"), "not counted: NVIDIA_VISIBLE_DEVICES: no such GPU was found");
  EXPECT_EQ(reason(gpus, "void, ,hunter2,nvidia.com/gpu=f00d"),
            "not counted: item 2 of NVIDIA_VISIBLE_DEVICES: it is neither an index nor a UUID; "
            "not counted: item 3 of NVIDIA_VISIBLE_DEVICES: no CDI spec defines it");
  EXPECT_EQ(reason("VA_VISIBLE_DEVICES", "7,8-9"),
            "not counted: item 1 of VA_VISIBLE_DEVICES: its PCI device is not known; "
            "not counted: device 1 of item 2 of VA_VISIBLE_DEVICES: its PCI device is not known; "
            "not counted: device 2 of item 2 of VA_VISIBLE_DEVICES: its PCI device is not known");
  const std::string json = R"({"f00d:41:00.0":{"id":"f00d:41:00.0","mac":"1,2"},"f00d:42:00.0":{}})";
  EXPECT_EQ(reason("PCIDEVICE_X_INFO", json, {{"devices", "vf: env=PCIDEVICE_* pci=item"}}),
            "not counted: item 1 of PCIDEVICE_X_INFO: its PCI device is not known; "
            "not counted: item 2 of PCIDEVICE_X_INFO: its PCI device is not known");
}

TEST_F(SecretValues, AreReplacedByTheMachinesNameOfADeviceThatIsFound) {
  const std::string why = ": the machine does not say which node it is near";
  EXPECT_EQ(reason("NVIDIA_VISIBLE_DEVICES", "GPU-1"), "not counted: 0000:42:00.0 of NVIDIA_VISIBLE_DEVICES" + why);
  EXPECT_THAT(reason("NVIDIA_VISIBLE_DEVICES", "0,1"),
              HasSubstr("not counted: 0000:42:00.0 of item 2 of NVIDIA_VISIBLE_DEVICES" + why));
  EXPECT_THAT(reason("NVIDIA_VISIBLE_DEVICES", "all"),
              HasSubstr("not counted: 0000:42:00.0 of NVIDIA_VISIBLE_DEVICES" + why));
  machine_.device({.name = "/dev/vacc3", .address = {}, .nodes = set_of({0, 1, 2, 3})});
  EXPECT_EQ(reason("VA_VISIBLE_DEVICES", "3"), "not counted: /dev/vacc3 of VA_VISIBLE_DEVICES" + why);
}

TEST_F(SecretValues, AreNotTheNamesInTheRequestItself) {
  EXPECT_EQ(verdict({.devices = {"/dev/nvidia77"}, .cdi_devices = {"vendor.com/net=3"}}, set_of({0})).reason,
            "not counted: /dev/nvidia77: its PCI device is not known; not counted: vendor.com/net=3: no CDI spec "
            "defines it");
}

}  // namespace
}  // namespace topolet::gpu
