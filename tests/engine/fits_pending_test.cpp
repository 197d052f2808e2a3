// Where pending containers are taken to go: where they were before, with their pods, in their zones, near their
// devices.
#include <gmock/gmock.h>

#include "core/engine/planning/device_nodes.hpp"
#include "tests/engine/fits_test.hpp"

namespace topolet::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

using Node = std::pair<std::uint32_t, std::uint32_t>;

TEST_F(FitsTest, PlacesAPendingContainerWhereItWasBefore) {
  rules_.min_shared_cpus = 0;
  Pod pod = pod_of("p");
  pod.former["p"] = {CpuSet::range(8, 11), {}};
  placement::Workload again = guaranteed("p", 4);
  again.key.sandbox_id = "";
  EXPECT_THAT(fits(ledger({}, {pod}), {again}), ElementsAre(Node(0, 8), Node(1, 4)));
}

TEST_F(FitsTest, KeepsPendingPodsTogetherAsCreatesDo) {
  std::vector<NodeSet> seen;
  const Placer placer({topology_, placement::make_candidates(*topology_, topology_->allowed), rules_,
                       [&seen, policy = policy_](const auto& request, const placement::PlacementRules& rules) {
                         if (request->workload.pod_name == "p") seen.push_back(request->workload.pod_nodes);
                         return decide(*request, rules, {{policy}});
                       }});
  placement::Workload first = guaranteed("p", 2);
  first.key = {"uid", "first", 0, ""};
  placement::Workload second = first;
  second.key.name = "second";
  compute_fits(placer, ledger(), {first, second});
  EXPECT_THAT(seen, ElementsAre(NodeSet(), NodeSet())) << "what the pod needs as a whole is not known";
  seen.clear();
  first.pod_demand = first.demand;
  first.pod_demand->cpu_request_milli = 4000;
  second.pod_demand = first.pod_demand;
  placement::Workload of_another_pod = first;
  of_another_pod.key = {"another", "first", 0, ""};
  const Fits fits = compute_fits(placer, ledger(), {first, of_another_pod, second, second});
  ASSERT_THAT(seen, SizeIs(3)) << "nobody is placed twice";
  EXPECT_EQ(seen[0], NodeSet());
  EXPECT_EQ(seen[1], NodeSet());
  EXPECT_FALSE(seen[2].empty());
}

TEST_F(FitsTest, TellsOfAPendingContainerWhoseAnnotationsCannotBeRead) {
  placement::Workload bad = guaranteed("p", 8);
  bad.pod_annotations = {{"topolet.io/cpus", "many"}};
  placement::Workload sharing = guaranteed("q", 8);
  sharing.pod_annotations = {{"topolet.io/cpus", "shared"}};
  EXPECT_THAT(fits(ledger(), {bad, sharing}), ElementsAre(Node(0, 8), Node(1, 8)));
  ASSERT_THAT(last_.unplaced, SizeIs(1));
  EXPECT_EQ(last_.unplaced.front().key, bad.key);
  EXPECT_THAT(last_.unplaced.front().reason, HasSubstr("topolet.io/cpus"));
}

TEST_F(FitsTest, PendingContainersTakeNoMoreThanTheirNamespaceMay) {
  placement::Workload small = guaranteed("p", 1);
  small.demand.cpu_request_milli = small.demand.cpu_limit_milli = 10;
  small.pod_annotations = {{"topolet.io/cpus", "exclusive"}};
  EXPECT_THAT(fits(ledger(), {small}), ElementsAre(Node(0, 8), Node(1, 8)));
  rules_.exclusive_namespaces = {"default"};
  EXPECT_THAT(fits(ledger(), {small}), ElementsAre(Node(0, 7), Node(1, 8)));
}

