#include "core/topology/build_topology.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <tuple>
#include <utility>

namespace topolet::topology {
namespace {

constexpr std::uint32_t kLocalDistance = 10;
constexpr std::uint32_t kRemoteDistance = 20;

/// The online part of each set, without empty ones, by their lowest CPU.
std::vector<CpuSet> online_parts(const std::vector<CpuSet>& sets, const CpuSet& online) {
  std::vector<CpuSet> parts;
  for (const CpuSet& set : sets) {
    CpuSet part = set & online;
    if (!part.empty()) parts.push_back(std::move(part));
  }
  std::sort(parts.begin(), parts.end(), [](const CpuSet& a, const CpuSet& b) { return a.first() < b.first(); });
  return parts;
}

/// PUs that no core covers become cores of their own: whoever gives out whole cores then needs no special case.
std::vector<CpuSet> cores_of(const MachineDescription& description) {
  std::vector<CpuSet> cores = description.cores;
  CpuSet without_core = description.online;
  for (const CpuSet& core : cores) without_core -= core;
  for (const std::uint32_t os_index : without_core) cores.push_back({os_index});
  return online_parts(cores, description.online);
}

bool names_other_than_dram(const NodeDescription& node) { return !node.subtype.empty() && node.subtype != "DRAM"; }

using NodeRefs = std::vector<const NodeDescription*>;

/// Leaves out the nodes that `unfit` names, unless that would leave none.
template <class Unfit>
void leave_out(NodeRefs& nodes, Unfit unfit) {
  NodeRefs fit;
  for (const NodeDescription* node : nodes) {
    if (!unfit(*node)) fit.push_back(node);
  }
  if (!fit.empty()) nodes = std::move(fit);
}

bool is_far(const NodeDescription& node, const NodeRefs& others) {
  return std::any_of(others.begin(), others.end(), [&node](const NodeDescription* other) {
    return other->latency_ns > 0 && 2 * node.latency_ns > 3 * other->latency_ns;
  });
}

bool is_fast_and_small(const NodeDescription& node, const NodeRefs& others) {
  return std::any_of(others.begin(), others.end(), [&node](const NodeDescription* other) {
    return other->bandwidth_mib_s > 0 && node.bandwidth_mib_s >= 2 * other->bandwidth_mib_s &&
           node.memory_bytes < other->memory_bytes;
  });
}

const NodeDescription* default_node(NodeRefs nodes) {
  leave_out(nodes, names_other_than_dram);
  leave_out(nodes, [all = nodes](const NodeDescription& node) { return is_far(node, all); });
  leave_out(nodes, [all = nodes](const NodeDescription& node) { return is_fast_and_small(node, all); });
  return nodes.front();
}

/// The default node of each locality, in the order in which they have their CPUs.
NodeRefs default_nodes(const std::vector<NodeDescription>& nodes) {
  std::vector<std::pair<const CpuSet*, NodeRefs>> localities;
  for (const NodeDescription& node : nodes) {
    auto known = std::find_if(localities.begin(), localities.end(),
                              [&node](const auto& locality) { return *locality.first == node.cpus; });
    if (known == localities.end()) known = localities.insert(known, {&node.cpus, {}});
    known->second.push_back(&node);
  }
  NodeRefs defaults;
  for (const auto& locality : localities) defaults.push_back(default_node(locality.second));
  const auto rank = [](const NodeDescription* node) {
    return std::make_tuple(names_other_than_dram(*node), node->cpus.size(), node->os_index);
  };
  std::sort(defaults.begin(), defaults.end(), [&rank](const auto* a, const auto* b) { return rank(a) < rank(b); });
  return defaults;
}

std::vector<Node> nodes_of(const MachineDescription& description) {
  const bool sizes_known = std::any_of(description.nodes.begin(), description.nodes.end(),
                                       [](const NodeDescription& node) { return node.memory_bytes > 0; });
  std::vector<Node> nodes;
  for (const NodeDescription& from : description.nodes) {
    Node node;
    node.os_index = from.os_index;
    node.cpus = from.cpus & description.online;
    node.memory_only = true;
    node.has_memory = from.memory_bytes > 0 || !sizes_known;
    node.subtype = from.subtype;
    node.memory_bytes = from.memory_bytes;
    node.huge_pages = from.huge_pages;
    nodes.push_back(std::move(node));
  }
  CpuSet unclaimed = description.online;
  for (const NodeDescription* from : default_nodes(description.nodes)) {
    const CpuSet claimed = from->cpus & unclaimed;
    if (claimed.empty()) continue;
    Node& node = nodes[static_cast<std::size_t>(from - description.nodes.data())];
    node.cpus = claimed;
    node.memory_only = false;
    unclaimed -= claimed;
  }
  return nodes;
}

void set_positions(std::vector<Pu>& pus, const std::vector<CpuSet>& sets, std::uint32_t Pu::*position) {
  for (std::uint32_t i = 0; i < sets.size(); ++i) {
    for (Pu& pu : pus) {
      if (sets[i].contains(pu.os_index)) pu.*position = i;
    }
  }
}

std::vector<Pu> pus_of(const Topology& topology) {
  std::vector<Pu> pus;
  for (const std::uint32_t os_index : topology.online) {
    Pu pu;
    pu.os_index = os_index;
    pus.push_back(pu);
  }
  set_positions(pus, topology.cores, &Pu::core);
  set_positions(pus, topology.l3s, &Pu::l3);
  set_positions(pus, topology.dies, &Pu::die);
  set_positions(pus, topology.packages, &Pu::package);
  std::vector<CpuSet> cpus_of_nodes;
  for (const Node& node : topology.nodes) cpus_of_nodes.push_back(node.memory_only ? CpuSet() : node.cpus);
  set_positions(pus, cpus_of_nodes, &Pu::node);
  return pus;
}

void add_domain(std::vector<Domain>& domains, DomainKind kind, const CpuSet& cpus, const NodeSet& nodes) {
  const bool known =
      std::any_of(domains.begin(), domains.end(), [&nodes](const Domain& domain) { return domain.nodes == nodes; });
  if (!known) domains.push_back({kind, cpus, nodes});
}

std::vector<Domain> domains_of(const Topology& topology) {
  std::vector<Domain> domains;
  const CpuSet without_node = topology.cpus_outside_nodes();
  if (!without_node.empty()) add_domain(domains, DomainKind::kNode, without_node, {});
  for (const Node& node : topology.nodes) {
    if (!node.memory_only) add_domain(domains, DomainKind::kNode, node.cpus, {node.os_index});
  }
  for (const CpuSet& die : topology.dies) add_domain(domains, DomainKind::kDie, die, topology.nodes_of(die));
  for (const CpuSet& package : topology.packages) {
    add_domain(domains, DomainKind::kPackage, package, topology.nodes_of(package));
  }
  add_domain(domains, DomainKind::kMachine, topology.online, topology.nodes_of(topology.online));
  return domains;
}

std::vector<std::uint32_t> assumed_distances(std::size_t nodes) {
  std::vector<std::uint32_t> distances(nodes * nodes, kRemoteDistance);
  for (std::size_t i = 0; i < nodes; ++i) distances[i * nodes + i] = kLocalDistance;
  return distances;
}

/// Returns the items with their online CPUs only; those without are left out.
template <class Item>
std::vector<Item> online_items(std::vector<Item> items, const CpuSet& online) {
  for (Item& item : items) item.cpus &= online;
  items.erase(std::remove_if(items.begin(), items.end(), [](const Item& item) { return item.cpus.empty(); }),
              items.end());
  return items;
}

std::vector<CpuKind> cpu_kinds_of(const MachineDescription& description) {
  std::vector<CpuKind> kinds = online_items(description.cpu_kinds, description.online);
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](const CpuKind& a, const CpuKind& b) { return a.efficiency < b.efficiency; });
  return kinds;
}

