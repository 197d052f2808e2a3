#include "core/plugin_checker/machines.hpp"

#include <cstdint>
#include <utility>

#include "core/topology/build_topology.hpp"

namespace topolet::plugin_checker {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

/// A machine whose parts are all alike. CPU i has the OS index first_cpu + i × cpu_step; threads of a core are next to
/// each other.
struct Shape {
  std::uint32_t packages = 1;
  std::uint32_t nodes = 1;  ///< of each package
  std::uint32_t cores = 1;  ///< of each node
  std::uint32_t threads = 1;
  std::uint32_t first_cpu = 0;
  std::uint32_t cpu_step = 1;
  std::uint32_t node_step = 1;
};

CpuSet cpus_of(const Shape& shape, std::uint32_t first, std::uint32_t count) {
  CpuSet cpus;
  for (std::uint32_t i = first; i < first + count; ++i) cpus.insert(shape.first_cpu + i * shape.cpu_step);
  return cpus;
}

topology::MachineDescription describe(const Shape& shape) {
  topology::MachineDescription machine;
  const std::uint32_t node_count = shape.packages * shape.nodes;
  const std::uint32_t node_cpus = shape.cores * shape.threads;
  machine.online = machine.allowed = cpus_of(shape, 0, node_count * node_cpus);
  for (std::uint32_t package = 0; package < shape.packages; ++package) {
    machine.packages.push_back(cpus_of(shape, package * shape.nodes * node_cpus, shape.nodes * node_cpus));
  }
  for (std::uint32_t node = 0; node < node_count; ++node) {
    const CpuSet cpus = cpus_of(shape, node * node_cpus, node_cpus);
    machine.nodes.push_back({node * shape.node_step, cpus, "", 64 * kGiB, {{2 << 20, 512}, {1 << 30, 0}}});
    machine.l3s.push_back(cpus);
    machine.caches.push_back({3, topology::CacheKind::kUnified, 32 << 20, cpus});
  }
  for (std::uint32_t core = 0; core < node_count * shape.cores; ++core) {
    machine.cores.push_back(cpus_of(shape, core * shape.threads, shape.threads));
    machine.caches.push_back({2, topology::CacheKind::kUnified, 1 << 20, machine.cores.back()});
  }
  return machine;
}

void name_distances(topology::MachineDescription& machine, std::uint32_t nodes_of_package) {
  const std::size_t count = machine.nodes.size();
  machine.distances.clear();
  for (std::size_t from = 0; from < count; ++from) {
    for (std::size_t to = 0; to < count; ++to) {
      const bool near = from / nodes_of_package == to / nodes_of_package;
      machine.distances.push_back(from == to ? 10 : near ? 12 : 32);
    }
  }
}

topology::MachineDescription with_offline_pus() {
  topology::MachineDescription machine = describe({.packages = 2, .cores = 4, .threads = 2});
  machine.online -= CpuSet{1, 6, 7, 9, 11, 13, 15};
  machine.allowed = machine.online;
  return machine;
}

topology::MachineDescription with_memory_only_nodes() {
  topology::MachineDescription machine = describe({.packages = 2, .cores = 4, .threads = 2});
  for (std::uint32_t node = 0; node < 2; ++node) {
    machine.nodes.push_back({2 + node, machine.nodes[node].cpus, "HBM", 16 * kGiB, {}});
  }
  machine.nodes.push_back({4, {}, "", 256 * kGiB, {}});
  name_distances(machine, 1);
  return machine;
}

topology::MachineDescription with_pus_without_node() {
  topology::MachineDescription machine = describe({.packages = 2, .cores = 4, .threads = 2});
  machine.nodes.pop_back();
  return machine;
}

topology::MachineDescription without_numa_memory() {
  topology::MachineDescription machine = describe({.packages = 2, .cores = 4, .threads = 2});
  machine.nodes.clear();
  return machine;
}

topology::MachineDescription with_24_nodes() {
  topology::MachineDescription machine = describe({.packages = 6, .nodes = 4, .cores = 2, .threads = 2});
  name_distances(machine, 4);
  return machine;
}

topology::MachineDescription without_l3() {
  topology::MachineDescription machine = describe({.packages = 1, .nodes = 2, .cores = 4, .threads = 1});
  machine.l3s.clear();
  machine.caches.clear();
  return machine;
}

topology::MachineDescription with_isolated_cpus() {
  topology::MachineDescription machine = describe({.packages = 2, .cores = 8, .threads = 2});
  machine.allowed = CpuSet::range(2, 29);
  machine.isolated = CpuSet{8, 9, 24, 25};
  return machine;
}

/// Fast and slow cores, dies, PCI trees, and devices that nobody knows the place of.
topology::MachineDescription with_devices() {
  topology::MachineDescription machine = describe({.packages = 2, .nodes = 2, .cores = 4, .threads = 2});
  name_distances(machine, 2);
  for (const topology::NodeDescription& node : machine.nodes) machine.dies.push_back(node.cpus);
  machine.cpu_kinds = {{0, CpuSet::range(0, 15)}, {1, CpuSet::range(16, 31)}};
  const CpuSet far = CpuSet::range(24, 31);
  machine.pci_bridges = {{"", topology::kNoPosition, 0, 0, machine.nodes[0].cpus, NodeSet{0}},
                         {"0000:00:01.0", 0, 0x8086, 0x2030, machine.nodes[0].cpus, NodeSet{0}},
                         {"", topology::kNoPosition, 0, 0, far, NodeSet{3}}};
  machine.pci_devices = {
      {"0000:01:00.0", 1, 0x0302, 0x10de, 0x20b0, machine.nodes[0].cpus, NodeSet{0}, {{"PCIVendor", "NVIDIA"}}},
      {"0000:c1:00.0", 2, 0x0302, 0x10de, 0x20b0, far, NodeSet{3}, {}},
      {"0000:c2:00.0", topology::kNoPosition, 0x0200, 0x15b3, 0x1017, {}, {}, {}}};
  machine.os_devices = {
      {"nvml0", "NVML", topology::OsDeviceKind::kGpu, 0, machine.nodes[0].cpus, NodeSet{0}, {{"NVIDIAUUID", "GPU-1"}}},
      {"nvml1", "NVML", topology::OsDeviceKind::kGpu, 1, far, NodeSet{3}, {{"NVIDIAUUID", "GPU-2"}}},
      {"eth0", "", topology::OsDeviceKind::kNetwork, 2, {}, {}, {}},
      {"dax0.0", "", topology::OsDeviceKind::kBlock, topology::kNoPosition, {}, {}, {}}};
  return machine;
}

}  // namespace

std::vector<Machine> make_machines() {
  std::vector<Machine> machines;
  const auto add = [&machines](std::string name, const topology::MachineDescription& description) {
    machines.push_back({std::move(name), std::make_shared<const topology::Topology>(build_topology(description))});
  };
  add("1-cpu", describe({}));
  add("smt-off", describe({.packages = 2, .cores = 8}));
  add("smt-2", describe({.packages = 2, .nodes = 2, .cores = 4, .threads = 2}));
  add("smt-8", describe({.nodes = 2, .cores = 4, .threads = 8}));
  add("offline-pus", with_offline_pus());
  add("memory-only-nodes", with_memory_only_nodes());
  add("pus-without-node", with_pus_without_node());
  add("no-numa-memory", without_numa_memory());
  add("24-nodes", with_24_nodes());
  add("1536-pus", describe({.packages = 2, .nodes = 4, .cores = 96, .threads = 2}));
  add("sparse-indices",
      describe({.packages = 2, .cores = 6, .threads = 2, .first_cpu = 5, .cpu_step = 37, .node_step = 250}));
  add("no-l3", without_l3());
  add("isolated-cpus", with_isolated_cpus());
  add("devices", with_devices());
  return machines;
}

}  // namespace topolet::plugin_checker
