// Devices of the topology by their names, and what of the machine's own files holds for it.
#pragma once

#include <topolet/policy.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/gpu/inventory.hpp"

namespace topolet::gpu {

/// Where a device is in the topology: one of the three.
struct Spot {
  std::uint32_t pci_device = TOPOLET_NONE;  ///< position
  std::uint32_t os_device = TOPOLET_NONE;   ///< position; of one without a PCI device
  std::uint32_t node = TOPOLET_NONE;        ///< OS index, of a device that the topology does not show

  friend bool operator==(const Spot&, const Spot&) = default;
};

/// Borrows both for its life.
class TopologyNames {
 public:
  TopologyNames(const topolet_topology& topology, const Inventory& inventory);

  const topolet_topology& topology() const { return topology_; }

  const Inventory& inventory() const { return inventory_; }

  /// The files' word; null if they are another machine's, as when one machine is simulated on another.
  const Inventory* files() const { return is_this_machine_ ? &inventory_ : nullptr; }

  std::optional<Spot> named(std::string_view os_device) const;
  std::optional<Spot> at(std::string_view pci_address) const;
  std::optional<Spot> at(const Place& place) const;

  /// PCI devices of a make, by address.
  std::vector<Spot> functions(const Make& make) const;

  /// OS devices of a kind whose name begins so, in the order of their numbers: mlx5_2 before mlx5_10. TOPOLET_NONE: of
  /// any kind.
  std::vector<Spot> beginning(std::string_view prefix, std::uint32_t kind = TOPOLET_NONE) const;

  /// One of each.
  static std::vector<Spot> unique(std::vector<Spot> spots);

 private:
  Spot spot_of(std::uint32_t os_device) const;

  const topolet_topology& topology_;
  const Inventory& inventory_;
  const bool is_this_machine_;
};

}  // namespace topolet::gpu
