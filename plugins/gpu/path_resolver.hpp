// Finds the hardware behind a path such as /dev/nvidia0.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/gpu/device_catalog.hpp"
#include "plugins/gpu/device_kinds.hpp"
#include "plugins/gpu/nvidia.hpp"

namespace topolet::gpu {

struct ResolvedPath {
  std::vector<DeviceRef> refs;  ///< several for a directory such as /dev/dri
  std::string problem;          ///< why there are none; empty if the path need not be hardware
};

/// Borrows its arguments for its life.
class PathResolver {
 public:
  PathResolver(const DeviceCatalog& catalog, const std::vector<DeviceKind>& kinds)
      : catalog_(catalog), kinds_(kinds), nvidia_(catalog) {}

  ResolvedPath resolve(std::string_view path) const;

  /// One device of a kind; `star` is what the '*' of its path stands for.
  std::optional<DeviceRef> device_of_kind(const DeviceKind& kind, std::string_view star) const;

  /// Why device_of_kind() found nothing.
  static std::string why_unresolved(const DeviceKind& kind);

  /// All devices of a kind that are known.
  std::vector<DeviceRef> all_of_kind(const DeviceKind& kind) const;

 private:
  ResolvedPath resolve_normalized(std::string_view path) const;
  std::optional<DeviceRef> single_device(std::string_view path) const;
  std::optional<DeviceRef> from_kernel(std::string_view path) const;
  std::optional<DeviceRef> by_topology_name(std::string_view path) const;
  std::optional<DeviceRef> block_device(std::string_view name) const;
  std::optional<DeviceRef> display(std::uint32_t card) const;
  std::vector<DeviceRef> display_functions() const;
  std::vector<DeviceRef> gpus_among(std::vector<DeviceRef> displays) const;
  std::vector<DeviceRef> nodes_below(std::string_view directory, std::string_view prefix) const;
  std::vector<DeviceRef> devices_in(std::string_view directory) const;
  std::string why_not_in_topology(std::string_view path) const;
  bool has_kfd_gpus() const;
  std::string why_missing(std::string_view path) const;

  const DeviceCatalog& catalog_;
  const std::vector<DeviceKind>& kinds_;
  const NvidiaGpus nvidia_;
};

}  // namespace topolet::gpu