std::vector<Cache> caches_of(const MachineDescription& description) {
  std::vector<Cache> caches = online_items(description.caches, description.online);
  const auto rank = [](const Cache& cache) {
    return std::make_tuple(-static_cast<int>(cache.level), cache.cpus.first(), cache.kind);
  };
  std::stable_sort(caches.begin(), caches.end(), [&rank](const Cache& a, const Cache& b) { return rank(a) < rank(b); });
  return caches;
}

/// Cuts the locality of a device to what the topology has.
template <class Device>
void restrict_locality(std::vector<Device>& devices, const Topology& topology) {
  NodeSet known;
  for (const Node& node : topology.nodes) known.insert(node.os_index);
  for (Device& device : devices) {
    device.cpus &= topology.online;
    device.nodes &= known;
  }
}

/// Where hwloc has a device elsewhere than the kernel: on the kernel's node.
template <class Device>
void move_to_kernels_node(Device& device, const std::string& address, const MachineDescription& description) {
  const auto named = description.device_nodes.find(address);
  if (named == description.device_nodes.end()) return;
  const auto node = std::find_if(description.nodes.begin(), description.nodes.end(),
                                 [&](const NodeDescription& other) { return other.os_index == named->second; });
  if (node == description.nodes.end()) return;
  const CpuSet local = node->cpus & description.online;
  if (!local.empty() && (device.cpus & description.online) == local) return;
  device.cpus = local;
  device.nodes = NodeSet{node->os_index};
}

