#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <set>
#include <utility>

#include "plugins/gpu/files.hpp"
#include "plugins/gpu/inventory.hpp"
#include "plugins/gpu/text.hpp"

namespace topolet::gpu {
namespace {

namespace fs = std::filesystem;

/// From the nearest directory upwards that has a file numa_node. The kernel writes -1 where it does not know the node.
std::optional<std::uint32_t> numa_node_above(fs::path directory, const fs::path& root) {
  for (; directory.string().size() > root.string().size(); directory = directory.parent_path()) {
    const std::string line = read_line(directory / "numa_node");
    if (!line.empty()) return parse_number(line);
  }
  return std::nullopt;
}

/// `directory`: below /sys/devices.
DeviceLocation location_of(const fs::path& directory, const fs::path& sysfs) {
  const std::string below_sysfs = directory.string().substr(std::min(directory.string().size(), sysfs.string().size()));
  return {find_pci_address(below_sysfs).value_or(""), numa_node_above(directory, sysfs)};
}

bool is_located(const DeviceLocation& location) { return !location.address.empty() || location.node; }

/// The value of a "KEY=value" line in the uevent file.
std::string uevent_value(const fs::path& directory, std::string_view key) {
  for (const std::string& line : split(read_file(directory / "uevent").value_or(""), '\n')) {
    if (line.starts_with(key) && line.size() > key.size() && line[key.size()] == '=')
      return line.substr(key.size() + 1);
  }
  return {};
}

class KernelDeviceReader {
 public:
  explicit KernelDeviceReader(const Roots& roots) : roots_(roots), sysfs_(canonical_path(roots.sysfs)) {
    // Paths relative to an empty one would be looked up in the working directory.
    if (sysfs_.empty()) sysfs_ = roots.sysfs;
  }

  KernelDevices read(const std::vector<DeviceKind>& kinds) {
    devices_.online = read_line(sysfs_ / "devices/system/cpu/online");
    devices_.present = read_line(sysfs_ / "devices/system/cpu/present");
    for (const char* const type : {"char", "block"}) read_device_numbers(type);
    read_iommu_groups();
    read_nvidia();
    for (const DeviceKind& kind : kinds) {
      if (kind.locate_by == LocateBy::kLink) read_links(kind);
    }
    dev_ = canonical_path(roots_.dev);
    if (!dev_.empty()) read_dev(dev_, 0);
    return std::move(devices_);
  }

 private:
  /// /sys/dev/char and /sys/dev/block list by number every device that a driver has registered with the kernel.
  void read_device_numbers(const std::string& type) {
    const fs::path directory = sysfs_ / "dev" / type;
    for (const std::string& numbers : list_directory(directory)) {
      const fs::path device = canonical_path(directory / numbers);
      DeviceLocation location = device.empty() ? DeviceLocation() : location_of_parts(device, 0);
      if (!is_located(location)) continue;
      const std::string name = uevent_value(device, "DEVNAME");
      if (!name.empty()) devices_.locations["/dev/" + name] = location;
      location_by_number_[type + ' ' + numbers] = std::move(location);
    }
  }

  /// Virtual devices such as consoles and loop devices have no location; logical volumes and multipath disks have what
  /// all their parts have in common.
  DeviceLocation location_of_parts(const fs::path& device, int depth) const {
    constexpr int kMaxDepth = 4;
    if (device.string().find("/devices/virtual/") == std::string::npos) return location_of(device, sysfs_);
    std::vector<fs::path> parts;
    // The parts of a partition are those of its disk.
    for (const fs::path& disk : {device, device.parent_path()}) collect_parts(disk, parts);
    std::optional<DeviceLocation> common;
    for (const fs::path& part : depth < kMaxDepth ? parts : std::vector<fs::path>()) {
      const DeviceLocation location = location_of_parts(part, depth + 1);
      if (!common) common = location;
      if (common->address != location.address) common->address.clear();
      if (common->node != location.node) common->node.reset();
    }
    return common.value_or(DeviceLocation());
  }

  static void collect_parts(const fs::path& disk, std::vector<fs::path>& parts) {
    constexpr std::size_t kMaxCount = 16;
    const auto add = [&parts](const fs::path& link) {
      if (fs::path part = canonical_path(link); !part.empty() && parts.size() < kMaxCount)
        parts.push_back(std::move(part));
    };
    for (const std::string& name : list_directory(disk / "slaves")) add(disk / "slaves" / name);
    const fs::path subsystem = disk.parent_path();
    if (!subsystem.filename().string().starts_with("nvme-subsys")) return;
    for (const std::string& name : list_directory(subsystem)) {
      const auto controller = match_pattern("nvme*", name);
      if (controller && parse_number(*controller)) add(subsystem / name);
    }
  }

  /// The function of an IOMMU group that a container gets. A bridge above it may belong to the group, too, but is not
  /// assigned to anybody.
  static std::string assigned_function(const fs::path& functions) {
    const std::vector<std::string> names = list_directory(functions);
    for (const std::string& name : names) {
      if (!read_line(functions / name / "class").starts_with("0x0604")) return name;
    }
    return names.empty() ? std::string() : names.front();
  }

  /// VFIO names its device nodes by IOMMU group, and assigns the functions of a group together.
  void read_iommu_groups() {
    const fs::path groups = sysfs_ / "kernel/iommu_groups";
    for (const std::string& group : list_directory(groups)) {
      const std::string name = assigned_function(groups / group / "devices");
      const fs::path function = name.empty() ? fs::path() : canonical_path(groups / group / "devices" / name);
      DeviceLocation location =
          function.empty() ? DeviceLocation{parse_pci_address(name).value_or("")} : location_of(function, sysfs_);
      if (is_located(location)) devices_.locations["/dev/vfio/" + group] = std::move(location);
    }
  }

