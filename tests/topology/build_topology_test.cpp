#include "core/topology/build_topology.hpp"

#include <gtest/gtest.h>

#include "tests/topology/outline.hpp"

namespace topolet::topology {
namespace {

NodeDescription node(std::uint32_t os_index, CpuSet cpus, std::int64_t memory_gib = 64) {
  NodeDescription described;
  described.os_index = os_index;
  described.cpus = std::move(cpus);
  described.memory_bytes = memory_gib << 30U;
  return described;
}

MachineDescription machine(const CpuSet& cpus, std::vector<NodeDescription> nodes) {
  MachineDescription description;
  description.online = cpus;
  description.allowed = cpus;
  description.nodes = std::move(nodes);
  return description;
}

NodeSet cpu_nodes(const Topology& topology) { return topology.nodes_of(topology.online); }

TEST(CpuNode, IsTheOneWhoseSubtypeIsDram) {
  auto hbm = node(0, {0, 1});
  hbm.subtype = "HBM";
  auto dram = node(1, {0, 1});
  dram.subtype = "DRAM";
  const Topology topology = build_topology(machine({0, 1}, {hbm, dram}));
  EXPECT_EQ(cpu_nodes(topology), NodeSet{1});
  EXPECT_TRUE(topology.node(0)->memory_only);
  EXPECT_EQ(topology.node(0)->cpus, (CpuSet{0, 1}));
}

TEST(CpuNode, IsNotTheFarOneByLatency) {
  auto cxl = node(0, {0, 1});
  cxl.latency_ns = 250;
  auto dram = node(1, {0, 1});
  dram.latency_ns = 100;
  EXPECT_EQ(cpu_nodes(build_topology(machine({0, 1}, {cxl, dram}))), NodeSet{1});
}

TEST(CpuNode, IsNotTheFastAndSmallOneByBandwidth) {
  auto hbm = node(0, {0, 1}, 16);
  hbm.bandwidth_mib_s = 90000;
  auto dram = node(1, {0, 1}, 96);
  dram.bandwidth_mib_s = 22500;
  EXPECT_EQ(cpu_nodes(build_topology(machine({0, 1}, {hbm, dram}))), NodeSet{1});
}

TEST(CpuNode, IsDramBetweenHbmAndCxl) {
  auto hbm = node(0, {0, 1}, 64);
  hbm.bandwidth_mib_s = 1000000;
  hbm.latency_ns = 120;
  auto cxl = node(1, {0, 1}, 512);
  cxl.bandwidth_mib_s = 50000;
  cxl.latency_ns = 250;
  auto dram = node(2, {0, 1}, 256);
  dram.bandwidth_mib_s = 300000;
  dram.latency_ns = 100;
  EXPECT_EQ(cpu_nodes(build_topology(machine({0, 1}, {hbm, cxl, dram}))), NodeSet{2});
}

TEST(CpuNode, IsTheFirstByOsIndexWhereNothingElseTells) {
  EXPECT_EQ(cpu_nodes(build_topology(machine({0, 1}, {node(3, {0, 1}), node(9, {0, 1})}))), NodeSet{3});
}

TEST(CpuNode, MayBeHbmWhereThereIsNoDram) {
  auto hbm = node(0, {0, 1});
  hbm.subtype = "HBM";
  EXPECT_EQ(cpu_nodes(build_topology(machine({0, 1}, {hbm}))), NodeSet{0});
}

TEST(CpuNode, IsTheDramAroundItWhereALocalityHoldsHbmOnly) {
  auto dram = node(0, CpuSet::range(0, 3));
  auto hbm = node(1, {0, 1});
  hbm.subtype = "HBM";
  EXPECT_EQ(cpu_nodes(build_topology(machine(CpuSet::range(0, 3), {dram, hbm}))), NodeSet{0});
}

TEST(CpuNode, OfTheSmallestLocalityHasItsCpusFirst) {
  const Topology topology =
      build_topology(machine(CpuSet::range(0, 5), {node(0, CpuSet::range(0, 5)), node(1, {0, 1}), node(2, {2, 3})}));
  EXPECT_EQ(topology.node(1)->cpus, (CpuSet{0, 1}));
  EXPECT_EQ(topology.node(2)->cpus, (CpuSet{2, 3}));
  EXPECT_EQ(topology.node(0)->cpus, (CpuSet{4, 5}));
  EXPECT_FALSE(topology.node(0)->memory_only);
  EXPECT_EQ(topology.pu(3)->node, 2U);
  EXPECT_EQ(topology.pu(4)->node, 0U);
}

TEST(Node, WithoutOnlinePusIsMemoryOnly) {
  MachineDescription description = machine({0, 1}, {node(0, {0, 1}), node(1, {2, 3}), node(2, {})});
  const Topology topology = build_topology(description);
  EXPECT_TRUE(topology.node(1)->memory_only);
  EXPECT_TRUE(topology.node(1)->cpus.empty());
  EXPECT_TRUE(topology.node(2)->memory_only);
  EXPECT_EQ(cpu_nodes(topology), NodeSet{0});
}

TEST(Node, HasNoMemoryIfOthersKnowTheirSize) {
  const Topology topology = build_topology(machine({0, 1}, {node(0, {0}, 64), node(1, {1}, 0)}));
  EXPECT_TRUE(topology.node(0)->has_memory);
  EXPECT_FALSE(topology.node(1)->has_memory);
}

TEST(Node, IsOfUnknownSizeIfNoneKnowsItsSize) {
  const Topology topology = build_topology(machine({0, 1}, {node(0, {0}, 0), node(1, {1}, 0)}));
  EXPECT_TRUE(topology.node(0)->has_memory);
  EXPECT_TRUE(topology.node(1)->has_memory);
  EXPECT_EQ(topology.node(1)->memory_bytes, 0);
}

TEST(Pu, WithoutANodeMakesADomainOfItsOwn) {
  MachineDescription description = machine(CpuSet::range(0, 5), {node(1, {2, 3}), node(7, {4})});
  description.packages = {{4, 5}, {0, 1, 2, 3}};
  EXPECT_EQ(outline(build_topology(description)),
            "online 0-5; allowed 0-5\n"
            "6 cores, 0 L3, 0 dies, 2 packages\n"
            "node 1: cpus 2-3, 65536 MiB\n"
            "node 7: cpus 4, 65536 MiB\n"
            "node domain {}: cpus 0-1,5\n"
            "node domain {1}: cpus 2-3\n"
            "node domain {7}: cpus 4\n"
            "machine domain {1,7}: cpus 0-5\n"
            "assumed distances | 10 20 | 20 10\n");
}

TEST(Pu, KnowsItsPlaceUnderSparseOsIndices) {
  MachineDescription description = machine({8, 9, 104, 105}, {node(0, {8, 9}), node(8, {104, 105})});
  description.cores = {{104, 105}, {8, 9}};
  description.packages = {{8, 9, 104, 105}};
  description.l3s = {{104, 105}};
  const Topology topology = build_topology(description);
  EXPECT_EQ(topology.pu(104)->core, 1U);
  EXPECT_EQ(topology.pu(104)->node, 1U);
  EXPECT_EQ(topology.pu(104)->l3, 0U);
  EXPECT_EQ(topology.pu(8)->l3, kNoPosition);
  EXPECT_EQ(topology.pu(8)->core, 0U);
  EXPECT_EQ(topology.pu(8)->die, kNoPosition);
  EXPECT_EQ(topology.pu(10), nullptr);
  EXPECT_EQ(topology.node(1), nullptr);
}

TEST(Pu, OfflineIsNowhere) {
  MachineDescription description = machine({0, 2}, {node(0, {0, 1}), node(1, {2, 3})});
  description.allowed = CpuSet::range(0, 3);
  description.isolated = {2, 3};
  description.cores = {{0, 1}, {2}, {3}};
  const Topology topology = build_topology(description);
  EXPECT_EQ(topology.pus.size(), 2U);
  EXPECT_EQ(topology.allowed, (CpuSet{0, 2}));
  EXPECT_EQ(topology.isolated, CpuSet{2});
  EXPECT_EQ(topology.cores, (std::vector<CpuSet>{{0}, {2}}));
  EXPECT_EQ(topology.node(1)->cpus, CpuSet{2});
}

TEST(Domains, KeepEachNodeSetOnceAsItsSmallestKind) {
  MachineDescription description =
      machine(CpuSet::range(0, 7), {node(0, CpuSet::range(0, 3)), node(1, CpuSet::range(4, 7))});
  description.dies = {{0, 1}, {2, 3}, CpuSet::range(4, 7)};
  description.packages = {CpuSet::range(0, 7)};
  const Topology topology = build_topology(description);
  ASSERT_EQ(topology.domains.size(), 3U);
  EXPECT_EQ(topology.domains[0].kind, DomainKind::kNode);
  EXPECT_EQ(topology.domains[1].kind, DomainKind::kNode);
  EXPECT_EQ(topology.domains[2].kind, DomainKind::kPackage);
  EXPECT_EQ(topology.domains[2].nodes, (NodeSet{0, 1}));
}

TEST(Distances, AreReadByOsIndex) {
  MachineDescription description = machine({0, 1}, {node(4, {0}), node(9, {1})});
  description.distances = {10, 32, 31, 10};
  const Topology topology = build_topology(description);
  EXPECT_TRUE(topology.distances_known);
  EXPECT_EQ(topology.distance(4, 9), 32U);
  EXPECT_EQ(topology.distance(9, 4), 31U);
  EXPECT_EQ(topology.distance(9, 9), 10U);
}

TEST(Assemble, OrdersCpuKindsAndLeavesOutWhatIsOffline) {
  MachineDescription description;
  description.online = description.allowed = CpuSet{0, 1, 2};
  description.cpu_kinds = {{kNoPosition, CpuSet{0}}, {1, CpuSet{1, 7}}, {0, CpuSet{2}}, {2, CpuSet{9}}};
  description.caches = {{1, CacheKind::kInstruction, 4, CpuSet{0}},
                        {1, CacheKind::kData, 4, CpuSet{0}},
                        {2, CacheKind::kUnified, 8, CpuSet{0, 9}},
                        {1, CacheKind::kData, 4, CpuSet{9}}};
  const Topology topology = build_topology(description);
  ASSERT_EQ(topology.cpu_kinds.size(), 3U);
  EXPECT_EQ(topology.cpu_kinds[0].cpus, CpuSet{2});
  EXPECT_EQ(topology.cpu_kinds[1].cpus, CpuSet{1});
  EXPECT_EQ(topology.cpu_kinds[2].efficiency, kNoPosition);
  ASSERT_EQ(topology.caches.size(), 3U);
  EXPECT_EQ(topology.caches[0].cpus, CpuSet{0});
  EXPECT_EQ(topology.caches[1].kind, CacheKind::kData);
  EXPECT_EQ(topology.caches[2].kind, CacheKind::kInstruction);
}

TEST(Assemble, SortsPciDevicesAndKeepsWhatPointsAtThem) {
  MachineDescription description;
  description.online = description.allowed = CpuSet{0};
  description.nodes.resize(1);
  description.nodes[0].cpus = CpuSet{0};
  PciDevice high;
  high.address = "0000:80:00.0";
  high.cpus = CpuSet{0, 5};
  high.nodes = NodeSet{0, 3};
  PciDevice low;
  low.address = "0000:01:00.0";
  low.cpus = CpuSet{9};
  description.pci_devices = {high, low};
  description.os_devices.resize(2);
  description.os_devices[0].pci_device = 0;
  const Topology topology = build_topology(description);
  ASSERT_EQ(topology.pci_devices.size(), 2U);
  EXPECT_EQ(topology.pci_devices[0].address, "0000:01:00.0");
  EXPECT_TRUE(topology.pci_devices[0].cpus.empty()) << "none of its CPUs is online; it is there all the same";
  EXPECT_EQ(topology.pci_devices[1].cpus, CpuSet{0});
  EXPECT_EQ(topology.pci_devices[1].nodes, NodeSet{0});
  EXPECT_EQ(topology.os_devices[0].pci_device, 1U);
  EXPECT_EQ(topology.os_devices[1].pci_device, kNoPosition);
}

}  // namespace
}  // namespace topolet::topology
