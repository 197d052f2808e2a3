// The plugin through its entry.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <topolet/testing.hpp>

#include "tests/plugins/gpu/tree.hpp"

namespace topolet::gpu {
namespace {

using sdk::testing::Container;
using sdk::testing::FakeHost;
using sdk::testing::Ledger;
using sdk::testing::Machine;
using sdk::testing::Plugin;
using sdk::testing::Request;
using sdk::testing::set_of;
using sdk::testing::Verdict;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class GpuPluginTest : public ::testing::Test {
 protected:
  /// Reads only what a test writes.
  Plugin::Values options(const Plugin::Values& more = {}) const {
    Plugin::Values values = {{"sysfs-root", tree_.path("sys")},
                             {"proc-root", tree_.path("proc")},
                             {"dev-root", tree_.path("dev")},
                             {"cdi-dirs", tree_.path("etc/cdi")}};
    values.insert(values.end(), more.begin(), more.end());
    return values;
  }

  void gpu(std::uint32_t number, const std::string& address, const sdk::Set& nodes, const std::string& bridge = {}) {
    machine_.device({.name = "nvml" + std::to_string(number),
                     .address = address,
                     .nodes = nodes,
                     .info = {{"NVIDIAUUID", "GPU-" + std::to_string(number)}},
                     .bridge = bridge});
  }

  static Container with(const std::string& gpus) { return {.env = {{"NVIDIA_VISIBLE_DEVICES", gpus}}}; }

  Verdict verdict(const Container& container, const sdk::Set& nodes, const Plugin::Values& more = {},
                  std::uint32_t exclusive = 0) {
    const Request request(machine_, ledger_, container, exclusive);
    return Plugin(topolet_plugin_v1, host_, options(more)).score(request)[request.position(nodes)];
  }

  explicit GpuPluginTest(const char* synthetic = "pack:2 numa:2 core:2 pu:1") : machine_(synthetic) {}

  Machine machine_;
  Ledger ledger_{machine_};
  FakeHost host_;
  Tree tree_;
};

TEST_F(GpuPluginTest, SaysHowCloseDevicesAreToEachOther) {
  gpu(0, "0000:41:00.0", set_of({0}), "0000:40:01.0");
  gpu(1, "0000:42:00.0", set_of({0}), "0000:40:01.0");
  gpu(2, "0000:50:00.0", set_of({0}));
  gpu(3, "0000:81:00.0", set_of({1}));
  gpu(4, "0000:c1:00.0", set_of({2}));
  const auto package = set_of({0, 1});
  const auto reason = [&](const char* gpus) { return verdict(with(gpus), package).reason; };
  EXPECT_THAT(reason("0,1"), StartsWith("nodes 0-1: 2 of 2 GPUs local, same PCIe switch; node 2: none, +20"));
  EXPECT_THAT(reason("0,1,2"), StartsWith("nodes 0-1: 3 of 3 GPUs local, same PCIe root;"));
  EXPECT_THAT(reason("0,3"), StartsWith("nodes 0-1: 2 of 2 GPUs local, same package;"));
  EXPECT_THAT(reason("0,4"), StartsWith("nodes 0-1: 1 of 2 GPUs local, +20 distance assumed; node 2: 1 of 2"));
  EXPECT_THAT(verdict(with("0"), set_of({1})).reason, StartsWith("node 1: none, +20 distance assumed, same package;"));
}

TEST_F(GpuPluginTest, ScoresByDistance) {
  machine_.distances({10, 12, 21, 40, 12, 10, 21, 40, 21, 21, 10, 40, 40, 40, 40, 10});
  gpu(0, "0000:41:00.0", set_of({0}));
  EXPECT_EQ(verdict(with("0"), set_of({0})).score, 100);
  EXPECT_EQ(verdict(with("0"), set_of({0, 1})).score, 96);
  EXPECT_EQ(verdict(with("0"), set_of({1})).score, 67);
  EXPECT_EQ(verdict(with("0"), set_of({2})).score, -5);
  EXPECT_EQ(verdict(with("0"), set_of({3})).score, -50);
}

TEST_F(GpuPluginTest, PrefersAmongEqualsTheNodeWhereDevicesAreCloserToEachOther) {
  gpu(0, "0000:41:00.0", set_of({0}));
  gpu(1, "0000:42:00.0", set_of({0}));
  gpu(2, "0000:81:00.0", set_of({2}), "0000:80:01.0");
  gpu(3, "0000:82:00.0", set_of({2}), "0000:80:01.0");
  EXPECT_GT(verdict(with("all"), set_of({2})).score, verdict(with("all"), set_of({0})).score);
}

TEST_F(GpuPluginTest, PrefersAmongEqualsTheSamePackage) {
  gpu(0, "0000:41:00.0", set_of({0}));
  EXPECT_GT(verdict(with("0"), set_of({1})).score, verdict(with("0"), set_of({2})).score);
}

TEST_F(GpuPluginTest, CountsADeviceOnceByWhateverNames) {
  gpu(0, "0000:41:00.0", set_of({0}));
  const Container container{.devices = {"/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"},
                            .cdi_devices = {"nvidia.com/gpu=GPU-0"},
                            .env = {{"NVIDIA_VISIBLE_DEVICES", "0,GPU-0"}}};
  EXPECT_THAT(verdict(container, set_of({0})).reason, StartsWith("node 0: 1 of 1 GPUs local; "));
}

TEST_F(GpuPluginTest, HasNoOpinionOnDevicesOfNoNode) {
  gpu(0, "0000:41:00.0", set_of({0, 1, 2, 3}));
  const Verdict verdict = this->verdict(with("0"), set_of({0}));
  EXPECT_EQ(verdict.kind, TOPOLET_VERDICT_ABSTAIN);
  EXPECT_EQ(verdict.reason, "not counted: NVIDIA_VISIBLE_DEVICES=0: the machine ties it to no node");
}

TEST_F(GpuPluginTest, KnowsADeviceBesideMemoryOfItsOwnByTheNearCpus) {
  Machine machine("pack:2 [numa] [numa] core:2 pu:1");
  std::uint32_t own = 0;
  for (const topolet_node& node : sdk::nodes(machine.view())) own = node.memory_only != 0 ? node.os_index : own;
  machine.device({.name = "nvml0", .address = "0000:41:00.0", .nodes = set_of({own})});
  const Ledger ledger(machine);
  const Request request(machine, ledger, with("0"), 0);
  const auto verdicts = Plugin(topolet_plugin_v1, host_, options()).score(request);
  int full = 0;
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    if (sdk::size_of(request.view().candidates[i].nodes) == 1) full += verdicts[i].score == 100 ? 1 : 0;
  }
  EXPECT_EQ(full, 1);
}

TEST_F(GpuPluginTest, CountsOnlyNodesWithFreeCpus) {
  gpu(0, "0000:41:00.0", set_of({1}));
  ledger_.place_exclusive({.name = "other"}, machine_.cpus_of(set_of({1})));
  const Verdict wide = verdict(with("0"), set_of({0, 1}), {}, 1);
  EXPECT_THAT(wide.reason, StartsWith("nodes 0-1: none, +20 distance assumed, same package, no free CPU on node 1"));
  EXPECT_EQ(verdict(with("0"), set_of({0, 1}), {{"affinity", "require"}}, 1).kind, TOPOLET_VERDICT_REJECT);
}

TEST_F(GpuPluginTest, DoesNotCountMoreNodesThanThereAreCpus) {
  gpu(0, "0000:41:00.0", set_of({0}));
  gpu(1, "0000:81:00.0", set_of({1}));
  EXPECT_GT(verdict(with("0,1"), set_of({0}), {}, 1).score, verdict(with("0,1"), set_of({0, 1}), {}, 1).score);
  EXPECT_LT(verdict(with("0,1"), set_of({0}), {}, 2).score, verdict(with("0,1"), set_of({0, 1}), {}, 2).score);
  // What is required of a node set is that it misses none.
  EXPECT_EQ(verdict(with("0,1"), set_of({0, 1}), {{"affinity", "require"}}, 1).kind, TOPOLET_VERDICT_SCORE);
}

/// "5 of 0-3, 1 of 4-7".
std::string shares_of(const sdk::testing::Picked& picked) {
  std::string text;
  for (const sdk::testing::Share& share : picked.at_least) {
    text += (text.empty() ? "" : ", ") + std::to_string(share.count) + " of " + share.cpus.to_string();
  }
  return text;
}

/// Two packages of two nodes of two cores of two threads; four CPUs to a node.
class GpuDivision : public GpuPluginTest {
 protected:
  GpuDivision() : GpuPluginTest("pack:2 numa:2 core:2 pu:2") {}

