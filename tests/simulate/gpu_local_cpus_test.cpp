// Devices that hwloc ties to CPUs finer than a node, or without one.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/simulate/gpu_decisions.hpp"

namespace topolet::simulate {
namespace {

using testing::HasSubstr;

class GpuLocalCpus : public GpuDecisions {
 protected:
  /// hwloc's set of CPUs and nodes.
  static std::string sets(unsigned cpus, unsigned nodes) {
    return fmt::format(
        R"( cpuset="0x{0:08x}" complete_cpuset="0x{0:08x}" nodeset="0x{1:08x}" complete_nodeset="0x{1:08x}")", cpus,
        nodes);
  }

  static std::string node(unsigned cpus) {
    return fmt::format(R"(<object type="NUMANode" os_index="0"{} local_memory="8589934592"/>)", sets(cpus, 1));
  }

  /// Four CPUs and a GPU.
  static std::string package(unsigned number, unsigned nodes, const std::string& memory) {
    std::string text =
        fmt::format(R"(<object type="Package" os_index="{}"{}>)", number, sets(0xfU << 4 * number, nodes));
    text += memory;
    for (unsigned cpu = 4 * number; cpu < 4 * number + 4; ++cpu) {
      text += fmt::format(R"(<object type="Core" os_index="{0}"{1}><object type="PU" os_index="{0}"{1}/></object>)",
                          cpu, sets(1U << cpu, nodes));
    }
    return text +
           fmt::format(R"(<object type="Bridge" bridge_type="0-1" depth="0" bridge_pci="0000:[{0}0-{0}f]">)"
                       R"(<object type="PCIDev" pci_busid="0000:{0}1:00.0" pci_type="0302 [10de:20b0] [0000:0000] 00" )"
                       R"(pci_link_speed="0.0"/></object></object>)",
                       number);
  }

  /// hwloc wants a number of its own for each object.
  static std::string numbered(std::string objects) {
    const std::string begin = "<object ";
    int number = 0;
    for (std::size_t at = objects.find(begin); at != std::string::npos; at = objects.find(begin, at + begin.size())) {
      objects.insert(at + begin.size(), fmt::format("gp_index=\"{}\" ", ++number));
    }
    return objects;
  }

  /// Two packages with one node for both, or for the first.
  std::string machine_with_node(bool for_both) const {
    const std::string memory = node(for_both ? 0xff : 0xf);
    const std::string memory_of_both = for_both ? memory : "";
    const std::string objects = R"(<object type="Machine" os_index="0")" + sets(0xff, 1) +
                                R"( allowed_cpuset="0x000000ff" allowed_nodeset="0x00000001">)" + memory_of_both +
                                package(0, 1, for_both ? "" : memory) + package(1, for_both ? 1 : 0, "") + "</object>";
    const std::string xml =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
        "<topology version=\"2.0\">\n" +
        numbered(objects) + "\n</topology>\n";
    return root_.write("one.xml", xml).string();
  }

  std::string cpus_of(const std::string& machine, const std::string& gpus, int cpus,
                      const std::vector<std::string>& more = {}) const {
    std::vector<std::string> options = {"--placement.min-shared-cpus=0"};
    options.insert(options.end(), more.begin(), more.end());
    SimulatedNode node = this->machine(machine.c_str(), options);
    return create(node, "p", env("NVIDIA_VISIBLE_DEVICES", gpus), 1000 * cpus).cpus.to_string();
  }
};

TEST_F(GpuLocalCpus, AreTakenFirstWhereTheyArePartOfANode) {
  const std::string machine = machine_with_node(true);
  EXPECT_EQ(cpus_of(machine, "0", 2), "0-1");
  EXPECT_EQ(cpus_of(machine, "1", 2), "4-5");
  EXPECT_EQ(cpus_of(machine, "1", 4), "4-7");
  EXPECT_EQ(cpus_of(machine, "1", 6), "0-1,4-7");
  EXPECT_EQ(cpus_of(machine, "0,1", 4), "0-1,4-5");
  EXPECT_EQ(cpus_of(machine, "1", 2, {"--gpu.affinity=require", "--numa.full-pcpus-only=true"}), "4-5");
  SimulatedNode node = this->machine(machine.c_str());
  EXPECT_THAT(create(node, "p", env("NVIDIA_VISIBLE_DEVICES", "1")).reason,
              HasSubstr("0000:11:00.0 of NVIDIA_VISIBLE_DEVICES: of its node only CPUs 4-7 are local"));
}

TEST_F(GpuLocalCpus, AreTakenWhereTheyHaveNoNode) {
  const std::string machine = machine_with_node(false);
  EXPECT_EQ(cpus_of(machine, "1", 2), "4-5");
  EXPECT_EQ(cpus_of(machine, "0", 2), "0-1");
  EXPECT_EQ(cpus_of(machine, "1", 6), "0-1,4-7");
  SimulatedNode node = this->machine(machine.c_str(), {"--gpu.affinity=require", "--placement.min-shared-cpus=0"});
  EXPECT_EQ(create(node, "a", env("NVIDIA_VISIBLE_DEVICES", "1"), 4000).cpus.to_string(), "4-7");
  const OperationResult denied = create(node, "b", env("NVIDIA_VISIBLE_DEVICES", "1"));
  EXPECT_EQ(denied.outcome, "denied");
  EXPECT_THAT(
      denied.reason,
      HasSubstr(
          "no free CPU is local to 0000:11:00.0 of NVIDIA_VISIBLE_DEVICES (the local CPUs, 4-7, belong to no node)"));
}

}  // namespace
}  // namespace topolet::simulate
