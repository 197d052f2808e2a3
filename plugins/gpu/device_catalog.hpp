// The devices of the topology, found by name, PCI address or location.
#pragma once

#include <topolet/policy.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/gpu/inventory.hpp"

namespace topolet::gpu {

/// Points at a device, by one of its members.
struct DeviceRef {
  std::uint32_t pci_device = TOPOLET_NONE;  ///< position in the topology's PCI devices
  std::uint32_t os_device = TOPOLET_NONE;   ///< position in its OS devices, for one without a PCI device
  std::uint32_t node = TOPOLET_NONE;        ///< OS index of the NUMA node, for one that the topology does not show
  std::string address = {};                 ///< with `node`: that of a PCI device; empty for others

  friend bool operator==(const DeviceRef&, const DeviceRef&) = default;
};

/// The n-th of these, if there are as many.
std::optional<DeviceRef> nth(const std::vector<DeviceRef>& refs, std::uint32_t n);

/// Borrows both of its arguments for its life.
class DeviceCatalog {
 public:
  DeviceCatalog(const topolet_topology& topology, const Inventory& inventory);

  const topolet_topology& topology() const { return topology_; }

  const Inventory& inventory() const { return inventory_; }

  /// Returns the contents of this machine's files; null if the topology is another machine's, as in a simulation.
  const Inventory* machine_files() const;

  std::optional<DeviceRef> by_name(std::string_view os_device) const;
  /// A PCI device that came after the topology was read, such as a virtual function, is looked up in this machine's
  /// files as they are now.
  std::optional<DeviceRef> by_address(std::string_view pci_address) const;
  /// Why by_address() finds nothing, though the machine has such a device; empty if it has none.
  std::string why_not_located(std::string_view pci_address) const;
  std::optional<DeviceRef> at(const DeviceLocation& location) const;

  /// Its PCI address or, without one, the name of the OS device; empty for a node. Valid as long as the reference.
  std::string_view name_of(const DeviceRef& ref) const;

  /// Ordered by PCI address.
  std::vector<DeviceRef> pci_functions(const PciMatch& pci_match) const;

  /// OS devices whose name starts with `prefix`, ordered by their number: mlx5_2 before mlx5_10. TOPOLET_NONE stands
  /// for any kind.
  std::vector<DeviceRef> with_prefix(std::string_view prefix, std::uint32_t kind = TOPOLET_NONE) const;

  /// Without repetitions, in the same order.
  static std::vector<DeviceRef> unique(std::vector<DeviceRef> refs);

 private:
  std::optional<DeviceRef> in_topology(std::string_view pci_address) const;
  std::optional<DeviceLocation> in_files_now(std::string_view pci_address) const;
  DeviceRef ref_of(std::uint32_t os_device) const;

  const topolet_topology& topology_;
  const Inventory& inventory_;
  mutable std::optional<bool> is_this_machine_;  ///< of most containers nobody asks
};

}  // namespace topolet::gpu
