// Reads a machine with hwloc: this one, a recorded one, or one made up from a string.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/base/result.hpp"
#include "core/topology/topology.hpp"

namespace topolet::topology {

/// Without `xml_file` and `synthetic`: the machine we run on.
struct DiscoverOptions {
  std::filesystem::path xml_file = {};        ///< a machine that hwloc recorded
  std::string synthetic = {};                 ///< hwloc's description string, "pack:2 numa:1 core:4 pu:2"
  std::filesystem::path sysfs_root = "/sys";  ///< where the machine we run on says what is online and isolated
  CpuSet offline = {};                        ///< taken for offline, whatever the machine says
  CpuSet isolated = {};                       ///< taken for isolated besides what the kernel says
  /// SLIT distances instead of the machine's: nodes × nodes row by row, by ascending OS index; empty = the machine's
  /// own.
  std::vector<std::uint32_t> distances = {};
};

/// INVALID_ARGUMENT for a file or string that hwloc cannot read; INTERNAL if this machine cannot be read.
Result<std::shared_ptr<const Topology>> discover(const DiscoverOptions& options);

}  // namespace topolet::topology
