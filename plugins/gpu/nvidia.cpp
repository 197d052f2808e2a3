#include "plugins/gpu/nvidia.hpp"

#include <algorithm>

#include "plugins/gpu/pci_ids.hpp"
#include "plugins/gpu/text.hpp"

namespace topolet::gpu {
namespace {

constexpr std::string_view kDeviceNode = "/dev/nvidia";

/// The devices that the topology names /dev/nvidiaN, so not /dev/nvidiactl.
std::vector<DeviceRef> device_nodes(const DeviceCatalog& catalog) {
  std::vector<DeviceRef> refs;
  for (std::uint32_t n = 0; n < 64; ++n) {
    if (const auto ref = catalog.by_name(std::string(kDeviceNode) + std::to_string(n))) refs.push_back(*ref);
  }
  return refs;
}

/// For UUIDs: libnvidia-container takes the first GPU whose UUID starts with the text, in upper or lower case.
bool starts_with_ignoring_case(std::string_view text, std::string_view prefix) {
  return to_lower(text.substr(0, prefix.size())) == to_lower(prefix);
}

}  // namespace

const std::vector<NvidiaGpu>& NvidiaGpus::listed_gpus() const {
  static const std::vector<NvidiaGpu> kNone;
  if (catalog_.machine_files() == nullptr) return kNone;
  const Inventory& files = *catalog_.machine_files();
  return files.nvml.gpus.empty() ? files.devices.nvidia : files.nvml.gpus;
}

std::vector<DeviceRef> NvidiaGpus::pci_functions() const {
  std::vector<DeviceRef> refs =
      catalog_.pci_functions({.vendor_id = kNvidiaVendor, .device_id = {}, .class_digits = "03"});
  for (const DeviceRef& ref : device_nodes(catalog_)) {
    if (ref.pci_device != TOPOLET_NONE) refs.push_back(ref);
  }
  refs = DeviceCatalog::unique(std::move(refs));
  // Positions follow the PCI addresses.
  std::sort(refs.begin(), refs.end(),
            [](const DeviceRef& a, const DeviceRef& b) { return a.pci_device < b.pci_device; });
  return refs;
}

std::optional<DeviceRef> NvidiaGpus::by_index(std::uint32_t index) const {
  if (index < listed_gpus().size()) {
    if (const auto ref = catalog_.by_address(listed_gpus()[index].address)) return ref;
  }
  if (const auto ref = catalog_.by_name("nvml" + std::to_string(index))) return ref;
  // If NVML or the driver lists GPUs, a function that they leave out is bound to another driver, such as vfio-pci.
  const bool is_listed = !listed_gpus().empty() || !catalog_.with_prefix("nvml").empty();
  if (const auto ref = is_listed ? std::nullopt : nth(pci_functions(), index)) return ref;
  return catalog_.by_name(std::string(kDeviceNode) + std::to_string(index));
}

std::optional<DeviceRef> NvidiaGpus::by_minor(std::uint32_t minor) const {
  if (const auto ref = catalog_.by_name(std::string(kDeviceNode) + std::to_string(minor))) return ref;
  bool has_minors = false;
  for (const NvidiaGpu& gpu : listed_gpus()) {
    has_minors = has_minors || gpu.minor;
    if (gpu.minor == minor) return catalog_.by_address(gpu.address);
  }
  return has_minors ? std::nullopt : by_index(minor);
}

std::optional<DeviceRef> NvidiaGpus::by_uuid(std::string_view uuid) const {
  constexpr std::size_t kMinLength = std::string_view("GPU-").size() + 1;
  if (uuid.size() < kMinLength) return std::nullopt;
  for (const topolet_os_device& device : sdk::os_devices(catalog_.topology())) {
    const std::string_view full = sdk::value_of(device.info, "NVIDIAUUID");
    if (starts_with_ignoring_case(full, uuid)) return catalog_.by_name(sdk::text(device.name));
  }
  for (const NvidiaGpu& gpu : listed_gpus()) {
    if (starts_with_ignoring_case(gpu.uuid, uuid)) return catalog_.by_address(gpu.address);
  }
  return std::nullopt;
}

std::vector<DeviceRef> NvidiaGpus::all() const {
  std::vector<DeviceRef> refs = catalog_.with_prefix("nvml");
  if (refs.empty()) {
    for (const NvidiaGpu& gpu : listed_gpus()) {
      if (const auto ref = catalog_.by_address(gpu.address)) refs.push_back(*ref);
    }
  }
  if (refs.empty()) refs = pci_functions();
  return refs.empty() ? device_nodes(catalog_) : refs;
}

std::optional<DeviceRef> NvidiaGpus::by_mig_uuid(std::string_view uuid, std::string& why) const {
  const Inventory* const files = catalog_.machine_files();
  if (files != nullptr) {
    const auto found = files->nvml.mig.find(std::string(uuid));
    if (found != files->nvml.mig.end()) return catalog_.by_address(found->second);
  }
  why = "it is not known which GPU this MIG device belongs to";
  const std::string& error = catalog_.inventory().nvml.error;
  if (!error.empty()) why += ": " + error;
  if (error.empty() && files == nullptr) why += ": NVML describes another machine";
  return std::nullopt;
}

std::optional<DeviceRef> NvidiaGpus::by_item(std::string_view item, std::string& why) const {
  why = "no such GPU was found";
  if (const auto index = parse_number(item)) return by_index(*index);
  if (item.starts_with("GPU-")) return by_uuid(item);
  // Before MIG devices had UUIDs of their own, they were named by that of their GPU.
  if (item.starts_with("MIG-GPU-")) return by_uuid(item.substr(4, item.find('/') - 4));
  if (item.starts_with("MIG-")) return by_mig_uuid(item, why);
  if (const std::size_t colon = item.find(':'); colon != std::string_view::npos) {
    const auto gpu = parse_number(item.substr(0, colon));
    if (gpu && parse_number(item.substr(colon + 1))) return by_index(*gpu);
  }
  if (const auto address = parse_pci_address(item)) return catalog_.by_address(*address);
  why = "it is neither an index nor a UUID";
  return std::nullopt;
}

}  // namespace topolet::gpu
