// Devices in unusual places: on nodes without CPUs, and on machines that lose CPUs.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/simulate/gpu_decisions.hpp"

namespace topolet::simulate {
namespace {

using testing::HasSubstr;
using testing::Not;

class GpuPlaces : public GpuDecisions {
 protected:
  /// A device on the last CPU node, whose CPUs go offline before anything else happens.
  static std::uint32_t take_away_a_node(Simulated& node) {
    const Topology topology = *node.picture().topology;
    const Node* last = nullptr;
    for (const Node& candidate : topology.nodes) last = candidate.memory_only ? last : &candidate;
    node.apply(fmt::format(R"({{"op":"offline","cpus":"{}"}})", last->cpus.to_string()));
    node.apply(fmt::format(R"({{"op":"device","path":"/dev/x0","kind":"gpu","nodes":"{}"}})", last->os_index));
    return last->os_index;
  }
};

TEST_F(GpuPlaces, ArePreferredAsNearAsCanBeWhileTheirOwnCpusAreOffline) {
  Simulated node = machine("64intel64-fakeKNL-SNC4-hybrid.xml");
  const std::uint32_t home = take_away_a_node(node);
  const Outcome placed = create(node, "a", devices("/dev/x0"));
  ASSERT_EQ(placed.outcome, "placed") << placed.reason;
  EXPECT_THAT(placed.reason, HasSubstr(fmt::format("/dev/x0: node {} has no CPU online", home)));
  EXPECT_THAT(placed.reason, Not(HasSubstr("not counted")));
  const auto topology = node.picture().topology;
  const std::uint32_t got = *topology->nodes_of(placed.cpus).begin();
  for (const Node& other : topology->nodes) {
    if (other.memory_only) continue;
    EXPECT_LE(topology->distance(got, home), topology->distance(other.os_index, home)) << other.os_index;
  }
}

TEST_F(GpuPlaces, AreDeniedWhereTheyAreRequiredAndTheirCpusAreOffline) {
  for (const char* const name : {"nvidia-dgx2.xml", "pack:2 numa:2 core:2 pu:1"}) {
    Simulated node = machine(name, {"--gpu.affinity=require"});
    const std::uint32_t home = take_away_a_node(node);
    const Outcome denied = create(node, "a", devices("/dev/x0"));
    EXPECT_EQ(denied.outcome, "denied") << denied.reason;
    EXPECT_THAT(denied.reason, HasSubstr(fmt::format("/dev/x0: node {} has no CPU online", home)));
  }
}

TEST_F(GpuPlaces, AreLocalAgainOnceTheirCpusAreBack) {
  Simulated node = machine("pack:2 numa:2 core:2 pu:1", {"--gpu.affinity=require"});
  take_away_a_node(node);
  node.apply(R"({"op":"online","cpus":"6-7"})");
  EXPECT_EQ(nodes_of(node, create(node, "a", devices("/dev/x0"))), NodeSet{3});
}

}  // namespace
}  // namespace topolet::simulate
