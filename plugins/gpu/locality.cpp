#include "plugins/gpu/locality.hpp"

#include <algorithm>
#include <limits>

namespace topolet::gpu {
namespace {

constexpr std::uint32_t kNvidia = 0x10de;
constexpr std::uint32_t kHuawei = 0x19e5;

/// PCI base classes and, of displays, subclasses.
constexpr std::uint32_t kStorage = 0x01;
constexpr std::uint32_t kNetwork = 0x02;
constexpr std::uint32_t kDisplay = 0x03;
constexpr std::uint32_t kVga = 0x0300;
constexpr std::uint32_t kInfiniband = 0x0c06;
constexpr std::uint32_t kAccelerator = 0x12;

const topolet_pci_device* pci_of(const topolet_topology& topology, const Spot& spot) {
  return spot.pci_device == TOPOLET_NONE ? nullptr : &sdk::pci_devices(topology)[spot.pci_device];
}

sdk::Set nodes_of(const topolet_topology& topology, const Spot& spot) {
  if (const topolet_pci_device* const pci = pci_of(topology, spot)) return pci->nodes;
  if (spot.os_device != TOPOLET_NONE) return sdk::os_devices(topology)[spot.os_device].nodes;
  sdk::Set node;
  if (spot.node != TOPOLET_NONE) node.insert(spot.node);
  return node;
}

/// From the device up, host bridge last.
std::vector<std::uint32_t> bridges_above(const topolet_topology& topology, const Spot& spot) {
  std::vector<std::uint32_t> above;
  const topolet_pci_device* const pci = pci_of(topology, spot);
  const auto bridges = sdk::pci_bridges(topology);
  for (std::uint32_t bridge = pci == nullptr ? TOPOLET_NONE : pci->bridge; bridge < bridges.size();
       bridge = bridges[bridge].parent) {
    above.push_back(bridge);
  }
  return above;
}

bool meet(topolet_set a, topolet_set b) {
  for (std::size_t i = 0; i < std::min(a.count, b.count); ++i) {
    if ((a.words[i] & b.words[i]) != 0) return true;
  }
  return false;
}

/// CPU nodes that are its own, or have CPUs that are; none if that says nothing.
std::vector<std::uint32_t> near_cpus(const topolet_topology& topology, const Spot& spot) {
  const sdk::Set local = nodes_of(topology, spot);
  const topolet_set cpus = cpus_of(topology, spot);
  const auto nodes = sdk::nodes(topology);
  std::vector<std::uint32_t> homes;
  std::vector<std::uint32_t> by_cpus;
  topolet_set memory_cpus{nullptr, 0};
  for (const topolet_node& node : nodes) {
    if (node.memory_only != 0 && local.has(node.os_index)) memory_cpus = node.cpus;
  }
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].memory_only != 0) continue;
    if (local.has(nodes[i].os_index)) homes.push_back(i);
    // A device beside memory-only nodes, such as its own, is where their CPUs are.
    if (meet(nodes[i].cpus, cpus) || meet(nodes[i].cpus, memory_cpus)) by_cpus.push_back(i);
  }
  if (!homes.empty()) return homes;
  // hwloc says of memory that belongs to no CPUs that it is near to all.
  const auto cpu_nodes =
      std::count_if(nodes.begin(), nodes.end(), [](const topolet_node& node) { return node.memory_only == 0; });
  const bool is_everywhere = cpu_nodes > 1 && static_cast<std::size_t>(cpu_nodes) == by_cpus.size();
  return is_everywhere && !local.empty() ? std::vector<std::uint32_t>() : by_cpus;
}

std::vector<std::uint32_t> own_nodes(const topolet_topology& topology, const Spot& spot) {
  const sdk::Set local = nodes_of(topology, spot);
  std::vector<std::uint32_t> own;
  for (std::uint32_t i = 0; i < topology.node_count; ++i) {
    if (local.has(sdk::nodes(topology)[i].os_index)) own.push_back(i);
  }
  return own;
}

std::uint32_t distance_between(const topolet_topology& topology, std::uint32_t from, std::uint32_t to) {
  if (topology.distances == nullptr) return from == to ? 10 : 20;
  return topology.distances[std::size_t{from} * topology.node_count + to];
}

/// CPU nodes at the least distance; none of no nodes.
std::vector<std::uint32_t> nearest(const topolet_topology& topology, const std::vector<std::uint32_t>& to) {
  std::vector<std::uint32_t> nearest;
  std::uint32_t least = std::numeric_limits<std::uint32_t>::max();
  for (std::uint32_t i = 0; i < topology.node_count; ++i) {
    if (sdk::nodes(topology)[i].memory_only != 0) continue;
    for (const std::uint32_t node : to) {
      const std::uint32_t distance = distance_between(topology, i, node);
      if (distance < least) nearest.clear();
      if (distance <= least && (nearest.empty() || nearest.back() != i)) nearest.push_back(i);
      least = std::min(least, distance);
    }
  }
  return nearest;
}

bool begins(std::string_view name, std::initializer_list<std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [name](std::string_view prefix) { return name.starts_with(prefix); });
}

/// What drivers and libraries call a device that computes.
bool is_named_accelerator(const topolet_os_device& device) {
  const std::string_view name = sdk::text(device.name);
  return device.kind == TOPOLET_OS_DEVICE_COPROCESSOR || sdk::text(device.subtype) == "gpu" ||
         begins(name, {"nvml", "cuda", "rsmi", "ze", "opencl", "renderD", "/dev/nvidia", "/dev/dri/", "/dev/davinci",
                       "/dev/vacc"});
}

}  // namespace