  /// NVIDIA's driver does not register its devices with the kernel, but has files of its own.
  void read_nvidia() {
    const fs::path directory = roots_.proc / "driver/nvidia/gpus";
    for (const std::string& name : list_directory(directory)) {
      NvidiaGpu gpu{parse_pci_address(name).value_or(""), "", {}};
      for (const std::string& line : split(read_file(directory / name / "information").value_or(""), '\n')) {
        const std::size_t colon = line.find(':');
        if (colon == std::string::npos) continue;
        const std::string_view key = trimmed(std::string_view(line).substr(0, colon));
        const std::string_view value = trimmed(std::string_view(line).substr(colon + 1));
        if (key == "GPU UUID") gpu.uuid = value;
        if (key == "Device Minor") gpu.minor = parse_number(value);
        if (key == "Bus Location") gpu.address = parse_pci_address(value).value_or(gpu.address);
      }
      if (!gpu.address.empty()) devices_.nvidia.push_back(std::move(gpu));
    }
    // By length first, because a domain may have more than four digits.
    std::sort(devices_.nvidia.begin(), devices_.nvidia.end(), [](const NvidiaGpu& a, const NvidiaGpu& b) {
      return std::pair(a.address.size(), a.address) < std::pair(b.address.size(), b.address);
    });
  }

  /// Every name that matches the part of the pattern with the '*' belongs to a device of the kind.
  void read_links(const DeviceKind& kind) {
    const fs::path pattern = sysfs_ / kind.link;
    fs::path before_star;
    fs::path after_star;
    std::string star_part;
    for (const fs::path& part : pattern) {
      if (!star_part.empty()) {
        after_star /= part;
      } else if (part.string().find('*') != std::string::npos) {
        star_part = part.string();
      } else {
        before_star /= part;
      }
    }
    if (star_part.empty()) return add_link(kind.path, pattern);
    for (const std::string& name : list_directory(before_star)) {
      const auto star = match_pattern(star_part, name);
      if (star) add_link(fill_pattern(kind.path, *star), before_star / name / after_star);
    }
  }

  void add_link(const std::string& path, const fs::path& link) {
    const fs::path directory = canonical_path(link);
    DeviceLocation location = directory.empty() ? DeviceLocation() : location_of(directory, sysfs_);
    if (is_located(location)) devices_.locations[path] = std::move(location);
  }

  /// Finds links such as /dev/disk/by-id/…, and device nodes that have other names than the kernel gives.
  void read_dev(const fs::path& directory, int depth) {
    static const std::set<std::string> kNotHardware = {"pts", "shm", "mqueue", "hugepages", "fd"};
    constexpr int kMaxDepth = 4;
    constexpr std::size_t kMaxCount = 4096;
    if (depth > kMaxDepth || devices_.directories.size() > kMaxCount) return;
    devices_.directories.emplace_back(directory, modified_ns(directory));
    for (const std::string& name : list_directory(directory)) {
      const fs::path path = directory / name;
      struct stat status {};
      if (lstat(path.c_str(), &status) != 0) continue;
      if (S_ISDIR(status.st_mode) && !(depth == 0 && kNotHardware.contains(name))) read_dev(path, depth + 1);
      if (S_ISLNK(status.st_mode)) add_alias(path);
      if (S_ISCHR(status.st_mode)) add_node(path, "char ", status.st_rdev);
      if (S_ISBLK(status.st_mode)) add_node(path, "block ", status.st_rdev);
    }
  }

  std::string name_in_dev(const fs::path& path) const { return "/dev" + path.string().substr(dev_.string().size()); }

  void add_alias(const fs::path& path) {
    std::error_code error;
    fs::path target = canonical_path(path);
    // A link to a node that does not exist yet still tells the name that the kernel will give it.
    if (target.empty()) target = (path.parent_path() / fs::read_symlink(path, error)).lexically_normal();
    if (!target.string().starts_with(dev_.string() + '/')) return;
    devices_.aliases[name_in_dev(path)] = name_in_dev(target);
  }

  void add_node(const fs::path& path, const std::string& type, dev_t number) {
    const auto found =
        location_by_number_.find(type + std::to_string(major(number)) + ':' + std::to_string(minor(number)));
    if (found != location_by_number_.end()) devices_.locations.try_emplace(name_in_dev(path), found->second);
  }

  const Roots& roots_;
  fs::path sysfs_;
  fs::path dev_;
  std::map<std::string, DeviceLocation> location_by_number_;
  KernelDevices devices_;
};

}  // namespace

std::optional<DeviceLocation> locate_pci_device(const fs::path& sysfs, const std::string& address) {
  const fs::path directory = sysfs / "bus/pci/devices" / address;
  std::error_code error;
  if (sysfs.empty() || !fs::is_directory(directory, error)) return std::nullopt;
  DeviceLocation location{address, parse_number(read_line(directory / "numa_node"))};
  // A virtual function is where its physical one is.
  if (!location.node) location.node = parse_number(read_line(directory / "physfn/numa_node"));
  return location;
}

KernelDevices read_kernel_devices(const Roots& roots, const std::vector<DeviceKind>& kinds) {
  return KernelDeviceReader(roots).read(kinds);
}

bool has_changed(const KernelDevices& devices) {
  return std::any_of(devices.directories.begin(), devices.directories.end(),
                     [](const auto& directory) { return modified_ns(directory.first) != directory.second; });
}

}  // namespace topolet::gpu
