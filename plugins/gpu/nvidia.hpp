// NVIDIA's GPUs by the three ways in which they are numbered or named.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/gpu/topology_names.hpp"

namespace topolet::gpu {

/// Borrows `names` for its life.
class NvidiaGpus {
 public:
  explicit NvidiaGpus(const TopologyNames& names) : names_(names) {}

  /// By NVML's index: that of NVIDIA_VISIBLE_DEVICES and nvidia-smi, which count by PCI address.
  std::optional<Spot> by_index(std::uint32_t index) const;

  /// N of /dev/nvidiaN. What the driver says; without its word the NVML index stands in.
  std::optional<Spot> by_minor(std::uint32_t minor) const;

  /// "GPU-…", or the beginning of one.
  std::optional<Spot> by_uuid(std::string_view uuid) const;

  std::vector<Spot> all() const;

  /// What one part of NVIDIA_VISIBLE_DEVICES or a CDI name means: an index, a UUID, or a MIG device by
  /// "MIG-UUID", "MIG-GPU-UUID/I/C" or "GPU:MIG". `why` says it if that is nowhere.
  std::optional<Spot> named(std::string_view item, std::string& why) const;

 private:
  /// Of the driver's files, else of NVML; empty if neither is there.
  const std::vector<NvidiaGpu>& told() const;
  std::vector<Spot> functions() const;

  const TopologyNames& names_;
};

}  // namespace topolet::gpu
