#include "plugins/gpu/device_catalog.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "plugins/gpu/text.hpp"

namespace topolet::gpu {

std::optional<DeviceRef> nth(const std::vector<DeviceRef>& refs, std::uint32_t n) {
  return n < refs.size() ? std::optional(refs[n]) : std::nullopt;
}

DeviceCatalog::DeviceCatalog(const topolet_topology& topology, const Inventory& inventory)
    : topology_(topology), inventory_(inventory) {}

const Inventory* DeviceCatalog::machine_files() const {
  if (!is_this_machine_) is_this_machine_ = inventory_.files_match(topology_);
  return *is_this_machine_ ? &inventory_ : nullptr;
}

std::optional<DeviceRef> DeviceCatalog::by_name(std::string_view os_device) const {
  const auto devices = sdk::os_devices(topology_);
  for (std::uint32_t i = 0; i < devices.size(); ++i) {
    if (sdk::text(devices[i].name) == os_device) return ref_of(i);
  }
  return std::nullopt;
}

std::optional<DeviceRef> DeviceCatalog::by_address(std::string_view pci_address) const {
  if (auto ref = in_topology(pci_address)) return ref;
  const std::optional<DeviceLocation> location = in_files_now(pci_address);
  return location ? at(*location) : std::nullopt;
}

std::string DeviceCatalog::why_not_located(std::string_view pci_address) const {
  const std::optional<DeviceLocation> location = in_files_now(pci_address);
  if (!location || at(*location)) return {};
  return location->node ? "the machine has no node " + std::to_string(*location->node)
                        : "the kernel does not know which node PCI device " + location->address + " is near";
}

std::optional<DeviceLocation> DeviceCatalog::in_files_now(std::string_view pci_address) const {
  const std::optional<std::string> address = parse_pci_address(pci_address);
  if (!address || machine_files() == nullptr) return std::nullopt;
  return locate_pci_device(inventory_.sysfs, *address);
}

std::optional<DeviceRef> DeviceCatalog::in_topology(std::string_view pci_address) const {
  const auto devices = sdk::pci_devices(topology_);
  for (std::uint32_t i = 0; i < devices.size() && !pci_address.empty(); ++i) {
    if (sdk::text(devices[i].address) == pci_address) return DeviceRef{.pci_device = i};
  }
  return std::nullopt;
}

std::optional<DeviceRef> DeviceCatalog::at(const DeviceLocation& location) const {
  if (auto ref = in_topology(location.address)) return ref;
  for (const topolet_node& node : sdk::nodes(topology_)) {
    if (location.node == node.os_index) return DeviceRef{.node = node.os_index, .address = location.address};
  }
  return std::nullopt;
}

std::string_view DeviceCatalog::name_of(const DeviceRef& ref) const {
  if (ref.pci_device != TOPOLET_NONE) return sdk::text(sdk::pci_devices(topology_)[ref.pci_device].address);
  if (ref.os_device != TOPOLET_NONE) return sdk::text(sdk::os_devices(topology_)[ref.os_device].name);
  return ref.address;
}

std::vector<DeviceRef> DeviceCatalog::pci_functions(const PciMatch& pci_match) const {
  std::vector<DeviceRef> found;
  const auto devices = sdk::pci_devices(topology_);
  for (std::uint32_t i = 0; i < devices.size(); ++i) {
    std::array<char, 8> digits{};
    std::snprintf(digits.data(), digits.size(), "%04x", devices[i].class_id & 0xffffU);
    if (devices[i].vendor_id == pci_match.vendor_id &&
        (!pci_match.device_id || devices[i].device_id == *pci_match.device_id) &&
        std::string_view(digits.data()).starts_with(pci_match.class_digits)) {
      found.push_back({.pci_device = i});
    }
  }
  return found;
}

std::vector<DeviceRef> DeviceCatalog::with_prefix(std::string_view prefix, std::uint32_t kind) const {
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
  std::vector<DeviceRef> refs;
  for (const std::uint32_t device : found) refs.push_back(ref_of(device));
  return refs;
}

std::vector<DeviceRef> DeviceCatalog::unique(std::vector<DeviceRef> refs) {
  std::vector<DeviceRef> each;
  for (const DeviceRef& ref : refs) {
    if (std::find(each.begin(), each.end(), ref) == each.end()) each.push_back(ref);
  }
  return each;
}

DeviceRef DeviceCatalog::ref_of(std::uint32_t os_device) const {
  const topolet_os_device& device = sdk::os_devices(topology_)[os_device];
  if (device.pci_device < topology_.pci_device_count) return {.pci_device = device.pci_device};
  return {.os_device = os_device};
}

}  // namespace topolet::gpu
