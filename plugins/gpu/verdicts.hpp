// Verdicts on the candidates for a container with devices.
#pragma once

#include <topolet/policy.hpp>

#include <cstdint>
#include <vector>

#include "plugins/gpu/container_devices.hpp"

namespace topolet::gpu {

enum class Affinity : std::uint8_t { kPrefer, kRequire };

/// The part that is divided if no node has both the devices and room for all CPUs.
enum class Split : std::uint8_t {
  kDevice,  ///< some CPUs are beside the devices, the others elsewhere
  kCpus,    ///< nothing: all CPUs are on as few nodes as hold them, wherever the devices are
};

/// The options that decide on verdicts.
struct Rules {
  Affinity affinity = Affinity::kPrefer;
  Split split = Split::kDevice;
  bool whole_cores = false;  ///< numa.full-pcpus-only
};

/// The beginning of a rejection's reason: the option to change for another outcome.
constexpr const char* kRequireText = "affinity = require: ";

using sdk::Verdict;

/// One verdict for each candidate. 100 where all devices are local; less by the share and the distance of those that
/// are not. Among equals, less where CPUs are far from the devices or the devices from each other. With Split::kCpus
/// sets of more nodes than would hold the exclusive CPUs get less than all others.
std::vector<Verdict> locality_verdicts(const topolet_request& request, const ContainerDevices& container,
                                       const Rules& rules);

}  // namespace topolet::gpu
