// NVIDIA's GPUs, which are numbered or named in three ways: NVML index, minor and UUID.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/gpu/device_catalog.hpp"

namespace topolet::gpu {

/// Borrows `catalog` for its life.
class NvidiaGpus {
 public:
  explicit NvidiaGpus(const DeviceCatalog& catalog) : catalog_(catalog) {}

  /// The NVML index, which NVIDIA_VISIBLE_DEVICES and nvidia-smi use. It follows the PCI addresses.
  std::optional<DeviceRef> by_index(std::uint32_t index) const;

  /// N of /dev/nvidiaN, as the driver says; if it says nothing, N is taken for the NVML index.
  std::optional<DeviceRef> by_minor(std::uint32_t minor) const;

  /// "GPU-…", or the beginning of one.
  std::optional<DeviceRef> by_uuid(std::string_view uuid) const;

  std::vector<DeviceRef> all() const;

  /// One item of NVIDIA_VISIBLE_DEVICES, or the name in a CDI name: an index, a UUID, or a MIG device as "MIG-UUID",
  /// "MIG-GPU-UUID/I/C" or "GPU:MIG". Sets `why` to the reason if it cannot be found.
  std::optional<DeviceRef> by_item(std::string_view item, std::string& why) const;

 private:
  /// As NVML lists them, or else the driver's files; empty if there are neither.
  const std::vector<NvidiaGpu>& listed_gpus() const;
  std::vector<DeviceRef> pci_functions() const;
  std::optional<DeviceRef> by_mig_uuid(std::string_view uuid, std::string& why) const;

  const DeviceCatalog& catalog_;
};

}  // namespace topolet::gpu