std::string_view name_of(Closeness closeness) {
  switch (closeness) {
    case Closeness::kSameSwitch:
      return "same PCIe switch";
    case Closeness::kSameRoot:
      return "same PCIe root";
    case Closeness::kSameNode:
      return "same node";
    case Closeness::kSamePackage:
      return "same package";
    case Closeness::kFar:
      return "different packages";
  }
  return "";
}

topolet_set cpus_of(const topolet_topology& topology, const Spot& spot) {
  if (const topolet_pci_device* const pci = pci_of(topology, spot)) return pci->cpus;
  return spot.os_device == TOPOLET_NONE ? topolet_set{nullptr, 0} : sdk::os_devices(topology)[spot.os_device].cpus;
}

Lodging lodging_of(const topolet_topology& topology, const Spot& spot, const sdk::Set& cpu_nodes) {
  Lodging lodging{bridges_above(topology, spot), {}, own_nodes(topology, spot)};
  const auto has = [&](auto predicate) {
    return std::any_of(lodging.origins.begin(), lodging.origins.end(),
                       [&](std::uint32_t i) { return predicate(sdk::nodes(topology)[i]); });
  };
  const bool has_cpus = has([](const topolet_node& node) { return node.memory_only == 0; });
  const bool had_cpus = has([&](const topolet_node& node) { return cpu_nodes.has(node.os_index); });
  // CPUs that come back would be local; what is nearest meanwhile is no home.
  if (!has_cpus && had_cpus) return lodging;
  lodging.homes = near_cpus(topology, spot);
  if (!lodging.homes.empty()) {
    lodging.origins = lodging.homes;
  } else {
    lodging.homes = nearest(topology, lodging.origins);
  }
  return lodging;
}

Closeness closeness(const topolet_topology& topology, const CpuNodes& nodes, const Lodging& a, const Lodging& b) {
  for (const std::uint32_t bridge : a.bridges) {
    if (std::find(b.bridges.begin(), b.bridges.end(), bridge) == b.bridges.end()) continue;
    const bool is_host_bridge = sdk::pci_bridges(topology)[bridge].parent == TOPOLET_NONE;
    return is_host_bridge ? Closeness::kSameRoot : Closeness::kSameSwitch;
  }
  Closeness closest = Closeness::kFar;
  for (const std::uint32_t other : b.homes) {
    for (const std::uint32_t home : a.homes) {
      if (home == other) return Closeness::kSameNode;
      if (nodes.share_a_package(home, other)) closest = Closeness::kSamePackage;
    }
  }
  return closest;
}

std::vector<std::uint32_t> homes_of(const topolet_topology& topology, const Spot& spot) {
  std::vector<std::uint32_t> homes = near_cpus(topology, spot);
  return homes.empty() ? nearest(topology, own_nodes(topology, spot)) : homes;
}

bool is_accelerator(const topolet_topology& topology, const Spot& spot) {
  const topolet_pci_device* const pci = pci_of(topology, spot);
  if (pci != nullptr) {
    const std::uint32_t base = pci->class_id >> 8U;
    if (base == kAccelerator) return true;
    if (base == kDisplay && (pci->vendor_id == kNvidia || pci->class_id != kVga)) return true;
  }
  const auto devices = sdk::os_devices(topology);
  for (std::uint32_t i = 0; i < devices.size(); ++i) {
    const bool is_it = pci != nullptr ? devices[i].pci_device == spot.pci_device : i == spot.os_device;
    if (is_it && is_named_accelerator(devices[i])) return true;
  }
  return false;
}

std::string_view noun_of(const topolet_topology& topology, const Spot& spot) {
  const topolet_pci_device* const pci = pci_of(topology, spot);
  const std::uint32_t base = pci == nullptr ? 0 : pci->class_id >> 8U;
  if (base == kAccelerator) return pci->vendor_id == kHuawei ? "NPU" : "accelerator";
  if (base == kStorage) return "disk";
  if (base == kNetwork || (pci != nullptr && pci->class_id == kInfiniband)) return "NIC";
  return base == kDisplay || is_accelerator(topology, spot) ? "GPU" : "device";
}

std::string nodes_text(const sdk::Set& nodes) {
  if (nodes.empty()) return "CPUs without a node";
  return (nodes.size() == 1 ? "node " : "nodes ") + nodes.to_string();
}

CpuNodes::CpuNodes(const topolet_topology& topology)
    : topology_(topology), packages_(topology.node_count, TOPOLET_NONE) {
  for (std::uint32_t i = 0; i < topology.node_count; ++i) {
    const topolet_node& node = sdk::nodes(topology)[i];
    if (node.memory_only != 0) continue;
    positions_.push_back(i);
    for (std::uint32_t package = 0; package < topology.package_count; ++package) {
      if (meet(node.cpus, topology.packages[package])) packages_[i] = package;
    }
  }
}

std::vector<std::uint32_t> CpuNodes::usable(topolet_set nodes, topolet_set free) const {
  std::vector<std::uint32_t> all;
  std::vector<std::uint32_t> with_free;
  for (const std::uint32_t position : positions_) {
    const topolet_node& node = sdk::nodes(topology_)[position];
    if (topolet_set_has(nodes, node.os_index) == 0) continue;
    all.push_back(position);
    if (meet(node.cpus, free)) with_free.push_back(position);
  }
  return sdk::size_of(free) == 0 ? all : with_free;
}

std::uint32_t CpuNodes::distance(std::uint32_t from, std::uint32_t to) const {
  return distance_between(topology_, from, to);
}

bool CpuNodes::share_a_package(std::uint32_t a, std::uint32_t b) const {
  return packages_[a] != TOPOLET_NONE && packages_[a] == packages_[b];
}

}  // namespace topolet::gpu
