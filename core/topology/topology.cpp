#include "core/topology/topology.hpp"

#include <algorithm>

namespace topolet::topology {
namespace {

template <class Item>
const Item* find_by_os_index(const std::vector<Item>& items, std::uint32_t os_index) {
  const auto found = std::lower_bound(items.begin(), items.end(), os_index,
                                      [](const Item& item, std::uint32_t wanted) { return item.os_index < wanted; });
  return found != items.end() && found->os_index == os_index ? &*found : nullptr;
}

}  // namespace

std::string_view to_string(OsDeviceKind kind) {
  switch (kind) {
    case OsDeviceKind::kBlock:
      return "block";
    case OsDeviceKind::kGpu:
      return "gpu";
    case OsDeviceKind::kNetwork:
      return "network";
    case OsDeviceKind::kOpenFabrics:
      return "openfabrics";
    case OsDeviceKind::kDma:
      return "dma";
    case OsDeviceKind::kCoprocessor:
      return "coprocessor";
    case OsDeviceKind::kOther:
      break;
  }
  return "other";
}

const Pu* Topology::pu(std::uint32_t os_index) const { return find_by_os_index(pus, os_index); }

const Node* Topology::node(std::uint32_t os_index) const { return find_by_os_index(nodes, os_index); }

const PciDevice* Topology::pci_device(std::string_view address) const {
  const auto found =
      std::lower_bound(pci_devices.begin(), pci_devices.end(), address,
                       [](const PciDevice& device, std::string_view wanted) { return device.address < wanted; });
  return found != pci_devices.end() && found->address == address ? &*found : nullptr;
}

std::uint32_t Topology::distance(std::uint32_t from_os_index, std::uint32_t to_os_index) const {
  const auto from = static_cast<std::size_t>(node(from_os_index) - nodes.data());
  const auto to = static_cast<std::size_t>(node(to_os_index) - nodes.data());
  return distances[from * nodes.size() + to];
}

std::uint32_t Topology::total_distance(const NodeSet& among) const {
  std::uint32_t sum = 0;
  for (const std::uint32_t from : among) {
    for (const std::uint32_t to : among) sum += distance(from, to);
  }
  return sum;
}

NodeSet Topology::nodes_of(const CpuSet& cpus) const {
  NodeSet touched;
  for (const Node& node : nodes) {
    if (!node.memory_only && node.cpus.intersects(cpus)) touched.insert(node.os_index);
  }
  return touched;
}

CpuSet Topology::cpus_outside_nodes() const {
  CpuSet outside = online;
  for (const Node& node : nodes) {
    if (!node.memory_only) outside -= node.cpus;
  }
  return outside;
}

}  // namespace topolet::topology
