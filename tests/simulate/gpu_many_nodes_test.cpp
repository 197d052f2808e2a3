// Devices of nodes far from each other on machines whose nodes are too many for every combination of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/simulate/gpu_decisions.hpp"

namespace topolet::simulate {
namespace {

using ::testing::HasSubstr;

class GpuOnManyNodes : public GpuDecisions {
 protected:
  /// With a GPU on each of 24 nodes.
  SimulatedNode with_gpus(const std::vector<std::string>& options = {}) const {
    SimulatedNode node = machine("192em64t-24n8c2t.xml", options);
    for (int i = 0; i < 24; ++i) {
      node.apply(fmt::format(R"({{"op":"device","path":"/dev/f{0}","kind":"gpu","nodes":"{0}"}})", i));
    }
    return node;
  }
};

constexpr const char* kFirstAndLast = R"("devices":["/dev/f0","/dev/f23"])";

TEST_F(GpuOnManyNodes, TakesTheVeryNodesOfTheDevices) {
  for (const char* affinity : {"--gpu.affinity=prefer", "--gpu.affinity=require"}) {
    SimulatedNode node = with_gpus({affinity});
    const OperationResult exclusive = create(node, "exclusive", kFirstAndLast, 4000);
    EXPECT_EQ(nodes_of(node, exclusive).to_string(), "0,23") << exclusive.reason;
    EXPECT_THAT(exclusive.reason, HasSubstr("gpu: nodes 0,23: 2 of 2 GPUs are local"));
    const OperationResult shared = create(node, "shared", kFirstAndLast, 500);
    EXPECT_EQ(nodes_of(node, shared).to_string(), "0,23") << shared.reason;
  }
}

TEST_F(GpuOnManyNodes, AddsTheNearestNodesWhereTheseAreTooFew) {
  SimulatedNode node = with_gpus();
  const OperationResult large = create(node, "large", kFirstAndLast, 40000);
  const NodeSet nodes = nodes_of(node, large);
  EXPECT_EQ(nodes.size(), 3U) << large.reason;
  EXPECT_TRUE(NodeSet({0, 23}).is_subset_of(nodes)) << large.reason;
}

TEST_F(GpuOnManyNodes, DeniesWhatWouldLeaveASharedContainerNoPlace) {
  SimulatedNode node = with_gpus({"--gpu.affinity=require"});
  create(node, "shared", kFirstAndLast, 500);
  const OperationResult all = create(node, "all", kFirstAndLast, 32000);
  EXPECT_EQ(all.outcome, "denied");
  EXPECT_THAT(all.reason, HasSubstr("would have none left on nodes 0,23"));
}

}  // namespace
}  // namespace topolet::simulate
