#include "plugins/gpu/locality.hpp"

#include <algorithm>
#include <limits>

#include "plugins/gpu/pci_ids.hpp"

namespace topolet::gpu {
namespace {

const topolet_pci_device* pci_of(const topolet_topology& topology, const DeviceRef& ref) {
  return ref.pci_device == TOPOLET_NONE ? nullptr : &sdk::pci_devices(topology)[ref.pci_device];
}

sdk::Set nodes_of(const topolet_topology& topology, const DeviceRef& ref) {
  if (const topolet_pci_device* const pci = pci_of(topology, ref)) return pci->nodes;
  if (ref.os_device != TOPOLET_NONE) return sdk::os_devices(topology)[ref.os_device].nodes;
  sdk::Set node;
  if (ref.node != TOPOLET_NONE) node.insert(ref.node);
  return node;
}

/// From the device upwards, host bridge last.
std::vector<std::uint32_t> bridges_above(const topolet_topology& topology, const DeviceRef& ref) {
  std::vector<std::uint32_t> above;
  const topolet_pci_device* const pci = pci_of(topology, ref);
  const auto bridges = sdk::pci_bridges(topology);
  for (std::uint32_t bridge = pci == nullptr ? TOPOLET_NONE : pci->bridge; bridge < bridges.size();
       bridge = bridges[bridge].parent) {
    above.push_back(bridge);
  }
  return above;
}

bool intersect(topolet_set a, topolet_set b) {
  for (std::size_t i = 0; i < std::min(a.count, b.count); ++i) {
    if ((a.words[i] & b.words[i]) != 0) return true;
  }
  return false;
}

/// The CPU nodes that hwloc names as local or, failing that, those with CPUs that are. None if hwloc names all of them.
Nodes nodes_of_local_cpus(const topolet_topology& topology, const DeviceRef& ref) {
  const sdk::Set local = nodes_of(topology, ref);
  const topolet_set cpus = cpus_of(topology, ref);
  const auto nodes = sdk::nodes(topology);
  Nodes local_nodes;
  topolet_set memory_cpus{nullptr, 0};
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    if (!local.has(nodes[i].os_index)) continue;
    if (nodes[i].memory_only == 0) local_nodes.push_back(i);
    if (nodes[i].memory_only != 0) memory_cpus = nodes[i].cpus;
  }
  if (!local_nodes.empty()) return local_nodes;
  Nodes by_cpus;
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].memory_only != 0) continue;
    // A device on a memory-only node, such as that of its own memory, is where the CPUs of that node are.
    if (intersect(nodes[i].cpus, cpus) || intersect(nodes[i].cpus, memory_cpus)) by_cpus.push_back(i);
  }
  // Memory that belongs to no CPUs is near all of them, according to hwloc.
  const auto cpu_nodes =
      std::count_if(nodes.begin(), nodes.end(), [](const topolet_node& node) { return node.memory_only == 0; });
  const bool is_near_all_nodes = cpu_nodes > 1 && static_cast<std::size_t>(cpu_nodes) == by_cpus.size();
  return is_near_all_nodes && !local.empty() ? Nodes() : by_cpus;
}

Nodes own_nodes(const topolet_topology& topology, const DeviceRef& ref) {
  const sdk::Set local = nodes_of(topology, ref);
  Nodes own;
  for (std::uint32_t i = 0; i < topology.node_count; ++i) {
    if (local.has(sdk::nodes(topology)[i].os_index)) own.push_back(i);
  }
  return own;
}

std::uint32_t distance_between(const topolet_topology& topology, std::uint32_t from, std::uint32_t to) {
  if (topology.distances == nullptr) return from == to ? 10 : 20;
  return topology.distances[std::size_t{from} * topology.node_count + to];
}

/// The CPU nodes at the least distance from any of `to`.
Nodes nearest(const topolet_topology& topology, const Nodes& to) {
  Nodes nearest;
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

bool starts_with_any(std::string_view name, std::initializer_list<std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [name](std::string_view prefix) { return name.starts_with(prefix); });
}

/// Returns true if the name or type that a driver or library gives to the device is that of an accelerator.
bool has_accelerator_name(const topolet_os_device& device) {
  const std::string_view name = sdk::text(device.name);
  return device.kind == TOPOLET_OS_DEVICE_COPROCESSOR || sdk::text(device.subtype) == "gpu" ||
         starts_with_any(name, {"nvml", "cuda", "rsmi", "ze", "opencl", "renderD", "/dev/nvidia", "/dev/dri/",
                                "/dev/davinci", "/dev/vacc"});
}

}  // namespace

std::string_view closeness_text(Closeness closeness) {
  switch (closeness) {
    case Closeness::kSameSwitch:
      return "behind the same PCIe switch";
    case Closeness::kSameRoot:
      return "behind the same PCIe root";
    case Closeness::kSameNode:
      return "on the same node";
    case Closeness::kSamePackage:
      return "in the same package";
    case Closeness::kDifferentPackages:
      return "in different packages";
  }
  return "";
}

topolet_set cpus_of(const topolet_topology& topology, const DeviceRef& ref) {
  if (const topolet_pci_device* const pci = pci_of(topology, ref)) return pci->cpus;
  return ref.os_device == TOPOLET_NONE ? topolet_set{nullptr, 0} : sdk::os_devices(topology)[ref.os_device].cpus;
}

