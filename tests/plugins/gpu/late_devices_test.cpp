// PCI devices that came after the topology was read, such as virtual functions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/plugins/gpu/gpu_plugin.hpp"

namespace topolet::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;

class LateDevices : public GpuPluginTest {
 protected:
  /// As the kernel shows a function: a link to its place below the bridges.
  void function(const std::string& address, const std::string& node) {
    files_.write("sys/devices/pci0000:00/" + address + "/numa_node", node + "\n");
    files_.link("sys/bus/pci/devices/" + address, "../../../devices/pci0000:00/" + address);
  }
  static Container with_function(const std::string& address) {
    return {.env = {{"PCIDEVICE_VENDOR_COM_NIC", address}}};
  }
  /// After a policy was made, so that it has not seen the files at its start.
  Verdict asked_later(const Container& container, const sdk::Set& nodes, const std::function<void()>& meanwhile) {
    Plugin plugin(topolet_plugin_v1, host_, options());
    meanwhile();
    Request request(machine_, ledger_, container, 1);
    request.candidate(nodes);
    return plugin.score(request)[request.position(nodes)];
  }
};

TEST_F(LateDevices, AreWhereTheKernelShowsThemAtTheCreate) {
  const auto appear = [this] { function("0000:65:00.2", "3"); };
  const Verdict there = asked_later(with_function("0000:65:00.2"), set_of({3}), appear);
  EXPECT_EQ(there.score, 100) << there.reason;
  EXPECT_THAT(there.reason, HasSubstr("node 3: 1 of 1 device is local"));
  EXPECT_LT(verdict(with_function("0000:65:00.2"), set_of({0}), {}, 1).score, 100);
}

TEST_F(LateDevices, AreNowhereWhereTheKernelDoesNotKnow) {
  function("0000:65:00.2", "-1");
  const Verdict unknown = verdict(with_function("0000:65:00.2"), set_of({0}), {}, 1);
  EXPECT_EQ(unknown.kind, TOPOLET_VERDICT_ABSTAIN) << unknown.score;
  EXPECT_THAT(unknown.reason, HasSubstr("PCIDEVICE_VENDOR_COM_NIC: the kernel does not know which node PCI device "
                                        "0000:65:00.2 is near"));
  function("0000:65:00.3", "9");
  EXPECT_THAT(verdict(with_function("0000:65:00.3"), set_of({0}), {}, 1).reason,
              HasSubstr("the machine has no node 9"));
}

TEST_F(LateDevices, AreWhereTheirPhysicalFunctionIsIfOnlyThatIsKnown) {
  function("0000:65:00.0", "2");
  function("0000:65:00.2", "-1");
  files_.link("sys/devices/pci0000:00/0000:65:00.2/physfn", "../0000:65:00.0");
  EXPECT_EQ(verdict(with_function("0000:65:00.2"), set_of({2}), {}, 1).score, 100);
}

TEST_F(LateDevices, AreListedInJsonTooAndCountOnce) {
  function("0000:65:00.2", "1");
  const Container container{.env = {{"PCIDEVICE_VENDOR_COM_NIC", "0000:65:00.2"},
                                    {"PCIDEVICE_VENDOR_COM_NIC_INFO", R"({"0000:65:00.2":{"generic":{}}})"}}};
  EXPECT_THAT(verdict(container, set_of({1}), {}, 1).reason, HasSubstr("1 of 1 device is local"));
}

TEST_F(LateDevices, AreSeveral) {
  function("0000:65:00.2", "1");
  function("0000:65:00.3", "1");
  function("0000:81:00.2", "3");
  const Verdict two = verdict(with_function("0000:65:00.2,0000:65:00.3,0000:81:00.2"), set_of({1}), {}, 1);
  EXPECT_THAT(two.reason, HasSubstr("node 1: 2 of 3 devices are local"));
}

TEST_F(LateDevices, AreNotTakenFromTheFilesOfAnotherMachine) {
  function("0000:65:00.2", "3");
  files_.write("sys/devices/system/cpu/online", "0-255\n");
  files_.write("sys/devices/system/cpu/present", "0-255\n");
  EXPECT_EQ(verdict(with_function("0000:65:00.2"), set_of({3}), {}, 1).kind, TOPOLET_VERDICT_ABSTAIN);
}

TEST_F(LateDevices, AreUsedAndKnownAgainWhereTheEnvironmentIsNot) {
  function("0000:65:00.2", "3");
  const Request request(machine_, ledger_, with_function("0000:65:00.2"), 2);
  Plugin plugin(topolet_plugin_v1, host_, options());
  const auto adjusted = plugin.adjust(request, 0, set_of({0, 1}));
  EXPECT_THAT(adjusted.used_devices, IsEmpty()) << "the topology does not show it";
  EXPECT_THAT(adjusted.tags, ElementsAre(Pair("gpu/late-devices", "0000:65:00.2")));
  EXPECT_EQ(verdict({.tags = {{"gpu/late-devices", "0000:65:00.2"}}}, set_of({3}), {}, 1).score, 100);
}

TEST_F(LateDevices, AreKeptInAsManyTagsAsTheyNeed) {
  std::string all;
  for (int i = 10; i < 50; ++i) {
    const std::string address = "0000:65:" + std::to_string(i) + ".2";
    function(address, "3");
    all += (all.empty() ? "" : ",") + address;
  }
  const Request request(machine_, ledger_, with_function(all), 2);
  Plugin plugin(topolet_plugin_v1, host_, options());
  const auto tags = plugin.adjust(request, 0, set_of({0, 1})).tags;
  EXPECT_THAT(tags, SizeIs(3));
  const Container again{.tags = {tags.begin(), tags.end()}};
  EXPECT_THAT(verdict(again, set_of({3}), {}, 1).reason, HasSubstr("40 of 40 devices are local"));
}

TEST_F(LateDevices, ThatAreNotThereAreNotNamed) {
  const Verdict missing = verdict(with_function("0000:65:00.7"), set_of({0}), {}, 1);
  EXPECT_EQ(missing.kind, TOPOLET_VERDICT_ABSTAIN);
  EXPECT_THAT(missing.reason, Not(HasSubstr("65:00.7"))) << "a value is a secret";
  const Verdict path = verdict({.used_devices = {"../../../dev", "/dev"}}, set_of({0}), {}, 1);
  EXPECT_EQ(path.kind, TOPOLET_VERDICT_ABSTAIN);
}

TEST_F(LateDevices, OfTheTopologyAreWhereItHasThem) {
  machine_.device({.name = "eth0", .address = "0000:65:00.2", .nodes = set_of({2}), .kind = TOPOLET_OS_DEVICE_NETWORK});
  function("0000:65:00.2", "3");
  EXPECT_EQ(verdict(with_function("0000:65:00.2"), set_of({2}), {}, 1).score, 100);
}

TEST_F(LateDevices, CanBeNamedByAnotherKindOfTheOption) {
  function("0000:65:00.2", "3");
  EXPECT_EQ(verdict({.env = {{"MY_FUNCTION", "0000:65:00.2"}}}, set_of({3}), {{"devices", "mine: env=MY_*"}}, 1).score,
            100);
}

}  // namespace
}  // namespace topolet::gpu
