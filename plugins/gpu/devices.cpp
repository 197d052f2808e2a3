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

/// The node that the nearest directory upwards tells of; the kernel writes -1 where it does not know.
std::optional<std::uint32_t> node_above(fs::path directory, const fs::path& top) {
  for (; directory.string().size() > top.string().size(); directory = directory.parent_path()) {
    const std::string line = read_line(directory / "numa_node");
    if (!line.empty()) return number(line);
  }
  return std::nullopt;
}

/// Of a directory of /sys/devices.
Place place_of(const fs::path& directory, const fs::path& sysfs) {
  const std::string below = directory.string().substr(std::min(directory.string().size(), sysfs.string().size()));
  return {pci_address_in(below).value_or(""), node_above(directory, sysfs)};
}

bool is_known(const Place& place) { return !place.address.empty() || place.node; }

/// A value of the "KEY=value" lines of a uevent file.
std::string uevent(const fs::path& directory, std::string_view key) {
  for (const std::string& line : split(read_text(directory / "uevent").value_or(""), '\n')) {
    if (line.starts_with(key) && line.size() > key.size() && line[key.size()] == '=')
      return line.substr(key.size() + 1);
  }
  return {};
}

class Reading {
 public:
  explicit Reading(const Roots& roots) : roots_(roots), sysfs_(resolved(roots.sysfs)) {
    // Paths below an empty one would be those of the working directory.
    if (sysfs_.empty()) sysfs_ = roots.sysfs;
  }

  Devices take(const std::vector<Kind>& kinds) {
    devices_.online = read_line(sysfs_ / "devices/system/cpu/online");
    devices_.present = read_line(sysfs_ / "devices/system/cpu/present");
    for (const char* const type : {"char", "block"}) read_numbers(type);
    read_iommu_groups();
    read_nvidia();
    for (const Kind& kind : kinds) {
      if (kind.finding == Finding::kLink) read_links(kind);
    }
    dev_ = resolved(roots_.dev);
    if (!dev_.empty()) read_names(dev_, 0);
    return std::move(devices_);
  }

 private:
  /// /sys/dev/char and block have every device that a driver has told the kernel of, by number.
  void read_numbers(const std::string& type) {
    const fs::path directory = sysfs_ / "dev" / type;
    for (const std::string& numbers : names_in(directory)) {
      const fs::path device = resolved(directory / numbers);
      Place place = device.empty() ? Place() : place_of_parts(device, 0);
      if (!is_known(place)) continue;
      const std::string name = uevent(device, "DEVNAME");
      if (!name.empty()) devices_.places["/dev/" + name] = place;
      by_number_[type + ' ' + numbers] = std::move(place);
    }
  }

  /// Consoles, loop devices and the like are nowhere; logical volumes and multipath disks are where their parts are.
  Place place_of_parts(const fs::path& device, int depth) const {
    constexpr int kDeepest = 4;
    if (device.string().find("/devices/virtual/") == std::string::npos) return place_of(device, sysfs_);
    std::vector<fs::path> parts;
    // A partition's are its disk's.
    for (const fs::path& disk : {device, device.parent_path()}) add_parts(disk, parts);
    std::optional<Place> common;
    for (const fs::path& part : depth < kDeepest ? parts : std::vector<fs::path>()) {
      const Place place = place_of_parts(part, depth + 1);
      if (!common) common = place;
      if (common->address != place.address) common->address.clear();
      if (common->node != place.node) common->node.reset();
    }
    return common.value_or(Place());
  }

  static void add_parts(const fs::path& disk, std::vector<fs::path>& parts) {
    constexpr std::size_t kMost = 16;
    const auto add = [&parts](const fs::path& link) {
      if (fs::path part = resolved(link); !part.empty() && parts.size() < kMost) parts.push_back(std::move(part));
    };
    for (const std::string& name : names_in(disk / "slaves")) add(disk / "slaves" / name);
    const fs::path subsystem = disk.parent_path();
    if (!subsystem.filename().string().starts_with("nvme-subsys")) return;
    for (const std::string& name : names_in(subsystem)) {
      const auto controller = matched("nvme*", name);
      if (controller && number(*controller)) add(subsystem / name);
    }
  }

  /// Of an IOMMU group. The bridge that its functions may be behind is in it, too, and is passed on to nobody.
  static std::string passed_on(const fs::path& functions) {
    const std::vector<std::string> names = names_in(functions);
    for (const std::string& name : names) {
      if (!read_line(functions / name / "class").starts_with("0x0604")) return name;
    }
    return names.empty() ? std::string() : names.front();
  }

  /// VFIO: the group's number is the name of its device node. Its functions are passed on together.
  void read_iommu_groups() {
    const fs::path groups = sysfs_ / "kernel/iommu_groups";
    for (const std::string& group : names_in(groups)) {
      const std::string name = passed_on(groups / group / "devices");
      const fs::path function = name.empty() ? fs::path() : resolved(groups / group / "devices" / name);
      Place place = function.empty() ? Place{pci_address(name).value_or("")} : place_of(function, sysfs_);
      if (is_known(place)) devices_.places["/dev/vfio/" + group] = std::move(place);
    }
  }

