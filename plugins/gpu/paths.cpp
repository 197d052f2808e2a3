#include "plugins/gpu/paths.hpp"

#include <algorithm>
#include <climits>
#include <filesystem>

#include "plugins/gpu/locality.hpp"
#include "plugins/gpu/text.hpp"

namespace topolet::gpu {
namespace {

constexpr std::uint32_t kFirstRender = 128;  // render nodes have the DRM minors from here on
constexpr const char* kUnknown = "no PCI device is known for it";
constexpr std::string_view kNvidia = "/dev/nvidia*";
constexpr std::string_view kRender = "/dev/dri/renderD*";
constexpr std::string_view kCard = "/dev/dri/card*";
constexpr std::string_view kNvme = "/dev/nvme*";
constexpr std::string_view kVfio = "/dev/vfio/*";
constexpr std::string_view kVerbs = "/dev/infiniband/uverbs*";

constexpr std::string_view kDisplays = "/dev/dri";
constexpr std::uint32_t kAmd = 0x1002;
constexpr std::uint32_t kIntel = 0x8086;
constexpr std::uint32_t kNvidiaVendor = 0x10de;

void add(std::vector<Spot>& spots, const std::vector<Spot>& more) {
  spots.insert(spots.end(), more.begin(), more.end());
}

std::optional<std::uint32_t> numbered(std::string_view pattern, std::string_view path) {
  const auto star = matched(pattern, path);
  return star ? number(*star) : std::nullopt;
}

std::optional<Spot> nth(const std::vector<Spot>& spots, std::uint32_t n) {
  return n < spots.size() ? std::optional(spots[n]) : std::nullopt;
}

std::string_view without_slash(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  return path;
}

}  // namespace

Paths::Found Paths::find(std::string_view given) const {
  if (given.size() >= PATH_MAX) return {};  // the kernel opens no such file
  const std::string normal = std::filesystem::path(given).lexically_normal().string();
  const std::string_view path = without_slash(normal);
  Found found = known(path);
  // A driver in a container has a /dev of its own, such as /run/nvidia/driver/dev, with the same nodes.
  const std::size_t dev = path.rfind("/dev/");
  const bool is_elsewhere = dev != 0 && dev != std::string_view::npos;
  if (found.spots.empty() && found.missing.empty() && is_elsewhere) found = known(path.substr(dev));
  return found;
}

Paths::Found Paths::known(std::string_view path) const {
  std::string_view target = path;
  if (const Inventory* const files = names_.files()) {
    const auto alias = files->devices.aliases.find(path);
    if (alias != files->devices.aliases.end()) target = alias->second;
  }
  if (const auto spot = names_.named(path)) return {{*spot}, {}};
  // What a link leads to says more than what it is called.
  if (const auto spot = target == path ? std::nullopt : one(target)) return {{*spot}, {}};
  if (const auto spot = one(path)) return {{*spot}, {}};
  Found found{directory(target), {}};
  if (found.spots.empty()) found.missing = nowhere(target);
  if (found.spots.empty() && found.missing.empty()) found.missing = missing(path);
  return found;
}

std::optional<Spot> Paths::of_kind(const Kind& kind, std::string_view star) const {
  const std::string path = filled(kind.path, star);
  if (const auto spot = path.empty() ? std::nullopt : names_.named(path)) return spot;
  switch (kind.finding) {
    case Finding::kSystem:
    case Finding::kLink:
      return in_files(path);
    case Finding::kFunction: {
      // Where the kernel knows the device node, its word is better than counting.
      if (const auto spot = in_files(path)) return spot;
      const auto n = number(star);
      return n ? nth(names_.functions(kind.make), *n) : std::nullopt;
    }
    case Finding::kItem:
      return names_.at(pci_address(star).value_or(""));
    case Finding::kAddress:
      return names_.at(kind.address);
    case Finding::kNode:
      return names_.at(Place{"", kind.node});
  }
  return std::nullopt;
}

std::vector<Spot> Paths::all(const Kind& kind) const {
  std::vector<Spot> spots;
  constexpr std::uint32_t kMost = 256;
  const bool is_one = kind.path.find('*') == std::string::npos;
  for (std::uint32_t n = 0; n < (is_one ? 1 : kMost); ++n) {
    if (const auto spot = of_kind(kind, std::to_string(n))) spots.push_back(*spot);
  }
  // Those that are not called by numbers.
  for (const topolet_os_device& device : sdk::os_devices(names_.topology())) {
    const std::string_view name = sdk::text(device.name);
    const auto spot = !is_one && matched(kind.path, name) ? names_.named(name) : std::nullopt;
    if (spot) spots.push_back(*spot);
  }
  if (const Inventory* const files = is_one ? nullptr : names_.files()) {
    for (const auto& [path, place] : files->devices.places) {
      const auto spot = matched(kind.path, path) ? names_.at(place) : std::nullopt;
      if (spot) spots.push_back(*spot);
    }
  }
  return TopologyNames::unique(std::move(spots));
}

std::optional<Spot> Paths::one(std::string_view path) const {
  if (const auto spot = names_.named(path)) return spot;
  for (const Kind& kind : kinds_) {
    const auto star = kind.is_configured && !kind.path.empty() ? matched(kind.path, path) : std::nullopt;
    if (!star) continue;
    if (const auto spot = of_kind(kind, *star)) return spot;
  }
  if (const auto minor = numbered(kNvidia, path)) return nvidia_.by_minor(*minor);
  if (const auto spot = in_files(path)) return spot;
  for (const Kind& kind : kinds_) {
    const auto star = kind.is_configured ? std::nullopt : matched(kind.path, path);
    if (!star) continue;
    if (const auto spot = of_kind(kind, *star)) return spot;
  }
  return by_name(path);
}

std::optional<Spot> Paths::in_files(std::string_view path) const {
  if (names_.files() == nullptr) return std::nullopt;
  const auto& places = names_.files()->devices.places;
  const auto found = places.find(path);
  return found == places.end() ? std::nullopt : names_.at(found->second);
}

/// Without files: by what the topology calls its devices, and by counting them as the kernel does.
std::optional<Spot> Paths::by_name(std::string_view path) const {
  if (!path.starts_with("/dev/")) return std::nullopt;
  if (const auto spot = names_.at(pci_address_in(path).value_or(""))) return spot;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (const auto spot = names_.named(name)) return spot;
  if (const auto render = numbered(kRender, path)) {
    return *render < kFirstRender ? std::nullopt : display(*render - kFirstRender);
  }
  if (const auto card = numbered(kCard, path)) return display(*card);
  if (const auto verbs = numbered(kVerbs, path)) {
    return nth(TopologyNames::unique(names_.beginning("", TOPOLET_OS_DEVICE_OPENFABRICS)), *verbs);
  }
  return block(name);
}

/// A partition by its disk, and an NVMe controller by its first namespace.
std::optional<Spot> Paths::block(std::string_view name) const {
  const auto disks = [this](std::string_view prefix) { return names_.beginning(prefix, TOPOLET_OS_DEVICE_BLOCK); };
  if (const auto controller = matched("nvme*", name); controller && number(*controller)) {
    return nth(disks(std::string(name) + 'n'), 0);
  }
  const std::size_t digits = name.find_last_not_of("0123456789");
  if (digits == std::string_view::npos || digits + 1 == name.size()) return std::nullopt;
  std::string_view disk = name.substr(0, digits + 1);
  if (disk.starts_with("nvme") && disk.ends_with('p')) disk.remove_suffix(1);
  if (name.starts_with("nvme") && disk.ends_with('n')) return std::nullopt;
  const auto spot = names_.named(disk);
  const auto blocks = disks(disk);
  const bool is_block = spot && std::find(blocks.begin(), blocks.end(), *spot) != blocks.end();
  return is_block ? spot : std::nullopt;
}

/// Drivers take card and render numbers together. Where the topology names none, AMD's and Intel's count.
std::optional<Spot> Paths::display(std::uint32_t card) const {
  if (const auto spot = names_.named("card" + std::to_string(card))) return spot;
  if (const auto spot = names_.named("renderD" + std::to_string(card + kFirstRender))) return spot;
  if (!names_.beginning("card").empty() || !names_.beginning("renderD").empty()) return std::nullopt;
  return nth(display_functions(), card);
}

std::vector<Spot> Paths::display_functions() const {
  std::vector<Spot> functions;
  // AMD's of the MI300 kind are no displays, but processing accelerators.
  for (const Make& make : {Make{kAmd, {}, "03"}, Make{kAmd, {}, "12"}, Make{kIntel, {}, "03"}}) {
    for (const Spot& spot : names_.functions(make)) functions.push_back(spot);
  }
  std::sort(functions.begin(), functions.end(),
            [](const Spot& a, const Spot& b) { return a.pci_device < b.pci_device; });
  return functions;
}

/// Those of the displays that compute: a board's own has a card, but no render node.
std::vector<Spot> Paths::gpus_among(std::vector<Spot> displays) const {
  std::vector<Spot> rendering = names_.beginning("renderD");
  add(rendering, below(kDisplays, "renderD"));
  std::erase_if(displays, [&](const Spot& spot) {
    if (spot.pci_device == TOPOLET_NONE || is_accelerator(names_.topology(), spot)) return false;
    const std::uint32_t vendor = sdk::pci_devices(names_.topology())[spot.pci_device].vendor_id;
    const bool is_gpu_maker = vendor == kAmd || vendor == kIntel || vendor == kNvidiaVendor;
    return !is_gpu_maker && std::find(rendering.begin(), rendering.end(), spot) == rendering.end();
  });
  return displays;
}

/// Device nodes of a directory whose names begin so, as the topology and the files know them.
std::vector<Spot> Paths::below(std::string_view directory, std::string_view beginning) const {
  const std::string prefix = std::string(directory) + '/' + std::string(beginning);
  std::vector<Spot> spots = names_.beginning(prefix);
  const Inventory* const files = names_.files();
  if (files == nullptr) return spots;
  for (auto place = files->devices.places.lower_bound(prefix);
       place != files->devices.places.end() && place->first.starts_with(prefix); ++place) {
    if (const auto spot = names_.at(place->second)) spots.push_back(*spot);
  }
  return spots;
}

/// A runtime passes on all device nodes of a directory.
std::vector<Spot> Paths::directory(std::string_view path) const {
  if (!path.starts_with("/dev/")) return {};
  std::vector<Spot> spots = below(path, "");
  if (path == kDisplays) {
    if (spots.empty()) {
      add(spots, names_.beginning("card", TOPOLET_OS_DEVICE_GPU));
      add(spots, names_.beginning("renderD", TOPOLET_OS_DEVICE_GPU));
    }
    spots = gpus_among(std::move(spots));
    if (spots.empty()) spots = display_functions();
  }
  if (spots.empty() && path == "/dev/infiniband") spots = names_.beginning("", TOPOLET_OS_DEVICE_OPENFABRICS);
  return TopologyNames::unique(std::move(spots));
}

std::string Paths::why_unknown(const Kind& kind) {
  if (kind.finding == Finding::kNode) return "the machine has no node " + std::to_string(kind.node);
  if (kind.finding == Finding::kAddress) return "the machine has no PCI device " + kind.address;
  return kUnknown;
}

/// Of one that the kernel knows, but the topology does not.
std::string Paths::nowhere(std::string_view path) const {
  const Inventory* const files = names_.files();
  if (files == nullptr) return {};
  const auto place = files->devices.places.find(path);
  if (place == files->devices.places.end()) return {};
  const auto& [address, node] = place->second;
  if (address.empty()) return "the machine has no node " + std::to_string(*node);
  return "the topology has no PCI device " + address +
         (node ? " and no node " + std::to_string(*node) : ", and the kernel ties it to no node");
}

/// The device that all of AMD's GPUs share.
bool Paths::serves_kfd() const {
  for (const std::string_view prefix : {"card", "renderD", "rsmi", "/dev/dri/"}) {
    if (!names_.beginning(prefix).empty()) return true;
  }
  return !display_functions().empty() || !below(kDisplays, "").empty();
}

/// Why there is nothing, of a path that should be hardware.
std::string Paths::missing(std::string_view path) const {
  if (path == kDisplays) return "no GPU is known below it";
  if (path == "/dev/infiniband") return "no device is known below it";
  if (path == "/dev/kfd" && !serves_kfd()) return "no AMD GPU is known";
  for (const Kind& kind : kinds_) {
    const auto star = kind.path.empty() ? std::nullopt : matched(kind.path, path);
    if (star && (kind.is_configured || number(*star))) return why_unknown(kind);
  }
  for (const std::string_view pattern : {kNvidia, kRender, kCard, kVerbs, kVfio}) {
    if (numbered(pattern, path)) return kUnknown;
  }
  // Not /dev/nvme-fabrics.
  const auto disk = matched(kNvme, path);
  return disk && disk->front() >= '0' && disk->front() <= '9' ? kUnknown : "";
}

}  // namespace topolet::gpu
