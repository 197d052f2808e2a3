// Containers that run and lose their CPUs while no place that all policies agree to is left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/simulate/gpu_decisions.hpp"

namespace topolet::simulate {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

/// Two packages with four CPUs each, no two of which share a core. Device /dev/x0 is on node 0, and policies reject any
/// other node for containers that have it.
class Squeeze : public GpuDecisions {
 protected:
  static constexpr const char* kTwoNodes = "pack:2 numa:1 core:4 pu:1";
  static constexpr const char* kWithDevice = R"("devices":["/dev/x0"])";

  SimulatedNode two_nodes(std::vector<std::string> more = {}) const {
    more.emplace_back("--gpu.affinity=require");
    SimulatedNode node = machine(kTwoNodes, more);
    node.apply(R"({"op":"device","path":"/dev/x0","kind":"gpu","nodes":"0"})");
    return node;
  }

  static OperationResult offline(SimulatedNode& node, const std::string& cpus) {
    return node.apply(R"({"op":"offline","cpus":")" + cpus + R"("})");
  }
  static OperationResult online(SimulatedNode& node, const std::string& cpus) {
    return node.apply(R"({"op":"online","cpus":")" + cpus + R"("})");
  }
  /// "MODE CPUs".
  static std::string held_by(SimulatedNode& node, const std::string& pod) {
    for (const placement::LedgerEntry& entry : node.snapshot().ledger.entries) {
      if (entry.key.pod_uid != pod) continue;
      return std::string(to_string(entry.placement.mode)) + ' ' + entry.placement.cpus.to_string();
    }
    return "nothing";
  }
  static std::string reason_of(const OperationResult& result, const std::string& pod) {
    for (const auto& changed : result.changed) {
      if (changed.pod == pod) return changed.reason;
    }
    return "it has not changed";
  }
};

TEST_F(Squeeze, GivesAnExclusiveContainerTheNearestCpusThoughAPolicyRejectsThem) {
  SimulatedNode node = two_nodes();
  ASSERT_EQ(create(node, "own", kWithDevice, 2000).outcome, "placed");
  EXPECT_EQ(held_by(node, "own"), "exclusive 0-1");
  const OperationResult gone = offline(node, "0-3");
  EXPECT_EQ(held_by(node, "own"), "exclusive 4-5");
  EXPECT_THAT(reason_of(gone, "own"),
              AllOf(HasSubstr("CPUs 0-1 are no longer available; wanted: 2 exclusive CPUs near node 0 ("),
                    HasSubstr("as it runs, it gets the nearest CPUs nevertheless: ")));
  const OperationResult back = online(node, "0-3");
  EXPECT_EQ(held_by(node, "own"), "exclusive 0-1");
  EXPECT_THAT(reason_of(back, "own"), HasSubstr("it returns to the CPUs that it was given when placed, 0-1"));
}

TEST_F(Squeeze, TakesAnyCpusThatThePoliciesAgreeToOnceThereAreSome) {
  SimulatedNode node = two_nodes();
  create(node, "own", kWithDevice, 2000);
  offline(node, "0-3");
  const OperationResult back = online(node, "2-3");
  EXPECT_EQ(held_by(node, "own"), "exclusive 2-3");
  EXPECT_THAT(reason_of(back, "own"), HasSubstr("a place that no policy rejects is available; "));
  online(node, "0-1");
  EXPECT_EQ(held_by(node, "own"), "exclusive 0-1") << "they are what it was given";
}

TEST_F(Squeeze, LetsAnExclusiveContainerShareWhereNoneAreLeftForItAlone) {
  SimulatedNode node = two_nodes({"--placement.min-shared-cpus=4"});
  create(node, "own", kWithDevice, 2000);
  const OperationResult gone = offline(node, "0-3");
  EXPECT_EQ(held_by(node, "own"), "shared 4-7");
  EXPECT_THAT(reason_of(gone, "own"), AllOf(HasSubstr("wanted: 2 exclusive CPUs near node 0 ("),
                                            HasSubstr("it gets the nearest shared CPUs nevertheless: ")));
  online(node, "0-1");
  EXPECT_EQ(held_by(node, "own"), "exclusive 0-1");
}

TEST_F(Squeeze, KeepsTheCpusThatAreLeftRatherThanOthersThatAPolicyRejects) {
  SimulatedNode node = two_nodes({"--numa.policy=single-numa-node"});
  create(node, "own", kWithDevice, 4000);
  EXPECT_EQ(held_by(node, "own"), "exclusive 0-3");
  const OperationResult gone = offline(node, "0,2");
  EXPECT_EQ(held_by(node, "own"), "exclusive 1,3");
  EXPECT_THAT(reason_of(gone, "own"), HasSubstr("it keeps its other CPUs"));
  online(node, "2");
  EXPECT_EQ(held_by(node, "own"), "exclusive 1-3");
  online(node, "0");
  EXPECT_EQ(held_by(node, "own"), "exclusive 0-3");
}

TEST_F(Squeeze, GivesASharedContainerTheNearestSharedCpusThoughAPolicyRejectsThem) {
  SimulatedNode node = two_nodes();
  create(node, "some", kWithDevice, 500);
  EXPECT_EQ(held_by(node, "some"), "shared 0-3");
  const OperationResult gone = offline(node, "0-3");
  EXPECT_EQ(held_by(node, "some"), "shared 4-7");
  EXPECT_THAT(reason_of(gone, "some"), AllOf(HasSubstr("wanted: shared CPUs of 0-3 near node 0 (it cannot be placed: "),
                                             HasSubstr("it gets the nearest shared CPUs nevertheless: ")));
  const OperationResult back = online(node, "2");
  EXPECT_EQ(held_by(node, "some"), "shared 2");
  EXPECT_THAT(reason_of(back, "some"), HasSubstr("it returns to CPUs 0-3"));
  online(node, "0-1,3");
  EXPECT_EQ(held_by(node, "some"), "shared 0-3");
}

TEST_F(Squeeze, ChoosesTheNearestOfManyNodes) {
  const char* const many_nodes = "192em64t-24n8c2t.xml";
  for (const std::uint32_t home : {0U, 9U, 22U}) {
    SCOPED_TRACE(home);
    SimulatedNode node = machine(many_nodes, {"--gpu.affinity=require"});
    node.apply(fmt::format(R"({{"op":"device","path":"/dev/x0","kind":"gpu","nodes":"{}"}})", home));
    ASSERT_EQ(create(node, "own", kWithDevice, 2000).outcome, "placed");
    offline(node, node.snapshot().topology->node(home)->cpus.to_string());
    const Snapshot now = node.snapshot();
    ASSERT_EQ(now.ledger.exclusive.size(), 2U);
    const std::uint32_t got = *now.topology->nodes_of(now.ledger.exclusive).begin();
    for (const topology::Node& other : now.topology->nodes) {
      if (other.memory_only) continue;
      EXPECT_LE(now.topology->distance(got, home), now.topology->distance(other.os_index, home));
    }
  }
}

TEST_F(Squeeze, GoesToReservedCpusWhereNoSharedOneIsLeft) {
  SimulatedNode node("numa:1 core:4 pu:1", {"--placement.reserved-cpus=0"});
  node.besteffort("any");
  node.guaranteed("own", 2);
  EXPECT_EQ(held_by(node, "own"), "exclusive 1-2");
  EXPECT_EQ(held_by(node, "any"), "shared 3");
  const OperationResult gone = offline(node, "3");
  ASSERT_NE(gone.outcome, "error") << gone.reason;
  EXPECT_EQ(held_by(node, "own"), "exclusive 1-2") << "what it has is its own";
  EXPECT_EQ(held_by(node, "any"), "reserved 0");
  EXPECT_THAT(reason_of(gone, "any"),
              AllOf(HasSubstr("none of CPUs 0-3 is left in the shared pool; wanted: shared CPUs of 0-3"),
                    HasSubstr("it gets the nearest reserved CPUs (placement.reserved-cpus): ")));
  const OperationResult all_gone = offline(node, "1-2");
  EXPECT_EQ(held_by(node, "own"), "reserved 0");
  EXPECT_THAT(reason_of(all_gone, "own"),
              AllOf(HasSubstr("wanted: 2 exclusive CPUs"), HasSubstr("it gets the nearest reserved CPUs")));
  EXPECT_EQ(node.besteffort("new").outcome, "denied") << "only those that run may go there";
  const OperationResult back = online(node, "3");
  EXPECT_EQ(held_by(node, "any"), "shared 3");
  EXPECT_THAT(reason_of(back, "any"), HasSubstr("it returns to CPUs 0-3"));
  EXPECT_EQ(held_by(node, "own"), "shared 3");
  EXPECT_THAT(reason_of(back, "own"), HasSubstr("it leaves the reserved CPUs, as shared ones are available again; "));
  online(node, "1-2");
  EXPECT_EQ(held_by(node, "own"), "exclusive 1-2");
  EXPECT_EQ(held_by(node, "any"), "shared 3");
}

TEST_F(Squeeze, IsNotNecessaryWhereACpuCanBeAddedToThoseThatAreLeft) {
  // Two others of one cache are what numa chooses first. But until it has left its CPU, nobody else would have any.
  SimulatedNode node("numa:1 l3:2 core:2 pu:1", {"--plugins.enable=numa"});
  node.guaranteed("own", 2);
  node.besteffort("any");
  EXPECT_EQ(held_by(node, "own"), "exclusive 0-1");
  const OperationResult gone = offline(node, "1");
  EXPECT_EQ(held_by(node, "own"), "exclusive 0,2");
  EXPECT_EQ(held_by(node, "any"), "shared 3");
  EXPECT_THAT(reason_of(gone, "own"),
              AllOf(HasSubstr("CPU 1 is no longer available; numa: "), Not(HasSubstr("wanted"))));
}

TEST_F(Squeeze, LeavesReservedCpusForSharedOnesThatAPolicyRejects) {
  SimulatedNode node = two_nodes({"--placement.reserved-cpus=4"});
  create(node, "some", kWithDevice, 500);
  create(node, "own", kWithDevice, 2000);
  EXPECT_EQ(held_by(node, "some"), "shared 2-3");
  EXPECT_EQ(held_by(node, "own"), "exclusive 0-1");
  offline(node, "0-3,5-7");
  EXPECT_EQ(held_by(node, "some"), "reserved 4");
  EXPECT_EQ(held_by(node, "own"), "reserved 4");
  const OperationResult elsewhere = online(node, "5");
  EXPECT_EQ(held_by(node, "some"), "shared 5");
  EXPECT_THAT(reason_of(elsewhere, "some"),
              AllOf(HasSubstr("it leaves the reserved CPUs"),
                    HasSubstr("wanted: shared CPUs of 0-3 near node 0 (it cannot be placed: "),
                    HasSubstr("it gets the nearest shared CPUs nevertheless: ")));
  EXPECT_EQ(held_by(node, "own"), "shared 5");
  EXPECT_THAT(reason_of(elsewhere, "own"), HasSubstr("wanted: 2 exclusive CPUs near node 0 ("));
  online(node, "2");
  EXPECT_EQ(held_by(node, "some"), "shared 2");
}

TEST_F(Squeeze, LeavesReservedCpusForAnyThatThePoliciesAgreeTo) {
  SimulatedNode node =
      two_nodes({"--placement.reserved-cpus=3", "--numa.policy=single-numa-node", "--numa.shared-strategy=packed"});
  create(node, "some", "", 500);
  EXPECT_EQ(held_by(node, "some"), "shared 0-2");
  offline(node, "0-2,4-7");
  EXPECT_EQ(held_by(node, "some"), "reserved 3");
  const OperationResult elsewhere = online(node, "5");
  EXPECT_EQ(held_by(node, "some"), "shared 5");
  EXPECT_THAT(reason_of(elsewhere, "some"), HasSubstr("a place that no policy rejects is available; "));
}

TEST_F(Squeeze, GoesToReservedCpusOnceThereAreSomeAndReturnsAfterARestart) {
  SimulatedNode node("numa:1 core:4 pu:1", {"--placement.reserved-cpus=0"});
  node.guaranteed("own", 2);
  node.besteffort("any");
  offline(node, "0,3");
  EXPECT_EQ(held_by(node, "any"), "shared 3") << "left to the kernel";
  online(node, "0");
  EXPECT_EQ(held_by(node, "any"), "reserved 0");
  node.apply(R"({"op":"restart"})");
  EXPECT_EQ(held_by(node, "any"), "reserved 0");
  offline(node, "0");
  online(node, "0");
  EXPECT_EQ(held_by(node, "any"), "reserved 0");
  online(node, "3");
  EXPECT_EQ(held_by(node, "any"), "shared 3");
  EXPECT_EQ(held_by(node, "own"), "exclusive 1-2");
}

TEST_F(Squeeze, LeavesContainersToTheKernelWhereNoCpuIsLeftForThem) {
  SimulatedNode node("numa:1 core:3 pu:1");
  node.besteffort("any");
  node.guaranteed("own", 1);
  node.guaranteed("other", 1);
  EXPECT_EQ(held_by(node, "own"), "exclusive 0");
  EXPECT_EQ(held_by(node, "other"), "exclusive 1");
  EXPECT_EQ(held_by(node, "any"), "shared 2");
  const OperationResult gone = offline(node, "2");
  ASSERT_NE(gone.outcome, "error") << gone.reason;
  EXPECT_EQ(held_by(node, "own"), "exclusive 0") << "what it has is its own";
  EXPECT_THAT(reason_of(gone, "any"),
              AllOf(HasSubstr("none of CPUs 0-2 is left in the shared pool; wanted: shared CPUs of 0-2"),
                    HasSubstr("it runs wherever the kernel lets it")));
  EXPECT_THAT(offline(node, "0").changed, SizeIs(1));
  EXPECT_EQ(held_by(node, "own"), "exclusive 0") << "it has it when it is back";
  const OperationResult back = online(node, "2");
  EXPECT_EQ(held_by(node, "any"), "shared 2");
  EXPECT_THAT(reason_of(back, "any"), HasSubstr("available again"));
  EXPECT_EQ(held_by(node, "own"), "shared 2");
  online(node, "0");
  EXPECT_EQ(held_by(node, "own"), "exclusive 0");
  EXPECT_EQ(held_by(node, "any"), "shared 2");
}

TEST_F(Squeeze, IsUndoneAfterARestart) {
  SimulatedNode node = two_nodes();
  create(node, "own", kWithDevice, 2000);
  create(node, "some", kWithDevice, 500);
  offline(node, "0-3");
  node.apply(R"({"op":"restart"})");
  EXPECT_EQ(held_by(node, "own"), "exclusive 4-5");
  EXPECT_EQ(held_by(node, "some"), "shared 6-7");
  online(node, "0-3");
  EXPECT_EQ(held_by(node, "own"), "exclusive 0-1");
  EXPECT_EQ(held_by(node, "some"), "shared 2-3");
}

TEST_F(Squeeze, DeniesNewContainersAsBefore) {
  SimulatedNode node = two_nodes();
  offline(node, "0-3");
  EXPECT_EQ(create(node, "own", kWithDevice, 2000).outcome, "denied");
  SimulatedNode none("numa:1 core:2 pu:1", {"--placement.reserved-cpus=0"});
  offline(none, "1");
  const OperationResult denied = none.besteffort("any");
  EXPECT_EQ(denied.outcome, "denied");
  EXPECT_THAT(denied.reason, HasSubstr("the shared pool has no CPU left"));
}

}  // namespace
}  // namespace topolet::simulate
