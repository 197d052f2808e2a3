// Nodes with CPUs and without memory, such as dies whose slots are empty.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/simulate/hwloc_xml.hpp"
#include "tests/simulate/smt_nodes.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::simulate {
namespace {

using ::testing::HasSubstr;

class MemorylessNodes : public ::testing::Test {
 protected:
  /// Four nodes of two cores of two threads, CPUs 0-3 and so on. `memory`: GiB of nodes; 0 for none.
  SimulatedNode node(const std::map<unsigned, std::int64_t>& memory, const Flags& flags = {},
                     bool last_is_outside = false) {
    HwlocXml xml;
    for (const auto& [os_index, gib] : memory) xml.memory_bytes[os_index] = gib << 30;
    std::string packages;
    for (unsigned i = 0; i < 4; ++i) {
      const auto os_index = last_is_outside && i == 3 ? std::nullopt : std::optional(i);
      packages += xml.package(i, os_index, {{4 * i, 4 * i + 1}, {4 * i + 2, 4 * i + 3}});
    }
    const std::string file = root_.file("machine.xml");
    std::ofstream(file) << xml.machine(0xffff, last_is_outside ? 7 : 15, packages);
    return SimulatedNode(file, with(flags));
  }

  /// The verdicts on all candidates.
  static std::string reasons(const OperationResult& result) {
    std::string text;
    for (const placement::CandidateOpinions& candidate : result.verdicts->best) {
      for (const auto& opinion : candidate.opinions) text += opinion.reason + '\n';
    }
    return text;
  }

  const std::map<unsigned, std::int64_t> two_of_four_ = {{0, 0}, {1, 16}, {2, 16}, {3, 0}};
  const CpuSet with_memory_ = CpuSet::range(4, 11);

 private:
  const TempDir root_;
};

TEST_F(MemorylessNodes, ComeAfterThoseWithMemory) {
  for (const Flags& flags :
       {Flags(), Flags{"--numa.memory=bind"}, Flags{"--numa.strategy=spread"}, Flags{"--numa.policy=single-numa-node"},
        Flags{"--numa.prefer-closest-numa-nodes=true"}, Flags{"--numa.shared-strategy=packed"}}) {
    SCOPED_TRACE(flags.empty() ? "defaults" : flags.front());
    SimulatedNode machine = node(two_of_four_, flags);
    for (const char* const pod : {"a", "b", "c"}) {
      const OperationResult placed = run(machine, pod, "guaranteed", 2000);
      EXPECT_TRUE(placed.cpus.is_subset_of(with_memory_)) << placed.cpus.to_string() << ' ' << placed.reason;
    }
    const OperationResult shared = run(machine, "shared", "burstable", 500);
    EXPECT_TRUE(shared.cpus.is_subset_of(with_memory_)) << shared.cpus.to_string() << ' ' << shared.reason;
  }
}

TEST_F(MemorylessNodes, AreUsedOnceTheOthersAreFull) {
  SimulatedNode machine = node(two_of_four_, {"--placement.min-shared-cpus=0"});
  EXPECT_EQ(run(machine, "a", "guaranteed", 4000).cpus, CpuSet::range(4, 7));
  EXPECT_EQ(run(machine, "b", "guaranteed", 3000).cpus, CpuSet::range(8, 10));
  EXPECT_EQ(run(machine, "c", "guaranteed", 2000).cpus, CpuSet::range(0, 1)) << "one node comes before memory";
  EXPECT_EQ(run(machine, "d", "guaranteed", 4000).cpus, CpuSet::range(12, 15));
}

TEST_F(MemorylessNodes, AreNotInAWiderSetEither) {
  SimulatedNode machine = node(two_of_four_);
  const OperationResult wide = run(machine, "wide", "guaranteed", 6000);
  EXPECT_TRUE(wide.cpus.is_subset_of(with_memory_)) << wide.cpus.to_string() << ' ' << wide.reason;
  EXPECT_THAT(reasons(wide), HasSubstr("other sets of as many nodes have more nodes with memory of their own"));
}

TEST_F(MemorylessNodes, SaySo) {
  SimulatedNode machine = node(two_of_four_);
  EXPECT_THAT(reasons(run(machine, "a", "guaranteed", 2000)), HasSubstr("it has no memory of its own, unlike others"));
}

TEST_F(MemorylessNodes, AreThoseThatAreKnownToHaveNone) {
  SimulatedNode machine = node({});
  EXPECT_EQ(run(machine, "a", "guaranteed", 2000).cpus, CpuSet::range(0, 1)) << "nobody tells the size of any";
}

TEST_F(MemorylessNodes, IncludeCpusOutsideAnyNode) {
  SimulatedNode machine = node({{0, 16}, {1, 16}, {2, 16}}, {}, true);
  machine.apply(R"({"op":"occupy","cpus":"12-13"})");
  EXPECT_EQ(run(machine, "a", "guaranteed", 2000).cpus, CpuSet::range(0, 1)) << "though they are fuller";
  EXPECT_TRUE(run(machine, "shared", "burstable", 500).cpus.is_subset_of(CpuSet::range(0, 11)));
  SimulatedNode unknown = node({}, {}, true);
  unknown.apply(R"({"op":"occupy","cpus":"12-13"})");
  EXPECT_EQ(run(unknown, "a", "guaranteed", 2000).cpus, CpuSet::range(14, 15)) << "nobody tells where any is";
}

TEST_F(MemorylessNodes, AreNoRefugeFromNodesWithGpus) {
  SimulatedNode machine = node({{0, 0}, {1, 0}, {2, 16}, {3, 0}});
  for (const char* const near : {"0", "1", "2"})
    machine.apply(fmt::format(R"({{"op":"device","path":"/dev/nvidia{0}","kind":"gpu","nodes":"{0}"}})", near));
  machine.apply(R"({"op":"occupy","cpus":"4,8-9"})");
  const OperationResult placed = run(machine, "a", "guaranteed", 2000);
  EXPECT_EQ(placed.cpus, CpuSet::range(10, 11)) << "memory comes before room for others: " << placed.reason;
}

}  // namespace
}  // namespace topolet::simulate
