#include "core/topology/device_files.hpp"

#include <fstream>
#include <string>
#include <system_error>
#include <utility>

#include "core/topology/pci_address.hpp"

namespace topolet::topology {
namespace {

namespace fs = std::filesystem;

/// Returns the address of the PCI device itself, which comes after the bridges above it; empty if there is none on the
/// way.
std::string last_pci_address(const fs::path& device) {
  std::string address;
  for (const fs::path& part : device) {
    if (is_pci_address(part.native())) address = part;
  }
  return address;
}

/// As the kernel gives it to udev; empty if there is none.
std::string name_below_dev(const fs::path& device) {
  constexpr std::string_view kKey = "DEVNAME=";
  std::ifstream uevent(device / "uevent");
  for (std::string line; std::getline(uevent, line);) {
    if (line.starts_with(kKey)) return line.substr(kKey.size());
  }
  return {};
}

}  // namespace

std::vector<DeviceFile> read_device_files(const fs::path& sysfs_root) {
  std::vector<DeviceFile> files;
  for (const char* type : {"char", "block"}) {
    std::error_code error;
    fs::directory_iterator entry(sysfs_root / "dev" / type, error);
    for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
      std::error_code no_link;
      std::string address = last_pci_address(fs::read_symlink(entry->path(), no_link));
      if (address.empty()) continue;
      const std::string name = name_below_dev(entry->path());
      if (!name.empty()) files.push_back({"/dev/" + name, std::move(address)});
    }
  }
  return files;
}

std::map<std::string, std::uint32_t> read_device_nodes(const fs::path& sysfs_root) {
  std::map<std::string, std::uint32_t> nodes;
  std::error_code error;
  fs::directory_iterator entry(sysfs_root / "bus/pci/devices", error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::int64_t node = -1;
    std::ifstream file(entry->path() / "numa_node");
    if (file >> node && node >= 0 && node <= kMaxOsIndex) {
      nodes[entry->path().filename()] = static_cast<std::uint32_t>(node);
    }
  }
  return nodes;
}

}  // namespace topolet::topology
