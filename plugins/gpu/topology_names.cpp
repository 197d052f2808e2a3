#include "plugins/gpu/topology_names.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace topolet::gpu {

TopologyNames::TopologyNames(const topolet_topology& topology, const Inventory& inventory)
    : topology_(topology), inventory_(inventory), is_this_machine_(inventory.has_files_of(topology)) {}

std::optional<Spot> TopologyNames::named(std::string_view os_device) const {
  const auto devices = sdk::os_devices(topology_);
  for (std::uint32_t i = 0; i < devices.size(); ++i) {
    if (sdk::text(devices[i].name) == os_device) return spot_of(i);
  }
  return std::nullopt;
}

std::optional<Spot> TopologyNames::at(std::string_view pci_address) const {
  const auto devices = sdk::pci_devices(topology_);
  for (std::uint32_t i = 0; i < devices.size() && !pci_address.empty(); ++i) {
    if (sdk::text(devices[i].address) == pci_address) return Spot{.pci_device = i};
  }
  return std::nullopt;
}

std::optional<Spot> TopologyNames::at(const Place& place) const {
  if (const auto spot = at(place.address)) return spot;
  for (const topolet_node& node : sdk::nodes(topology_)) {
    if (place.node == node.os_index) return Spot{.node = node.os_index};
  }
  return std::nullopt;
}

std::vector<Spot> TopologyNames::functions(const Make& make) const {
  std::vector<Spot> found;
  const auto devices = sdk::pci_devices(topology_);
  for (std::uint32_t i = 0; i < devices.size(); ++i) {
    std::array<char, 8> digits{};
    std::snprintf(digits.data(), digits.size(), "%04x", devices[i].class_id & 0xffffU);
    if (devices[i].vendor_id == make.vendor_id && (!make.device_id || devices[i].device_id == *make.device_id) &&
        std::string_view(digits.data()).starts_with(make.class_digits)) {
      found.push_back({.pci_device = i});
    }
  }
  return found;
}

std::vector<Spot> TopologyNames::beginning(std::string_view prefix, std::uint32_t kind) const {
  const auto devices = sdk::os_devices(topology_);
  std::vector<std::uint32_t> found;
  for (std::uint32_t i = 0; i < devices.size(); ++i) {
    const bool is_kind = kind == TOPOLET_NONE || static_cast<std::uint32_t>(devices[i].kind) == kind;
    if (is_kind && sdk::text(devices[i].name).starts_with(prefix)) found.push_back(i);
  }
  std::sort(found.begin(), found.end(), [&devices](std::uint32_t a, std::uint32_t b) {
    const std::string_view one = sdk::text(devices[a].name);
    const std::string_view other = sdk::text(devices[b].name);
    return one.size() != other.size() ? one.size() < other.size() : one < other;
  });
  std::vector<Spot> spots;
  for (const std::uint32_t device : found) spots.push_back(spot_of(device));
  return spots;
}

std::vector<Spot> TopologyNames::unique(std::vector<Spot> spots) {
  std::vector<Spot> each;
  for (const Spot& spot : spots) {
    if (std::find(each.begin(), each.end(), spot) == each.end()) each.push_back(spot);
  }
  return each;
}

Spot TopologyNames::spot_of(std::uint32_t os_device) const {
  const topolet_os_device& device = sdk::os_devices(topology_)[os_device];
  if (device.pci_device < topology_.pci_device_count) return {.pci_device = device.pci_device};
  return {.os_device = os_device};
}

}  // namespace topolet::gpu
