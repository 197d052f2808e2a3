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
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
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
  EXPECT_EQ(verdict(with("0"), set_of({0, 1})).score, 99);
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
  EXPECT_EQ(verdict(with("0"), set_of({0, 1}), {}, 1).score, 99);
}

TEST_F(GpuPluginTest, KeepsNodesOfGpusFree) {
  gpu(0, "0000:41:00.0", set_of({0}));
  machine_.device({.name = "eth0", .address = "0000:81:00.0", .nodes = set_of({1}), .kind = TOPOLET_OS_DEVICE_NETWORK});
  const Plugin::Values keep = {{"keep-free", "true"}};
  EXPECT_EQ(verdict({}, set_of({0}), keep).score, -4);
  EXPECT_EQ(verdict({}, set_of({0}), keep).reason, "node 0: GPUs of node 0 are kept free");
  EXPECT_EQ(verdict({}, set_of({1}), keep).score, 4);
  EXPECT_EQ(verdict({}, set_of({0, 1}), keep).score, -2);
  EXPECT_EQ(verdict({}, set_of({1}), {}).reason, "");
  EXPECT_EQ(verdict(with("0"), set_of({0}), keep).score, 100);
  ledger_.place_shared({.name = "other", .cpu_request_milli = 1500}, machine_.cpus_of(set_of({1})));
  EXPECT_EQ(verdict({.cpu_request_milli = 600}, set_of({1}), keep).reason, "node 1: no GPUs, but no room either");
}

TEST_F(GpuDivision, KeepsAsManyCpusAsItCanOffTheNodesOfGpus) {
  gpu(0, "0000:41:00.0", set_of({0}));
  gpu(1, "0000:81:00.0", set_of({2}));
  gpu(2, "0000:c1:00.0", set_of({3}));
  take(set_of({0, 8, 9}));
  const Plugin::Values keep = {{"keep-free", "true"}};
  const auto shares = [&](const sdk::Set& nodes, std::size_t exclusive, const Plugin::Values& more) {
    return shares_of(picked({}, nodes, exclusive, {}, more));
  };
  EXPECT_EQ(shares(set_of({0, 1}), 6, keep), "6 of 4-7");
  EXPECT_EQ(shares(set_of({0, 1}), 6, {}), "");
  EXPECT_EQ(shares(set_of({0, 2}), 4, keep), "4 of 1-3") << "all on one node, if not all away";
  EXPECT_EQ(shares(set_of({0, 1, 2, 3}), 4, keep), "4 of 4-7");
  EXPECT_EQ(shares(set_of({0, 1, 2, 3}), 6, keep), "6 of 4-7, 6 of 4-7,10-11") << "the fullest that holds the rest";
  EXPECT_EQ(shares(set_of({0, 1, 2, 3}), 10, keep), "10 of 4-7, 10 of 4-7,12-15, 10 of 4-7,10-15");
  EXPECT_EQ(shares_of(picked(with("1"), set_of({1, 2}), 4, {}, keep)), "4 of 10-11");
}

TEST_F(GpuDivision, PrefersNodesWhereMostCpusAreOffTheNodesOfGpus) {
  gpu(0, "0000:41:00.0", set_of({0}));
  gpu(1, "0000:81:00.0", set_of({2}));
  gpu(2, "0000:c1:00.0", set_of({3}));
  const Plugin::Values keep = {{"keep-free", "true"}};
  EXPECT_EQ(verdict({}, set_of({0, 1}), keep, 5).reason,
            "nodes 0-1: room for 4 of 5 CPUs away from the GPUs of nodes 0,2-3");
  EXPECT_EQ(verdict({}, set_of({0, 1}), keep, 5).score, -1);
  EXPECT_EQ(verdict({}, set_of({2, 3}), keep, 5).score, -4);
  EXPECT_EQ(verdict({}, set_of({2, 3}), keep, 5).reason, "nodes 2-3: no room away from the GPUs of nodes 0,2-3");
  EXPECT_EQ(verdict({}, set_of({0, 1}), keep, 4).score, 0) << "there is room for all of it";
  EXPECT_EQ(verdict({.cpu_request_milli = 5000}, set_of({0, 1}), keep).reason,
            "nodes 0-1: room for a part away from the GPUs of nodes 0,2-3");
  take(machine_.cpus_of(set_of({1})));
  EXPECT_EQ(verdict({}, set_of({0, 1}), keep, 5).kind, TOPOLET_VERDICT_ABSTAIN);
  EXPECT_EQ(verdict({}, set_of({0, 1}), keep, 5).reason, "no room away from the GPUs of nodes 0,2-3");
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
  const auto has_both = [&] {
    return plugin.score(request)[2].reason.starts_with("node 2: 2 of 2 devices local, same node;");
  };
  for (int ticks = 0; ticks < 1000 && !has_both(); ++ticks) plugin.tick(machine_, ledger_, 1000);
  EXPECT_TRUE(has_both()) << plugin.score(request)[2].reason;
}