  /// NVIDIA's driver does not tell the kernel of its devices, but has files of its own.
  void read_nvidia() {
    const fs::path directory = roots_.proc / "driver/nvidia/gpus";
    for (const std::string& name : names_in(directory)) {
      NvidiaGpu gpu{pci_address(name).value_or(""), "", {}};
      for (const std::string& line : split(read_text(directory / name / "information").value_or(""), '\n')) {
        const std::size_t colon = line.find(':');
        if (colon == std::string::npos) continue;
        const std::string_view key = trimmed(std::string_view(line).substr(0, colon));
        const std::string_view value = trimmed(std::string_view(line).substr(colon + 1));
        if (key == "GPU UUID") gpu.uuid = value;
        if (key == "Device Minor") gpu.minor = number(value);
        if (key == "Bus Location") gpu.address = pci_address(value).value_or(gpu.address);
      }
      if (!gpu.address.empty()) devices_.nvidia.push_back(std::move(gpu));
    }
    // A domain may have more than four digits.
    std::sort(devices_.nvidia.begin(), devices_.nvidia.end(), [](const NvidiaGpu& a, const NvidiaGpu& b) {
      return std::pair(a.address.size(), a.address) < std::pair(b.address.size(), b.address);
    });
  }

  /// Whatever the pattern's '*' stands for in names of one directory names a device of the kind.
  void read_links(const Kind& kind) {
    const fs::path pattern = sysfs_ / kind.link;
    fs::path above;
    fs::path below;
    std::string starred;
    for (const fs::path& part : pattern) {
      if (!starred.empty()) {
        below /= part;
      } else if (part.string().find('*') != std::string::npos) {
        starred = part.string();
      } else {
        above /= part;
      }
    }
    if (starred.empty()) return add_link(kind.path, pattern);
    for (const std::string& name : names_in(above)) {
      const auto star = matched(starred, name);
      if (star) add_link(filled(kind.path, *star), above / name / below);
    }
  }

  void add_link(const std::string& path, const fs::path& link) {
    const fs::path directory = resolved(link);
    Place place = directory.empty() ? Place() : place_of(directory, sysfs_);
    if (is_known(place)) devices_.places[path] = std::move(place);
  }

  /// Links such as /dev/disk/by-id/…, and nodes that are called other than the kernel would.
  void read_names(const fs::path& directory, int depth) {
    static const std::set<std::string> kElsewhere = {"pts", "shm", "mqueue", "hugepages", "fd"};
    constexpr int kDeepest = 4;
    constexpr std::size_t kMost = 4096;
    if (depth > kDeepest || devices_.directories.size() > kMost) return;
    devices_.directories.emplace_back(directory, time_of_change(directory));
    for (const std::string& name : names_in(directory)) {
      const fs::path path = directory / name;
      struct stat status {};
      if (lstat(path.c_str(), &status) != 0) continue;
      if (S_ISDIR(status.st_mode) && !(depth == 0 && kElsewhere.contains(name))) read_names(path, depth + 1);
      if (S_ISLNK(status.st_mode)) add_alias(path);
      if (S_ISCHR(status.st_mode)) add_node(path, "char ", status.st_rdev);
      if (S_ISBLK(status.st_mode)) add_node(path, "block ", status.st_rdev);
    }
  }

  std::string as_named(const fs::path& path) const { return "/dev" + path.string().substr(dev_.string().size()); }

  void add_alias(const fs::path& path) {
    std::error_code error;
    fs::path target = resolved(path);
    // The kernel's name counts even while the node is not there.
    if (target.empty()) target = (path.parent_path() / fs::read_symlink(path, error)).lexically_normal();
    if (!target.string().starts_with(dev_.string() + '/')) return;
    devices_.aliases[as_named(path)] = as_named(target);
  }

  void add_node(const fs::path& path, const std::string& type, dev_t number) {
    const auto found = by_number_.find(type + std::to_string(major(number)) + ':' + std::to_string(minor(number)));
    if (found != by_number_.end()) devices_.places.try_emplace(as_named(path), found->second);
  }

  const Roots& roots_;
  fs::path sysfs_;
  fs::path dev_;
  std::map<std::string, Place> by_number_;
  Devices devices_;
};

}  // namespace

Devices read_devices(const Roots& roots, const std::vector<Kind>& kinds) { return Reading(roots).take(kinds); }

bool has_changed(const Devices& devices) {
  return std::any_of(devices.directories.begin(), devices.directories.end(),
                     [](const auto& directory) { return time_of_change(directory.first) != directory.second; });
}

}  // namespace topolet::gpu
