// Containers that have devices to look at them, not to use them, such as those that export the metrics of all GPUs.
#pragma once

#include <topolet/policy.hpp>

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "plugins/gpu/container_devices.hpp"

namespace topolet::gpu {

/// The devices of a machine by kinds: GPUs, those of one vendor, NICs, and so on. A device may be of several kinds, and
/// is named by its PCI address or, without one, as the operating system does. Borrows the topology.
class DevicesByKind {
 public:
  using Names = std::set<std::string_view>;

  explicit DevicesByKind(const topolet_topology& topology);

  /// Those of `names` that belong to a kind of which there are several devices, all of them in `names`.
  Names of_complete_kinds(const Names& names) const;

 private:
  std::map<std::string, Names> kinds_;
};

/// Returns true if the container requests less than a CPU, too little to use several devices. A request that is not
/// known counts as a whole CPU.
bool requests_less_than_a_cpu(const topolet_demand* demand);

/// A container that has every device of a kind, of which there are several, and requests less than one CPU uses none of
/// them: marks these.
void mark_watched(const topolet_request& request, const DeviceCatalog& catalog, ContainerDevices& container);

/// Returns true if the container has devices and uses none.
bool watches_only(const ContainerDevices& container);

/// Returns the devices that decide its place: those that it uses, or, if it uses none, those that it watches.
ContainerDevices devices_to_be_near(ContainerDevices container);

/// For the reason: which devices it is taken to watch, and why; empty if it uses all that it has.
std::string describe_watched(const topolet_topology& topology, const ContainerDevices& container);

}  // namespace topolet::gpu