TEST_F(GpuPluginTest, TakesWhatIsSlowToReadWithALaterTick) {
  gpu(8, "0000:41:00.0", set_of({2}));
  Plugin plugin(topolet_plugin_v1, host_, options());
  const Request request(machine_, ledger_, {.cdi_devices = {"a/last=x"}}, 0);
  for (int i = 0; i < 4000; ++i) {
    tree_.write("etc/cdi/" + std::to_string(i) + ".json",
                R"({"kind":"a/b)" + std::to_string(i) +
                    R"(","devices":[{"name":"x","containerEdits":{"env":["NVIDIA_VISIBLE_DEVICES=8"]}}]})");
  }
  tree_.write("etc/cdi/last.json",
              R"({"kind":"a/last","devices":[{"name":"x","containerEdits":{"env":["NVIDIA_VISIBLE_DEVICES=8"]}}]})");
  int ticks = 0;
  while (plugin.score(request)[2].score != 100 && ++ticks < 3000) plugin.tick(machine_, ledger_, 1000);
  EXPECT_EQ(plugin.score(request)[2].score, 100);
  EXPECT_GT(ticks, 1) << "the first tick waited for all of them";
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

TEST_F(GpuPluginTest, SurvivesSpecsThatNameThemselves) {
  gpu(0, "0000:41:00.0", set_of({0}));
  tree_.write("etc/cdi/x.json", R"({"kind":"nvidia.com/gpu","devices":[
      {"name":"0","containerEdits":{"env":["NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=0"]}},
      {"name":"a","containerEdits":{"env":["NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=b"]}},
      {"name":"b","containerEdits":{"env":["NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=a"]}}]})");
  EXPECT_EQ(verdict({.cdi_devices = {"nvidia.com/gpu=0"}}, set_of({0})).score, 100);
  EXPECT_THAT(verdict({.cdi_devices = {"nvidia.com/gpu=a"}}, set_of({0})).reason, HasSubstr("gpu=b: no device node"));
}

TEST_F(GpuPluginTest, LooksUpEachNameOnceAndNotEverything) {
  gpu(0, "0000:41:00.0", set_of({0}));
  std::string numbers;
  std::string same;
  for (int i = 0; i < 5000; ++i) {
    numbers += std::to_string(i) + ',';
    same += " 0 ,";
  }
  EXPECT_THAT(verdict(with(numbers), set_of({0})).reason,
              HasSubstr("; not counted: what it names beyond the first 1024; not counted: NVIDIA_VISIBLE_DEVICES=1: "));
  EXPECT_THAT(verdict(with(same), set_of({0})).reason, Not(HasSubstr("beyond")));
  std::string ranges;
  for (int i = 0; i < 900; ++i) ranges += "0-" + std::to_string(1000 - i) + ',';
  EXPECT_THAT(verdict({.env = {{"VA_VISIBLE_DEVICES", ranges}}}, set_of({0})).reason,
              HasSubstr("what it names beyond the first 1024"));
}

