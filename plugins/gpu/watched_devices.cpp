#include "plugins/gpu/watched_devices.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "plugins/gpu/locality.hpp"

namespace topolet::gpu {
namespace {

std::string vendor_of(const topolet_pci_device& device) { return std::to_string(device.vendor_id); }

/// "/dev/vacc" of "/dev/vacc3".
std::string without_number(std::string_view name) {
  return std::string(name.substr(0, name.find_last_not_of("0123456789") + 1));
}

bool is_openfabrics(const topolet_topology& topology, std::uint32_t pci_device) {
  const auto devices = sdk::os_devices(topology);
  return std::any_of(devices.begin(), devices.end(), [pci_device](const topolet_os_device& device) {
    return device.pci_device == pci_device && device.kind == TOPOLET_OS_DEVICE_OPENFABRICS;
  });
}

std::vector<std::string> kinds_of_pci_device(const topolet_topology& topology, std::uint32_t position) {
  const topolet_pci_device& device = sdk::pci_devices(topology)[position];
  const DeviceRef ref{.pci_device = position};
  if (is_accelerator(topology, ref)) return {"accelerator", "accelerator of " + vendor_of(device)};
  if (is_openfabrics(topology, position)) return {"OpenFabrics", "OpenFabrics of " + vendor_of(device)};
  return {std::string(noun_of(topology, ref)) + " of " + vendor_of(device) + ' ' + std::to_string(device.device_id)};
}

/// Returns the kinds of a device without a PCI device.
std::vector<std::string> kinds_of_os_device(const topolet_topology& topology, std::uint32_t position) {
  const topolet_os_device& device = sdk::os_devices(topology)[position];
  std::vector<std::string> kinds = {"named " + without_number(sdk::text(device.name))};
  if (device.subtype.len > 0) kinds.push_back("subtype " + std::string(sdk::text(device.subtype)));
  if (is_accelerator(topology, {.os_device = position})) kinds.emplace_back("accelerator");
  return kinds;
}

}  // namespace

DevicesByKind::DevicesByKind(const topolet_topology& topology) {
  for (std::uint32_t i = 0; i < topology.pci_device_count; ++i) {
    const std::string_view address = sdk::text(sdk::pci_devices(topology)[i].address);
    for (const std::string& kind : kinds_of_pci_device(topology, i)) kinds_[kind].insert(address);
  }
  for (std::uint32_t i = 0; i < topology.os_device_count; ++i) {
    const topolet_os_device& device = sdk::os_devices(topology)[i];
    if (device.pci_device != TOPOLET_NONE) continue;
    for (const std::string& kind : kinds_of_os_device(topology, i)) kinds_[kind].insert(sdk::text(device.name));
  }
}

DevicesByKind::Names DevicesByKind::of_complete_kinds(const Names& names) const {
  Names complete;
  for (const auto& [_, members] : kinds_) {
    const bool has_all = std::includes(names.begin(), names.end(), members.begin(), members.end());
    if (members.size() > 1 && has_all) complete.insert(members.begin(), members.end());
  }
  return complete;
}

bool requests_less_than_a_cpu(const topolet_demand* demand) {
  constexpr std::int64_t kOneCpu = 1000;
  return demand != nullptr && demand->cpu_request_milli < kOneCpu;
}

void mark_watched(const topolet_request& request, const DeviceCatalog& catalog, ContainerDevices& container) {
  std::vector<Device>& devices = container.devices;
  if (request.exclusive != 0 || devices.size() < 2 || !requests_less_than_a_cpu(request.workload->demand)) return;
  DevicesByKind::Names names;
  for (const Device& device : devices) names.insert(catalog.name_of(device.ref));
  const DevicesByKind::Names complete = DevicesByKind(catalog.topology()).of_complete_kinds(names);
  for (Device& device : devices) {
    device.is_watched = device.is_one_of_all || complete.contains(catalog.name_of(device.ref));
  }
}

bool watches_only(const ContainerDevices& container) {
  return !container.devices.empty() && std::all_of(container.devices.begin(), container.devices.end(),
                                                   [](const Device& device) { return device.is_watched; });
}

ContainerDevices devices_to_be_near(ContainerDevices container) {
  if (!watches_only(container))
    std::erase_if(container.devices, [](const Device& device) { return device.is_watched; });
  return container;
}

std::string describe_watched(const topolet_topology& topology, const ContainerDevices& container) {
  std::map<std::string_view, std::size_t> count;
  for (const Device& device : container.devices) {
    if (device.is_watched) ++count[noun_of(topology, device.ref)];
  }
  std::string all;
  for (const auto& [noun, number] : count) {
    all += (all.empty() ? "all " : " and all ") + sdk::counted(number, std::string(noun));
  }
  return all.empty() ? all : "it has " + all + " and requests less than one CPU: taken to watch them, and to use none";
}

}  // namespace topolet::gpu
