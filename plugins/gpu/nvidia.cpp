#include "plugins/gpu/nvidia.hpp"

#include <algorithm>

#include "plugins/gpu/text.hpp"

namespace topolet::gpu {
namespace {

constexpr std::uint32_t kNvidia = 0x10de;
constexpr std::string_view kNode = "/dev/nvidia";

/// Those of /dev/nvidiaN, not of /dev/nvidiactl.
std::vector<Spot> nodes_named(const TopologyNames& names) {
  std::vector<Spot> spots;
  for (std::uint32_t n = 0; n < 64; ++n) {
    if (const auto spot = names.named(std::string(kNode) + std::to_string(n))) spots.push_back(*spot);
  }
  return spots;
}

/// libnvidia-container takes the first GPU whose UUID begins so, in any case.
bool begins_with(std::string_view text, std::string_view prefix) {
  return lower(text.substr(0, prefix.size())) == lower(prefix);
}

std::optional<Spot> nth(const std::vector<Spot>& spots, std::uint32_t n) {
  return n < spots.size() ? std::optional(spots[n]) : std::nullopt;
}

}  // namespace

const std::vector<NvidiaGpu>& NvidiaGpus::told() const {
  static const std::vector<NvidiaGpu> kNone;
  if (names_.files() == nullptr) return kNone;
  const Inventory& files = *names_.files();
  return files.nvml.gpus.empty() ? files.devices.nvidia : files.nvml.gpus;
}

std::vector<Spot> NvidiaGpus::functions() const {
  std::vector<Spot> spots = names_.functions({.vendor_id = kNvidia, .device_id = {}, .class_digits = "03"});
  for (const Spot& spot : nodes_named(names_)) {
    if (spot.pci_device != TOPOLET_NONE) spots.push_back(spot);
  }
  spots = TopologyNames::unique(std::move(spots));
  // Positions ascend by address.
  std::sort(spots.begin(), spots.end(), [](const Spot& a, const Spot& b) { return a.pci_device < b.pci_device; });
  return spots;
}

std::optional<Spot> NvidiaGpus::by_index(std::uint32_t index) const {
  if (index < told().size()) {
    if (const auto spot = names_.at(told()[index].address)) return spot;
  }
  if (const auto spot = names_.named("nvml" + std::to_string(index))) return spot;
  // Where others have counted, a function that they left out has another driver, such as vfio-pci.
  const bool is_counted = !told().empty() || !names_.beginning("nvml").empty();
  if (const auto spot = is_counted ? std::nullopt : nth(functions(), index)) return spot;
  return names_.named(std::string(kNode) + std::to_string(index));
}

std::optional<Spot> NvidiaGpus::by_minor(std::uint32_t minor) const {
  if (const auto spot = names_.named(std::string(kNode) + std::to_string(minor))) return spot;
  bool tells_minors = false;
  for (const NvidiaGpu& gpu : told()) {
    tells_minors = tells_minors || gpu.minor;
    if (gpu.minor == minor) return names_.at(gpu.address);
  }
  return tells_minors ? std::nullopt : by_index(minor);
}

std::optional<Spot> NvidiaGpus::by_uuid(std::string_view uuid) const {
  constexpr std::size_t kShortest = std::string_view("GPU-").size() + 1;
  if (uuid.size() < kShortest) return std::nullopt;
  for (const topolet_os_device& device : sdk::os_devices(names_.topology())) {
    const std::string_view full = sdk::value_of(device.info, "NVIDIAUUID");
    if (begins_with(full, uuid)) return names_.named(sdk::text(device.name));
  }
  for (const NvidiaGpu& gpu : told()) {
    if (begins_with(gpu.uuid, uuid)) return names_.at(gpu.address);
  }
  return std::nullopt;
}

std::vector<Spot> NvidiaGpus::all() const {
  std::vector<Spot> spots = names_.beginning("nvml");
  if (spots.empty()) {
    for (const NvidiaGpu& gpu : told()) {
      if (const auto spot = names_.at(gpu.address)) spots.push_back(*spot);
    }
  }
  if (spots.empty()) spots = functions();
  return spots.empty() ? nodes_named(names_) : spots;
}

std::optional<Spot> NvidiaGpus::named(std::string_view item, std::string& why) const {
  why = "no such GPU is known";
  if (const auto index = number(item)) return by_index(*index);
  if (item.starts_with("GPU-")) return by_uuid(item);
  // Before MIG devices had UUIDs of their own, they were named by their GPU's.
  if (item.starts_with("MIG-GPU-")) return by_uuid(item.substr(4, item.find('/') - 4));
  if (item.starts_with("MIG-")) {
    const Inventory* const files = names_.files();
    if (files != nullptr) {
      const auto found = files->nvml.mig.find(std::string(item));
      if (found != files->nvml.mig.end()) return names_.at(found->second);
    }
    why = "which GPU this MIG device is of is not known";
    const std::string& fault = names_.inventory().nvml.fault;
    if (!fault.empty()) why += ": " + fault;
    if (fault.empty() && files == nullptr) why += ": NVML is of another machine";
    return std::nullopt;
  }
  if (const std::size_t colon = item.find(':'); colon != std::string_view::npos && number(item.substr(0, colon))) {
    if (number(item.substr(colon + 1))) return by_index(*number(item.substr(0, colon)));
  }
  if (const auto address = pci_address(item)) return names_.at(*address);
  why = "neither an index nor a UUID";
  return std::nullopt;
}

}  // namespace topolet::gpu