TEST_F(GpuPluginTest, TakesASpecsVariablesForTheContainers) {
  gpu(0, "0000:41:00.0", set_of({0}));
  gpu(1, "0000:81:00.0", set_of({1}));
  tree_.write("etc/cdi/x.json", R"({"kind":"nvidia.com/gpu","containerEdits":{"env":["NVIDIA_VISIBLE_DEVICES=void"]},
      "devices":[{"name":"0","containerEdits":{"deviceNodes":[{"path":"/dev/nvidia0"}]}},
                 {"name":"1"},
                 {"name":"x","containerEdits":{"deviceNodes":[{"path":"/dev/nvidia-x"}]}},
                 {"name":"y","containerEdits":{"deviceNodes":[{"path":"/dev/nvidia77"}]}}]})");
  const auto reason = [&](const char* device, const char* own) {
    const Container container{.cdi_devices = {device}, .env = {{"NVIDIA_VISIBLE_DEVICES", own}}};
    return verdict(container, set_of({0})).reason;
  };
  EXPECT_THAT(reason("nvidia.com/gpu=0", "all"), StartsWith("node 0: 1 of 1 GPUs local; "));
  EXPECT_THAT(reason("nvidia.com/gpu=1", "all"), StartsWith("node 0: none, ")) << "by its name";
  for (const char* const unknown : {"nvidia.com/gpu=x", "nvidia.com/gpu=y"}) {
    EXPECT_THAT(reason(unknown, "0"), StartsWith("node 0: 1 of 1 GPUs local; ")) << "better than nothing";
  }
}

TEST_F(GpuPluginTest, SaysNothingOfASecondSpecDeviceWithTheSameGpu) {
  gpu(0, "0000:41:00.0", set_of({0}));
  tree_.write("etc/cdi/x.json", R"({"kind":"a/b","containerEdits":{"env":["NVIDIA_VISIBLE_DEVICES=0"]},
      "devices":[{"name":"x"},{"name":"y"}]})");
  EXPECT_THAT(verdict({.cdi_devices = {"a/b=x", "a/b=y"}}, set_of({0})).reason, Not(HasSubstr("not counted")));
}

TEST_F(GpuPluginTest, KnowsAGpuByTheBeginningOfItsUuid) {
  machine_.device(
      {.name = "nvml0", .address = "0000:41:00.0", .nodes = set_of({1}), .info = {{"NVIDIAUUID", "GPU-ac1a8e86-51"}}});
  EXPECT_EQ(verdict(with("GPU-ac1a"), set_of({1})).score, 100);
  EXPECT_EQ(verdict(with("GPU-AC1A8E86-51"), set_of({1})).score, 100);
  for (const char* const other : {"GPU-", "GPU-ac1a8e86-518", "GPU-b"}) {
    EXPECT_THAT(verdict(with(other), set_of({1})).reason, HasSubstr("no such GPU is known")) << other;
  }
}

TEST_F(GpuPluginTest, KnowsAPathInOtherSpellings) {
  gpu(0, "0000:41:00.0", set_of({1}));
  tree_.device("char", "226:0", "0000:41:00.0", "drm/card0", "dri/card0", 1);
  tree_.write("dev/dri/card0", "");
  tree_.link("dev/graphics", "dri");
  for (const char* const path : {"/dev//nvidia0", "/dev/dri/../nvidia0", "/run/nvidia/driver/dev/nvidia0",
                                 "/dev/graphics", "/dev/dri/", "/dev/./dri/card0"}) {
    EXPECT_EQ(verdict({.devices = {path}}, set_of({1})).score, 100) << path;
  }
  for (const char* const path :
       {"/dev", "/dev/", "/", "", "dev/nvidia0", "/dev/../nvidia0", "/dev/fuse", "/dev/nvidiactl"}) {
    EXPECT_EQ(verdict({.devices = {path}}, set_of({1})).reason, "") << path;
  }
}