TEST_F(FitsTest, PlacesPendingContainersInTheirZones) {
  rules_.node_name = "n1";
  placement::Workload pending = guaranteed("p", 2);
  pending.pod_annotations = {{"topolet.io/zone", R"({"v":1,"node":"n1","zones":[1]})"}};
  EXPECT_THAT(fits(ledger(), {pending}), ElementsAre(Node(0, 8), Node(1, 6)));
  rules_.node_name = "n2";
  EXPECT_THAT(fits(ledger(), {pending}), ElementsAre(Node(0, 6), Node(1, 8))) << "it is of another node";
  pending.pod_annotations = {{"topolet.io/zone", "1"}};
  EXPECT_THAT(fits(ledger(), {pending}), ElementsAre(Node(0, 8), Node(1, 8)));
  ASSERT_THAT(last_.unplaced, SizeIs(1));
  EXPECT_THAT(last_.unplaced.front().reason, HasSubstr("topolet.io/zone"));
}

TEST_F(FitsTest, PlacesPendingContainersNearTheirDevicesWhateverTheirZones) {
  rules_.node_name = "n1";
  PendingContainer pending = guaranteed("p", 2);
  pending.workload.pod_annotations = {{"topolet.io/zone", R"({"v":1,"node":"n1","zones":[1]})"}};
  pending.device_nodes = NodeSet{0};
  EXPECT_THAT(fits(ledger(), {pending}), ElementsAre(Node(0, 6), Node(1, 8)));
  pending.device_nodes = NodeSet{7};
  EXPECT_THAT(fits(ledger(), {pending}), ElementsAre(Node(0, 8), Node(1, 6))) << "there is no such node";
  pending.device_nodes = NodeSet{0};
  EXPECT_THAT(fits(ledger({exclusive("a", CpuSet::range(0, 7))}), {pending}), ElementsAre(Node(0, 0), Node(1, 5)))
      << "elsewhere, where it must be, and one CPU stays shared";
}

TEST_F(FitsTest, AZoneHoldsWhereNothingNearerToTheDevicesHasRoom) {
  use("node:3 core:2 pu:2");
  rules_.node_name = "n1";
  rules_.min_shared_cpus = 0;
  PendingContainer pending = guaranteed("p", 2);
  pending.device_nodes = NodeSet{0};
  pending.workload.pod_annotations = {{"topolet.io/zone", R"({"v":1,"node":"n1","zones":[2]})"}};
  EXPECT_THAT(fits(ledger({exclusive("a", CpuSet::range(0, 3))}), {pending}),
              ElementsAre(Node(0, 0), Node(1, 4), Node(2, 2)));
}

TEST_F(FitsTest, AZoneDoesNotYieldToDevicesThatAreNoNearerToOthers) {
  rules_.node_name = "n1";
  for (const std::uint32_t zone : {0U, 1U}) {
    PendingContainer pending = guaranteed("p", 2);
    pending.device_nodes = NodeSet{0, 1};
    pending.workload.pod_annotations = {
        {"topolet.io/zone", R"({"v":1,"node":"n1","zones":[)" + std::to_string(zone) + "]}"}};
    EXPECT_THAT(fits(ledger(), {pending}), ElementsAre(Node(0, zone == 0 ? 6 : 8), Node(1, zone == 1 ? 6 : 8)));
  }
  PendingContainer pending = guaranteed("p", 2);
  pending.device_nodes = NodeSet{0, 1};
  pending.workload.pod_annotations = {{"topolet.io/zone", R"({"v":1,"node":"n1","zones":[0]})"}};
  EXPECT_THAT(fits(ledger({exclusive("a", CpuSet::range(0, 7))}), {pending}), ElementsAre(Node(0, 0), Node(1, 5)));
}

TEST_F(FitsTest, TakesTheNearestNodesWithCpusForDevicesOfANodeWithout) {
  change_machine([](topology::Topology& machine) {
    topology::Node memory;
    memory.os_index = 2;
    memory.memory_only = true;
    machine.nodes.push_back(memory);
    machine.distances = {10, 20, 30, 20, 10, 15, 30, 15, 10};
  });
  EXPECT_EQ(nodes_with_cpus(*topology_, NodeSet{2}), NodeSet{1});
  EXPECT_EQ(nodes_with_cpus(*topology_, NodeSet{0, 2}), (NodeSet{0, 1}));
  EXPECT_TRUE(nodes_with_cpus(*topology_, NodeSet{}).empty());
}

}  // namespace
}  // namespace topolet::engine
