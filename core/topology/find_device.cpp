#include "core/topology/find_device.hpp"

#include <algorithm>

#include "core/topology/pci_address.hpp"

namespace topolet::topology {
namespace {

DevicePlace place_of(const PciDevice* device) {
  return device == nullptr ? DevicePlace() : DevicePlace{device->address, device->nodes};
}

const PciDevice* find_by_file(const Topology& topology, std::string_view path) {
  const auto& files = topology.device_files;
  const auto found =
      std::lower_bound(files.begin(), files.end(), path,
                       [](const DeviceFile& file, std::string_view wanted) { return file.path < wanted; });
  return found != files.end() && found->path == path ? topology.pci_device(found->address) : nullptr;
}

const OsDevice* find_os_device(const Topology& topology, std::string_view name) {
  const auto found = std::find_if(topology.os_devices.begin(), topology.os_devices.end(),
                                  [name](const OsDevice& device) { return device.name == name; });
  return found != topology.os_devices.end() && !name.empty() ? &*found : nullptr;
}

/// The last address in the text that is one of a device: those before it may be of bridges.
const PciDevice* find_by_address(const Topology& topology, std::string_view text) {
  constexpr std::string_view kLetters = "0123456789abcdefABCDEF:.";
  const PciDevice* last = nullptr;
  for (std::size_t begin = 0; (begin = text.find_first_of(kLetters, begin)) != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_not_of(kLetters, begin), text.size());
    std::string address(text.substr(begin, end - begin));
    begin = end;
    if (!is_pci_address(address)) continue;
    std::transform(address.begin(), address.end(), address.begin(), [](char letter) {
      return letter >= 'A' && letter <= 'F' ? static_cast<char>(letter + 32) : letter;
    });
    if (const PciDevice* device = topology.pci_device(address)) last = device;
  }
  return last;
}

}  // namespace

DevicePlace find_device(const Topology& topology, std::string_view name) {
  if (const PciDevice* device = find_by_file(topology, name)) return place_of(device);
  const std::string_view last_part = name.substr(name.find_last_of("/=") + 1);
  for (const std::string_view os_name : {name, last_part}) {
    const OsDevice* device = find_os_device(topology, os_name);
    if (device == nullptr) continue;
    const bool has_pci_device = device->pci_device != kNoPosition;
    return {has_pci_device ? topology.pci_devices[device->pci_device].address : "", device->nodes};
  }
  return place_of(find_by_address(topology, name));
}

}  // namespace topolet::topology