  sdk::testing::Picked picked(const Container& container, const sdk::Set& nodes, std::size_t exclusive,
                              const sdk::Set& chosen, const Plugin::Values& more = {},
                              const Plugin::Values& others = {}) {
    Request request(machine_, ledger_, container, static_cast<std::uint32_t>(exclusive));
    request.candidate(nodes);
    return Plugin(topolet_plugin_v1, host_, options(more), others).pick(request, request.position(nodes), chosen);
  }

  std::string shares(const Container& container, const sdk::Set& nodes, std::uint32_t exclusive,
                     const Plugin::Values& others = {}) {
    return shares_of(picked(container, nodes, exclusive, {}, {}, others));
  }

  sdk::testing::Picked said(const Container& container, const sdk::Set& nodes, const sdk::Set& chosen,
                            const char* affinity) {
    return picked(container, nodes, chosen.size(), chosen, {{"affinity", affinity}});
  }

  void take(const sdk::Set& cpus) { ledger_.place_exclusive({.name = "other"}, cpus); }
};

TEST_F(GpuDivision, TakesLocalCpusFirstAndThenTheNearest) {
  gpu(0, "0000:41:00.0", set_of({1}));
  machine_.distances({10, 12, 20, 20, 12, 10, 20, 20, 20, 20, 10, 12, 20, 20, 12, 10});
  EXPECT_EQ(shares(with("0"), set_of({0, 1, 2}), 6), "6 of 4-7, 6 of 0-3");
  EXPECT_EQ(shares(with("0"), set_of({2, 3}), 6), "") << "none is nearer";
  EXPECT_EQ(shares(with("0"), set_of({1}), 3), "") << "one node";
  EXPECT_EQ(shares(with("0"), set_of({0, 1}), 0), "") << "shared";
  EXPECT_EQ(shares({}, set_of({0, 1}), 6), "") << "no device";
}

TEST_F(GpuDivision, SharesByTheDevicesOfANodeInWholeCores) {
  gpu(0, "0000:41:00.0", set_of({0}));
  gpu(1, "0000:81:00.0", set_of({1}));
  gpu(2, "0000:82:00.0", set_of({1}));
  EXPECT_EQ(shares(with("0,1"), set_of({0, 1}), 4), "2 of 0-3, 2 of 4-7");
  EXPECT_EQ(shares(with("0,1,2"), set_of({0, 1}), 6), "4 of 4-7, 2 of 0-3");
  EXPECT_EQ(shares(with("0,1"), set_of({0, 1, 2}), 3), "1 of 0-3, 1 of 4-7, 3 of 0-7");
  EXPECT_EQ(shares(with("0,1,2"), set_of({0, 1}), 1), "1 of 4-7") << "where most devices are";
}

TEST_F(GpuDivision, LeavesCoresWholeWhereNumaDoes) {
  gpu(0, "0000:41:00.0", set_of({0}));
  gpu(1, "0000:81:00.0", set_of({1}));
  take(set_of({0}));
  const Plugin::Values whole = {{"numa.full-pcpus-only", "true"}};
  EXPECT_EQ(shares(with("0"), set_of({0, 1}), 6), "6 of 1-3");
  EXPECT_EQ(shares(with("0"), set_of({0, 1}), 6, whole), "6 of 2-3");
  EXPECT_EQ(shares(with("0,1"), set_of({0, 1}), 4, whole), "2 of 4-7, 2 of 2-3");
  EXPECT_EQ(shares(with("0,1"), set_of({0, 1}), 3, whole), "2 of 4-7, 1 of 2-3");
  EXPECT_EQ(shares(with("0,1"), set_of({0, 1}), 2, whole), "2 of 4-7") << "one core is on one node";
}

TEST_F(GpuDivision, RejectsChosenCpusThatMissADevice) {
  gpu(0, "0000:41:00.0", set_of({1}));
  const auto both = set_of({0, 1});
  EXPECT_EQ(said(with("0"), both, set_of({0, 1}), "require").rejected,
            "affinity require: CPUs 0-1: 0 of 1 GPUs local, where 1 could be");
  EXPECT_EQ(said(with("0"), both, set_of({0, 4}), "require").rejected, "");
  EXPECT_EQ(said(with("0"), both, set_of({0, 1}), "prefer").rejected, "");
  EXPECT_EQ(said(with("0"), both, set_of({0, 1}), "prefer").unmet, "CPUs 0-1: 0 of 1 GPUs local, where 1 could be");
  take(machine_.cpus_of(set_of({1})));
  EXPECT_EQ(said(with("0"), both, set_of({0, 1}), "prefer").unmet, "") << "it could not be better";
}

TEST_F(GpuDivision, CountsTheCpusThatAreLocal) {
  gpu(0, "0000:41:00.0", set_of({1}));
  take(set_of({4, 5, 6}));
  const Verdict wide = verdict(with("0"), set_of({0, 1}), {}, 4);
  EXPECT_THAT(wide.reason, StartsWith("nodes 0-1: 1 of 1 GPUs local to 1 of 4 CPUs; "));
  EXPECT_EQ(wide.score, 25) << "a quarter at 100, the others half as much";
  EXPECT_EQ(verdict(with("0"), set_of({0, 1}), {}, 1).score, 96);
}

TEST_F(GpuPluginTest, KeepsNodesOfGpusFree) {
  gpu(0, "0000:41:00.0", set_of({0}));
  machine_.device({.name = "eth0", .address = "0000:81:00.0", .nodes = set_of({1}), .kind = TOPOLET_OS_DEVICE_NETWORK});
  const Plugin::Values keep = {{"keep-free", "true"}};
  EXPECT_EQ(verdict({}, set_of({0}), keep).score, -15);
  EXPECT_EQ(verdict({}, set_of({0}), keep).reason, "node 0: GPUs of node 0 are kept free");
  EXPECT_EQ(verdict({}, set_of({1}), keep).score, 15);
  EXPECT_EQ(verdict({}, set_of({0, 1}), keep).score, -7);
  EXPECT_EQ(verdict({}, set_of({1}), {}).reason, "");
  EXPECT_EQ(verdict(with("0"), set_of({0}), keep).score, 100);
  ledger_.place_shared({.name = "other", .cpu_request_milli = 1500}, machine_.cpus_of(set_of({1})));
  EXPECT_EQ(verdict({.cpu_request_milli = 600}, set_of({1}), keep).reason, "node 1: no GPUs, but no room either");
}

TEST_F(GpuPluginTest, ReadsSpecsAndDevicesAnewWhenTheyChange) {
  gpu(8, "0000:41:00.0", set_of({2}));
  Plugin plugin(topolet_plugin_v1, host_, options());
  const Container container{.devices = {"/dev/nvme5n1"}, .cdi_devices = {"a/b=x"}};
  const Request request(machine_, ledger_, container, 0);
  EXPECT_THAT(plugin.score(request)[2].reason, HasSubstr("a/b=x: no CDI spec has it"));
  tree_.write("etc/cdi/x.json",
              R"({"kind":"a/b","devices":[{"name":"x","containerEdits":{"env":["NVIDIA_VISIBLE_DEVICES=8"]}}]})");
  tree_.device("block", "259:0", "0000:42:00.0", "nvme/nvme5/nvme5n1", "nvme5n1", 2);
  EXPECT_THAT(plugin.score(request)[2].reason, HasSubstr("a/b=x: no CDI spec has it")) << "files are read in tick only";
  plugin.tick(machine_, ledger_, 1000);
  EXPECT_THAT(plugin.score(request)[2].reason, StartsWith("node 2: 2 of 2 devices local, same node;"));
}

TEST_F(GpuPluginTest, AsksNvmlForMigDevices) {
  gpu(0, "0000:41:00.0", set_of({0}));
  gpu(1, "0000:c1:00.0", set_of({3}));
  const Plugin::Values nvml = {{"nvml-library", TOPOLET_FAKE_NVML}};
  EXPECT_EQ(verdict(with("MIG-slice"), set_of({3}), nvml).score, 100);
  EXPECT_EQ(verdict({.devices = {"/dev/nvidia0"}}, set_of({3}), nvml).score, 100) << "minor 0 has index 1";
  EXPECT_THAT(verdict(with("MIG-slice"), set_of({3}), {{"nvml-library", "libnone.so"}}).reason,
              HasSubstr("which GPU this MIG device is of is not known: there is no libnone.so"));
}

TEST_F(GpuPluginTest, TellsNoValueOfAVariableThatOnlyAPatternNames) {
  const Plugin::Values table = {{"devices", "vf: env=P* pci=item; card: path=/dev/card* env=CARD"}};
  const Container container{.env = {{"PASSWORD", "hunter2"}, {"CARD", "7"}, {"SECRET", "hunter2"}}};
  const std::string reason = verdict(container, set_of({0}), table).reason;
  EXPECT_THAT(reason, HasSubstr("PASSWORD: no PCI device is known for it"));
  EXPECT_THAT(reason, HasSubstr("CARD=7: no PCI device is known for it"));
  EXPECT_EQ(reason.find("hunter2"), std::string::npos);
}

TEST_F(GpuPluginTest, RefusesATableThatItCannotRead) {
  try {
    Plugin plugin(topolet_plugin_v1, host_, options({{"devices", "shoe"}}));
    FAIL() << "it started";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(),
                 "create failed: option devices: shoe: it should read NAME: path=PATTERN env=VARIABLE pci=HOW");
  }
}

}  // namespace
}  // namespace topolet::gpu