/// Devices stay, even with no CPU of their locality online: a container may still use them.
void add_devices(const MachineDescription& description, Topology& topology) {
  topology.pci_bridges = description.pci_bridges;
  std::vector<std::uint32_t> order(description.pci_devices.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return description.pci_devices[a].address < description.pci_devices[b].address;
  });
  std::vector<std::uint32_t> position(order.size());
  for (const std::uint32_t from : order) {
    position[from] = static_cast<std::uint32_t>(topology.pci_devices.size());
    topology.pci_devices.push_back(description.pci_devices[from]);
  }
  topology.os_devices = description.os_devices;
  std::stable_sort(topology.os_devices.begin(), topology.os_devices.end(),
                   [](const OsDevice& a, const OsDevice& b) { return a.name < b.name; });
  for (OsDevice& device : topology.os_devices) {
    if (device.pci_device != kNoPosition) device.pci_device = position[device.pci_device];
  }
  for (PciBridge& bridge : topology.pci_bridges) move_to_kernels_node(bridge, bridge.address, description);
  for (PciDevice& device : topology.pci_devices) move_to_kernels_node(device, device.address, description);
  for (OsDevice& device : topology.os_devices) {
    if (device.pci_device == kNoPosition) continue;
    move_to_kernels_node(device, topology.pci_devices[device.pci_device].address, description);
  }
  for (const DeviceFile& file : description.device_files) {
    if (topology.pci_device(file.address) != nullptr) topology.device_files.push_back(file);
  }
  std::sort(topology.device_files.begin(), topology.device_files.end(),
            [](const DeviceFile& a, const DeviceFile& b) { return a.path < b.path; });
  restrict_locality(topology.pci_bridges, topology);
  restrict_locality(topology.pci_devices, topology);
  restrict_locality(topology.os_devices, topology);
}

}  // namespace

Topology build_topology(const MachineDescription& description) {
  Topology topology;
  topology.online = description.online;
  topology.present = description.present | description.online;
  topology.allowed = description.allowed & description.online;
  topology.isolated = description.isolated & description.online;
  topology.cores = cores_of(description);
  topology.l3s = online_parts(description.l3s, description.online);
  topology.dies = online_parts(description.dies, description.online);
  topology.packages = online_parts(description.packages, description.online);
  topology.nodes = nodes_of(description);
  topology.pus = pus_of(topology);
  topology.domains = domains_of(topology);
  const std::size_t nodes = topology.nodes.size();
  topology.distances_known = nodes > 0 && description.distances.size() == nodes * nodes;
  topology.distances = topology.distances_known ? description.distances : assumed_distances(nodes);
  topology.cpu_kinds = cpu_kinds_of(description);
  topology.caches = caches_of(description);
  add_devices(description, topology);
  return topology;
}

}  // namespace topolet::topology
