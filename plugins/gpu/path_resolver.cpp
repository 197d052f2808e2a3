#include "plugins/gpu/path_resolver.hpp"

#include <algorithm>
#include <climits>
#include <filesystem>

#include "plugins/gpu/locality.hpp"
#include "plugins/gpu/pci_ids.hpp"
#include "plugins/gpu/text.hpp"

namespace topolet::gpu {
namespace {

constexpr std::uint32_t kFirstRenderMinor = 128;  // DRM minor of /dev/dri/renderD128
constexpr const char* kUnknown = "its PCI device is not known";
constexpr std::string_view kNvidiaNode = "/dev/nvidia*";
constexpr std::string_view kRenderNode = "/dev/dri/renderD*";
constexpr std::string_view kCardNode = "/dev/dri/card*";
constexpr std::string_view kNvmeNode = "/dev/nvme*";
constexpr std::string_view kVfioNode = "/dev/vfio/*";
constexpr std::string_view kVerbsNode = "/dev/infiniband/uverbs*";

constexpr std::string_view kDisplayDirectory = "/dev/dri";

void add(std::vector<DeviceRef>& refs, const std::vector<DeviceRef>& more) {
  refs.insert(refs.end(), more.begin(), more.end());
}

std::optional<std::uint32_t> number_in_path(std::string_view pattern, std::string_view path) {
  const auto star = match_pattern(pattern, path);
  return star ? parse_number(*star) : std::nullopt;
}

std::string_view without_trailing_slash(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  return path;
}

}  // namespace

ResolvedPath PathResolver::resolve(std::string_view path_given) const {
  if (path_given.size() >= PATH_MAX) return {};  // the kernel refuses to open such a path
  const std::string normalized = std::filesystem::path(path_given).lexically_normal().string();
  const std::string_view path = without_trailing_slash(normalized);
  ResolvedPath found = resolve_normalized(path);
  // A driver that runs in a container has its own /dev with the same nodes, such as /run/nvidia/driver/dev.
  const std::size_t dev = path.rfind("/dev/");
  const bool is_elsewhere = dev != 0 && dev != std::string_view::npos;
  if (found.refs.empty() && found.problem.empty() && is_elsewhere) found = resolve_normalized(path.substr(dev));
  return found;
}

ResolvedPath PathResolver::resolve_normalized(std::string_view path) const {
  std::string_view target = path;
  if (const Inventory* const files = catalog_.machine_files()) {
    const auto alias = files->devices.aliases.find(path);
    if (alias != files->devices.aliases.end()) target = alias->second;
  }
  if (const auto ref = catalog_.by_name(path)) return {{*ref}, {}};
  // The target of a link says more than its name.
  if (const auto ref = target == path ? std::nullopt : single_device(target)) return {{*ref}, {}};
  if (const auto ref = single_device(path)) return {{*ref}, {}};
  ResolvedPath found{devices_in(target), {}};
  if (found.refs.empty()) found.problem = why_not_in_topology(target);
  if (found.refs.empty() && found.problem.empty()) found.problem = why_missing(path);
  return found;
}

std::optional<DeviceRef> PathResolver::device_of_kind(const DeviceKind& kind, std::string_view star) const {
  const std::string path = fill_pattern(kind.path, star);
  if (const auto ref = path.empty() ? std::nullopt : catalog_.by_name(path)) return ref;
  switch (kind.locate_by) {
    case LocateBy::kSysfs:
    case LocateBy::kLink:
      return from_kernel(path);
    case LocateBy::kFunction: {
      // The kernel's information on the device node is more reliable than counting.
      if (const auto ref = from_kernel(path)) return ref;
      const auto n = parse_number(star);
      return n ? nth(catalog_.pci_functions(kind.pci_match), *n) : std::nullopt;
    }
    case LocateBy::kItem:
      return catalog_.by_address(parse_pci_address(star).value_or(""));
    case LocateBy::kAddress:
      return catalog_.by_address(kind.address);
    case LocateBy::kNode:
      return catalog_.at(DeviceLocation{"", kind.node});
  }
  return std::nullopt;
}

std::vector<DeviceRef> PathResolver::all_of_kind(const DeviceKind& kind) const {
  std::vector<DeviceRef> refs;
  constexpr std::uint32_t kMaxCount = 256;
  const bool is_single = kind.path.find('*') == std::string::npos;
  for (std::uint32_t n = 0; n < (is_single ? 1 : kMaxCount); ++n) {
    if (const auto ref = device_of_kind(kind, std::to_string(n))) refs.push_back(*ref);
  }
  // Devices that have names instead of numbers.
  for (const topolet_os_device& device : sdk::os_devices(catalog_.topology())) {
    const std::string_view name = sdk::text(device.name);
    const auto ref = !is_single && match_pattern(kind.path, name) ? catalog_.by_name(name) : std::nullopt;
    if (ref) refs.push_back(*ref);
  }
  if (const Inventory* const files = is_single ? nullptr : catalog_.machine_files()) {
    for (const auto& [path, location] : files->devices.locations) {
      const auto ref = match_pattern(kind.path, path) ? catalog_.at(location) : std::nullopt;
      if (ref) refs.push_back(*ref);
    }
  }
  return DeviceCatalog::unique(std::move(refs));
}

std::optional<DeviceRef> PathResolver::single_device(std::string_view path) const {
  if (const auto ref = catalog_.by_name(path)) return ref;
  for (const DeviceKind& kind : kinds_) {
    const auto star = kind.is_configured && !kind.path.empty() ? match_pattern(kind.path, path) : std::nullopt;
    if (!star) continue;
    if (const auto ref = device_of_kind(kind, *star)) return ref;
  }
  if (const auto minor = number_in_path(kNvidiaNode, path)) return nvidia_.by_minor(*minor);
  if (const auto ref = from_kernel(path)) return ref;
  for (const DeviceKind& kind : kinds_) {
    const auto star = kind.is_configured ? std::nullopt : match_pattern(kind.path, path);
    if (!star) continue;
    if (const auto ref = device_of_kind(kind, *star)) return ref;
  }
  return by_topology_name(path);
}

std::optional<DeviceRef> PathResolver::from_kernel(std::string_view path) const {
  if (catalog_.machine_files() == nullptr) return std::nullopt;
  const auto& locations = catalog_.machine_files()->devices.locations;
  const auto found = locations.find(path);
  return found == locations.end() ? std::nullopt : catalog_.at(found->second);
}

/// Finds a device that the machine's files do not show: by names in the topology, and by counting as the kernel does.
std::optional<DeviceRef> PathResolver::by_topology_name(std::string_view path) const {
  if (!path.starts_with("/dev/")) return std::nullopt;
  if (const auto ref = catalog_.by_address(find_pci_address(path).value_or(""))) return ref;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (const auto ref = catalog_.by_name(name)) return ref;
  if (const auto render = number_in_path(kRenderNode, path)) {
    return *render < kFirstRenderMinor ? std::nullopt : display(*render - kFirstRenderMinor);
  }
  if (const auto card = number_in_path(kCardNode, path)) return display(*card);
  if (const auto verbs = number_in_path(kVerbsNode, path)) {
    return nth(DeviceCatalog::unique(catalog_.with_prefix("", TOPOLET_OS_DEVICE_OPENFABRICS)), *verbs);
  }
  return block_device(name);
}

/// Finds a partition through its disk, and an NVMe controller through its first namespace.
std::optional<DeviceRef> PathResolver::block_device(std::string_view name) const {
  const auto disks = [this](std::string_view prefix) { return catalog_.with_prefix(prefix, TOPOLET_OS_DEVICE_BLOCK); };
  if (const auto controller = match_pattern("nvme*", name); controller && parse_number(*controller)) {
    return nth(disks(std::string(name) + 'n'), 0);
  }
  const std::size_t digits = name.find_last_not_of("0123456789");
  if (digits == std::string_view::npos || digits + 1 == name.size()) return std::nullopt;
  std::string_view disk = name.substr(0, digits + 1);
  if (disk.starts_with("nvme") && disk.ends_with('p')) disk.remove_suffix(1);
  if (name.starts_with("nvme") && disk.ends_with('n')) return std::nullopt;
  const auto ref = catalog_.by_name(disk);
  const auto blocks = disks(disk);
  const bool is_block = ref && std::find(blocks.begin(), blocks.end(), *ref) != blocks.end();
  return is_block ? ref : std::nullopt;
}

/// Drivers allocate card and render minors in pairs. If the topology names neither, the display functions of AMD and
/// Intel are counted.
std::optional<DeviceRef> PathResolver::display(std::uint32_t card) const {
  if (const auto ref = catalog_.by_name("card" + std::to_string(card))) return ref;
  if (const auto ref = catalog_.by_name("renderD" + std::to_string(card + kFirstRenderMinor))) return ref;
  if (!catalog_.with_prefix("card").empty() || !catalog_.with_prefix("renderD").empty()) return std::nullopt;
  return nth(display_functions(), card);
}

std::vector<DeviceRef> PathResolver::display_functions() const {
  std::vector<DeviceRef> functions;
  // GPUs such as the MI300 are processing accelerators by their PCI class, not displays.
  for (const PciMatch& pci_match :
       {PciMatch{kAmdVendor, {}, "03"}, PciMatch{kAmdVendor, {}, "12"}, PciMatch{kIntelVendor, {}, "03"}}) {
    for (const DeviceRef& ref : catalog_.pci_functions(pci_match)) functions.push_back(ref);
  }
  std::sort(functions.begin(), functions.end(),
            [](const DeviceRef& a, const DeviceRef& b) { return a.pci_device < b.pci_device; });
  return functions;
}

/// The displays that compute. A board's own display controller has a card, but no render node.
std::vector<DeviceRef> PathResolver::gpus_among(std::vector<DeviceRef> displays) const {
  std::vector<DeviceRef> rendering = catalog_.with_prefix("renderD");
  add(rendering, nodes_below(kDisplayDirectory, "renderD"));
  std::erase_if(displays, [&](const DeviceRef& ref) {
    if (ref.pci_device == TOPOLET_NONE || is_accelerator(catalog_.topology(), ref)) return false;
    const std::uint32_t vendor = sdk::pci_devices(catalog_.topology())[ref.pci_device].vendor_id;
    const bool is_gpu_maker = vendor == kAmdVendor || vendor == kIntelVendor || vendor == kNvidiaVendor;
    return !is_gpu_maker && std::find(rendering.begin(), rendering.end(), ref) == rendering.end();
  });
  return displays;
}

/// The devices of a directory whose names start with `prefix`, as the topology and the machine's files know them.
std::vector<DeviceRef> PathResolver::nodes_below(std::string_view directory, std::string_view prefix) const {
  const std::string path = std::string(directory) + '/' + std::string(prefix);
  std::vector<DeviceRef> refs = catalog_.with_prefix(path);
  const Inventory* const files = catalog_.machine_files();
  if (files == nullptr) return refs;
  for (auto location = files->devices.locations.lower_bound(path);
       location != files->devices.locations.end() && location->first.starts_with(path); ++location) {
    if (const auto ref = catalog_.at(location->second)) refs.push_back(*ref);
  }
  return refs;
}

/// A runtime gives a container all device nodes of a directory.
std::vector<DeviceRef> PathResolver::devices_in(std::string_view directory) const {
  if (!directory.starts_with("/dev/")) return {};
  std::vector<DeviceRef> refs = nodes_below(directory, "");
  if (directory == kDisplayDirectory) {
    if (refs.empty()) {
      add(refs, catalog_.with_prefix("card", TOPOLET_OS_DEVICE_GPU));
      add(refs, catalog_.with_prefix("renderD", TOPOLET_OS_DEVICE_GPU));
    }
    refs = gpus_among(std::move(refs));
    if (refs.empty()) refs = display_functions();
  }
  if (refs.empty() && directory == "/dev/infiniband") refs = catalog_.with_prefix("", TOPOLET_OS_DEVICE_OPENFABRICS);
  return DeviceCatalog::unique(std::move(refs));
}

std::string PathResolver::why_unresolved(const DeviceKind& kind) {
  if (kind.locate_by == LocateBy::kNode) return "the machine has no node " + std::to_string(kind.node);
  if (kind.locate_by == LocateBy::kAddress) return "the machine has no PCI device " + kind.address;
  return kUnknown;
}

/// Explains why the topology lacks a device that the kernel knows; empty for others.
std::string PathResolver::why_not_in_topology(std::string_view path) const {
  const Inventory* const files = catalog_.machine_files();
  if (files == nullptr) return {};
  const auto location = files->devices.locations.find(path);
  if (location == files->devices.locations.end()) return {};
  const auto& [address, node] = location->second;
  if (address.empty()) return "the machine has no node " + std::to_string(*node);
  return "the topology has no PCI device " + address +
         (node ? " and no node " + std::to_string(*node) : ", and the kernel reports no node for it");
}

/// /dev/kfd is shared by all of AMD's GPUs.
bool PathResolver::has_kfd_gpus() const {
  for (const std::string_view prefix : {"card", "renderD", "rsmi", "/dev/dri/"}) {
    if (!catalog_.with_prefix(prefix).empty()) return true;
  }
  return !display_functions().empty() || !nodes_below(kDisplayDirectory, "").empty();
}

/// Explains why a path that should be a device is not one; empty for other paths.
std::string PathResolver::why_missing(std::string_view path) const {
  if (path == kDisplayDirectory) return "no GPU was found in this directory";
  if (path == "/dev/infiniband") return "no device was found in this directory";
  if (path == "/dev/kfd" && !has_kfd_gpus()) return "no AMD GPU was found";
  for (const DeviceKind& kind : kinds_) {
    const auto star = kind.path.empty() ? std::nullopt : match_pattern(kind.path, path);
    if (star && (kind.is_configured || parse_number(*star))) return why_unresolved(kind);
  }
  for (const std::string_view pattern : {kNvidiaNode, kRenderNode, kCardNode, kVerbsNode, kVfioNode}) {
    if (number_in_path(pattern, path)) return kUnknown;
  }
  // A number follows, unlike in /dev/nvme-fabrics.
  const auto disk = match_pattern(kNvmeNode, path);
  return disk && disk->front() >= '0' && disk->front() <= '9' ? kUnknown : "";
}

}  // namespace topolet::gpu
