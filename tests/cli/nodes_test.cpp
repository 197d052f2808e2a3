// `topolet nodes` on databases that `topolet simulate` has kept, of machines with and without devices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/run_topolet.hpp"

namespace topolet::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// On the recorded machine "train" gets CPUs 0 and 12 of node 0 and "write" CPU 1 of node 1; sda is on node 0, and the
/// GPU on node 1.
constexpr const char* kTwoContainers = R"({"op":"run_pod","pod":"u1","name":"train","qos":"guaranteed"}
{"op":"create","pod":"u1","container":"main","cpu_request_milli":2000,"cpu_limit_milli":2000,"devices":["/dev/sda"],"cdi_devices":["vendor.com/gpu=0000:14:00.0","nvidia.com/gpu=0"],"env":{"NVIDIA_VISIBLE_DEVICES":"GPU-of-the-environment"}}
{"op":"clock","advance_s":60}
{"op":"run_pod","pod":"u2","name":"write","qos":"guaranteed"}
{"op":"create","pod":"u2","container":"main","cpu_request_milli":1000,"cpu_limit_milli":1000,"devices":["/dev/sda"]}
)";

class NodesTest : public ::testing::Test {
 protected:
  void simulate(const std::string& machine) const {
    state_.directory().write("story.jsonl", kTwoContainers);
    const Said said = testing::simulate(
        {"--topology", machine, "--workload", state_.file("story.jsonl"), "--state-dir", state_.path()});
    ASSERT_EQ(said.code, 0) << said.text;
  }

  std::string text(std::vector<std::string> words) const {
    const Said said = state_.topolet(std::move(words));
    EXPECT_EQ(said.code, 0) << said.text;
    return said.text;
  }

  static std::string recorded(const std::string& file) { return TOPOLET_TEST_DATA "/topologies/" + file; }

  StateDir state_;
};

json device_named(const json& node, const std::string& name) {
  for (const json& device : node["devices"]) {
    if (device["name"] == name) return device;
  }
  return {};
}

TEST_F(NodesTest, ListsDevicesAndWhoNamesThem) {
  simulate(recorded("24em64t-2n6c2t-pci.xml"));
  const json nodes = json::parse(text({"nodes", "--json"}));
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_EQ(nodes[0]["devices"].size(), 8U);
  EXPECT_EQ(nodes[1]["devices"].size(), 2U);
  EXPECT_THAT(device_named(nodes[0], "sda")["containers"], ElementsAre("default/train/main", "default/write/main"));
  EXPECT_EQ(device_named(nodes[0], "mlx4_0"), json({{"name", "mlx4_0"},
                                                    {"address", "0000:05:00.0"},
                                                    {"kind", "openfabrics"},
                                                    {"nodes", "0"},
                                                    {"containers", json::array()}}));
  EXPECT_THAT(device_named(nodes[1], "0000:14:00.0")["containers"], ElementsAre("default/train/main"));
  const json before = json::parse(text({"nodes", "--json", "--at", "2026-01-01T00:00:30Z"}));
  EXPECT_THAT(device_named(before[0], "sda")["containers"], ElementsAre("default/train/main"));
}

TEST_F(NodesTest, ShowsPeopleALineForEachPciDevice) {
  simulate(recorded("24em64t-2n6c2t-pci.xml"));
  EXPECT_THAT(
      text({"nodes"}),
      AllOf(HasSubstr("\n\nNODE  PCI ADDRESS   KIND                  DEVICES            NAMED BY\n"
                      "0     0000:00:1f.2  block                 sda                default/train/main, default/write"),
            HasSubstr("\n0     0000:05:00.0  network, openfabrics  eth2, ib0, mlx4_0  -\n"),
            HasSubstr("\n1     0000:14:00.0  3d                    -                  default/train/main\n")));
}

TEST_F(NodesTest, PutsDevicesIntoOneFieldOfCsv) {
  simulate(recorded("24em64t-2n6c2t-pci.xml"));
  EXPECT_THAT(text({"nodes", "--format", "csv"}),
              AllOf(HasSubstr(",devices\r\n"), HasSubstr(",\"[{\"\"name\"\":\"\"sda\"\",")));
}

TEST_F(NodesTest, ShowsNoDevicesOfAMachineWithoutAny) {
  simulate("pack:2 numa:1 core:4 pu:2");
  EXPECT_THAT(text({"nodes"}), Not(HasSubstr("PCI ADDRESS")));
  for (const json& node : json::parse(text({"nodes", "--json"}))) EXPECT_THAT(node["devices"], IsEmpty());
}

TEST_F(NodesTest, HasAQueryForDevicesOnOtherNodes) {
  simulate(recorded("24em64t-2n6c2t-pci.xml"));
  EXPECT_EQ(text({"query", "--file", TOPOLET_QUERIES "/devices-elsewhere.sql", "--format", "csv"}),
            "namespace,pod,container,cpus,device,device nodes\r\n"
            "default,train,main,\"0,12\",vendor.com/gpu=0000:14:00.0,1\r\n"
            "default,write,main,1,/dev/sda,0\r\n");
}

}  // namespace
}  // namespace topolet::testing