TEST_F(GpuPluginTest, FollowsALinkThatIsCalledLikeAnotherDevice) {
  gpu(0, "0000:41:00.0", set_of({0}));
  gpu(1, "0000:81:00.0", set_of({1}));
  tree_.write("dev/nvidia1", "");
  tree_.link("dev/nvidia0", "nvidia1");
  EXPECT_EQ(verdict({.devices = {"/dev/nvidia0"}}, set_of({1})).score, 100);
}

TEST_F(GpuPluginTest, ReadsTheAddressesOfASecondVariableInJson) {
  machine_.device({.name = "eth0", .address = "0000:41:00.0", .nodes = set_of({1}), .kind = TOPOLET_OS_DEVICE_NETWORK});
  const Plugin::Values table = {{"devices", "vf: env=PCIDEVICE_* pci=item"}};
  const std::string json = R"({"0000:41:00.0":{"generic":{"deviceID":"0000:41:00.0"},"extra":{"mac":"1,2"}}})";
  const Container container{.env = {{"PCIDEVICE_VF", "0000:41:00.0"}, {"PCIDEVICE_VF_INFO", json}}};
  const std::string reason = verdict(container, set_of({1}), table).reason;
  EXPECT_THAT(reason, StartsWith("node 1: 1 of 1 devices local; "));
  EXPECT_THAT(reason, Not(HasSubstr("not counted")));
}

TEST_F(GpuPluginTest, NamesAFaultySpecWhole) {
  const std::string name = "k8s.gpu.vendor.com-claim_0f1b2c3d-0f1b-0f1b-0f1b-0f1b2c3d4e5f-and-so-on\n.json";
  tree_.write("etc/cdi/" + name, "{");
  EXPECT_THAT(verdict({.cdi_devices = {"a/b=x"}}, set_of({0})).reason,
              EndsWith("-and-so-on?.json: it is not JSON, though it begins like it"));
}

TEST_F(GpuPluginTest, SaysWhatIsNoDeviceAndWhatIsNotFound) {
  const auto reason = [&](const char* path) { return verdict({.devices = {path}}, set_of({0})).reason; };
  for (const char* const path : {"/dev/nvme7n1", "/dev/vfio/7", "/dev/nvidia7", "/dev/dri/card7", "/dev/vacc7"}) {
    EXPECT_EQ(reason(path), "not counted: " + std::string(path) + ": no PCI device is known for it");
  }
  for (const char* const path : {"/dev/nvme-fabrics", "/dev/vfio/vfio", "/dev/nvidia-caps/nvidia-cap1",
                                 "/dev/nvidia-nvswitch0", "/dev/infiniband/rdma_cm", "/dev/kfd", "/dev/loop0"}) {
    EXPECT_EQ(reason(path), "");
  }
}

TEST_F(GpuPluginTest, SaysWhatATableNamesInVain) {
  const Plugin::Values table = {{"devices", "n: path=/dev/n env=N pci=node:9; a: path=/dev/a pci=address:77:00.0"}};
  EXPECT_EQ(verdict({.devices = {"/dev/n", "/dev/a"}, .env = {{"N", "0"}}}, set_of({0}), table).reason,
            "not counted: /dev/n: the machine has no node 9; not counted: /dev/a: the machine has no PCI device "
            "0000:77:00.0; not counted: N=0: the machine has no node 9");
}

TEST_F(GpuPluginTest, KnowsAllOfAKindWhateverTheyAreCalled) {
  machine_.device({.name = "/dev/acc_a", .address = "0000:41:00.0", .nodes = set_of({1})});
  tree_.device("char", "240:0", "0000:42:00.0", "acc/b", "acc_b", 1);
  const Plugin::Values table = {{"devices", "acc: path=/dev/acc_* env=ACC"}};
  EXPECT_THAT(verdict({.env = {{"ACC", "all"}}}, set_of({1}), table).reason, StartsWith("node 1: 2 of 2 "));
  EXPECT_EQ(verdict({.env = {{"VA_VISIBLE_DEVICES", "all"}}}, set_of({1})).reason,
            "not counted: VA_VISIBLE_DEVICES=all: no device of this kind is known");
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
