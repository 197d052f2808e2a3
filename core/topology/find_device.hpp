// Finds the devices that containers ask for by name.
#pragma once

#include <string>
#include <string_view>

#include "core/base/index_set.hpp"
#include "core/topology/topology.hpp"

namespace topolet::topology {

struct DevicePlace {
  std::string address;  ///< of its PCI device; empty if it has none or the machine does not tell
  NodeSet nodes;        ///< those it is local to; empty if the machine does not tell

  friend bool operator==(const DevicePlace&, const DevicePlace&) = default;
};

/// Finds a device by `name`: a path on the host or a CDI name, "vendor.com/class=device". It is found as a device file;
/// as an OS device that has this name, or the part of it after the last '/' or '='; or by a PCI address in it. Links
/// are not followed, and names that only a vendor's library can resolve are not found.
DevicePlace find_device(const Topology& topology, std::string_view name);

}  // namespace topolet::topology
