#include "core/engine/state/device_rows.hpp"

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/topology/find_device.hpp"

namespace topolet::engine {
namespace {

using topology::PciDevice;

/// By the class codes of the PCI Code and ID Assignment Specification; null for other classes.
const char* kind_of(const PciDevice& device) {
  constexpr std::uint16_t k3dController = 0x0302;
  if (device.class_id == k3dController) return "3d";
  switch (device.class_id >> 8U) {
    case 0x02:
      return "network";
    case 0x03:
      return "display";
    case 0x12:
      return "accelerator";
    default:
      return nullptr;
  }
}

}  // namespace

std::vector<store::TopologyRow::Device> device_rows(const topology::Topology& topology) {
  std::vector<store::TopologyRow::Device> rows;
  std::vector<bool> has_os_device(topology.pci_devices.size(), false);
  for (const topology::OsDevice& device : topology.os_devices) {
    if (device.name.empty()) continue;
    const bool has_pci_device = device.pci_device != topology::kNoPosition;
    if (has_pci_device) has_os_device[device.pci_device] = true;
    rows.push_back({device.name, has_pci_device ? topology.pci_devices[device.pci_device].address : "",
                    std::string(to_string(device.kind)), device.nodes});
  }
  for (std::size_t i = 0; i < topology.pci_devices.size(); ++i) {
    const PciDevice& device = topology.pci_devices[i];
    const char* kind = has_os_device[i] ? nullptr : kind_of(device);
    if (kind != nullptr) rows.push_back({device.address, device.address, kind, device.nodes});
  }
  return rows;
}

std::string devices_json(const placement::Workload& workload, const topology::Topology* topology) {
  using OrderedJson = nlohmann::ordered_json;
  OrderedJson devices = OrderedJson::array();
  std::set<std::string> known;
  const auto add = [&](const std::string& name) {
    const auto place = topology == nullptr ? topology::DevicePlace() : find_device(*topology, name);
    known.insert({name, place.address});
    OrderedJson device{{"name", name}};
    if (!place.address.empty()) device["address"] = place.address;
    device["nodes"] = place.nodes.to_string();
    devices.push_back(std::move(device));
  };
  for (const auto* names : {&workload.devices, &workload.cdi_devices}) {
    for (const std::string& name : *names) add(name);
  }
  for (const std::string& name : workload.used_devices) {
    if (!known.contains(name)) add(name);
  }
  return devices.empty() ? std::string() : devices.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace topolet::engine