DeviceLocality device_locality(const topolet_topology& topology, const DeviceRef& ref, const sdk::Set& cpu_nodes) {
  DeviceLocality locality{bridges_above(topology, ref), {}, own_nodes(topology, ref)};
  const auto has = [&](auto predicate) {
    return std::any_of(locality.measured_from.begin(), locality.measured_from.end(),
                       [&](std::uint32_t i) { return predicate(sdk::nodes(topology)[i]); });
  };
  const bool has_cpus = has([](const topolet_node& node) { return node.memory_only == 0; });
  const bool had_cpus = has([&](const topolet_node& node) { return cpu_nodes.has(node.os_index); });
  // Once the CPUs of its own node are back online they are local again; until then no other node is.
  if (!has_cpus && had_cpus) return locality;
  locality.local_nodes = nodes_of_local_cpus(topology, ref);
  if (!locality.local_nodes.empty()) {
    locality.measured_from = locality.local_nodes;
  } else {
    locality.local_nodes = nearest(topology, locality.measured_from);
  }
  return locality;
}

Closeness closeness(const topolet_topology& topology, const CpuNodes& nodes, const DeviceLocality& a,
                    const DeviceLocality& b) {
  for (const std::uint32_t bridge : a.bridges) {
    if (std::find(b.bridges.begin(), b.bridges.end(), bridge) == b.bridges.end()) continue;
    const bool is_host_bridge = sdk::pci_bridges(topology)[bridge].parent == TOPOLET_NONE;
    return is_host_bridge ? Closeness::kSameRoot : Closeness::kSameSwitch;
  }
  Closeness closest = Closeness::kDifferentPackages;
  for (const std::uint32_t other : b.local_nodes) {
    for (const std::uint32_t local : a.local_nodes) {
      if (local == other) return Closeness::kSameNode;
      if (nodes.share_a_package(local, other)) closest = Closeness::kSamePackage;
    }
  }
  return closest;
}

Nodes local_nodes_of(const topolet_topology& topology, const DeviceRef& ref) {
  Nodes local_nodes = nodes_of_local_cpus(topology, ref);
  return local_nodes.empty() ? nearest(topology, own_nodes(topology, ref)) : local_nodes;
}

bool is_accelerator(const topolet_topology& topology, const DeviceRef& ref) {
  const topolet_pci_device* const pci = pci_of(topology, ref);
  if (pci != nullptr) {
    const std::uint32_t base = pci->class_id >> 8U;
    if (base == kAcceleratorClass) return true;
    if (base == kDisplayClass && (pci->vendor_id == kNvidiaVendor || pci->class_id != kVgaClass)) return true;
  }
  const auto devices = sdk::os_devices(topology);
  for (std::uint32_t i = 0; i < devices.size(); ++i) {
    const bool is_it = pci != nullptr ? devices[i].pci_device == ref.pci_device : i == ref.os_device;
    if (is_it && has_accelerator_name(devices[i])) return true;
  }
  return false;
}

std::string_view noun_of(const topolet_topology& topology, const DeviceRef& ref) {
  const topolet_pci_device* const pci = pci_of(topology, ref);
  const std::uint32_t base = pci == nullptr ? 0 : pci->class_id >> 8U;
  if (base == kAcceleratorClass) return pci->vendor_id == kHuaweiVendor ? "NPU" : "accelerator";
  if (base == kStorageClass) return "disk";
  if (base == kNetworkClass || (pci != nullptr && pci->class_id == kInfinibandClass)) return "NIC";
  return base == kDisplayClass || is_accelerator(topology, ref) ? "GPU" : "device";
}

std::string nodes_text(topolet_set nodes) { return sdk::node_names(nodes); }

std::string nodes_text(const sdk::Set& nodes) { return nodes_text(nodes.view()); }

std::size_t cpus_needed(const topolet_request& request) {
  return request.exclusive == 0 ? 1 : std::max<std::size_t>(1, request.exclusive_cpus);
}

bool contains(const Nodes& nodes, std::uint32_t node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

CpuNodes::CpuNodes(const topolet_topology& topology)
    : topology_(topology), cpus_(topology.node_count), packages_(topology.node_count, TOPOLET_NONE) {
  for (std::uint32_t i = 0; i < topology.node_count; ++i) {
    const topolet_node& node = sdk::nodes(topology)[i];
    if (node.memory_only != 0) continue;
    positions_.push_back(i);
    cpus_[i] = sdk::NarrowSet(node.cpus);
    for (std::uint32_t package = 0; package < topology.package_count; ++package) {
      if (cpus_[i].intersects(topology.packages[package])) packages_[i] = package;
    }
  }
}

Nodes CpuNodes::usable(topolet_set nodes, topolet_set free) const {
  const bool counts_all = sdk::set_words::is_empty(sdk::words_of(free));
  Nodes usable;
  for (const std::uint32_t position : positions_) {
    if (topolet_set_has(nodes, os_index(position)) == 0) continue;
    if (counts_all || cpus_[position].intersects(free)) usable.push_back(position);
  }
  return usable;
}

std::uint32_t CpuNodes::distance(std::uint32_t from, std::uint32_t to) const {
  return distance_between(topology_, from, to);
}

sdk::Set CpuNodes::os_indices(const Nodes& nodes) const {
  sdk::Set set;
  for (const std::uint32_t node : nodes) set.insert(os_index(node));
  return set;
}

bool CpuNodes::share_a_package(std::uint32_t a, std::uint32_t b) const {
  return packages_[a] != TOPOLET_NONE && packages_[a] == packages_[b];
}

}  // namespace topolet::gpu
