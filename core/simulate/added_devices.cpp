#include "core/simulate/added_devices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace topolet::simulate {

Result<std::shared_ptr<const topology::Topology>> with_devices(std::shared_ptr<const topology::Topology> machine,
                                                               const std::vector<Operation>& devices) {
  if (devices.empty()) return machine;
  auto more = std::make_shared<topology::Topology>(*machine);
  for (const Operation& device : devices) {
    topology::OsDevice added;
    added.name = device.path;
    added.subtype = device.device_kind;
    added.nodes = device.nodes;
    for (const std::uint32_t node : device.nodes) {
      const topology::Node* found = more->node(node);
      if (found == nullptr) {
        return Error{Code::kInvalidArgument, fmt::format("device {}: there is no NUMA node {}", device.path, node)};
      }
      added.cpus |= found->cpus;
    }
    const auto& functions = more->pci_devices;
    const auto function = std::find_if(functions.begin(), functions.end(), [&](const topology::PciDevice& candidate) {
      return candidate.address == device.pci;
    });
    if (!device.pci.empty() && function == functions.end()) {
      return Error{
          Code::kInvalidArgument,
          fmt::format("device {}: the topology has no PCI device {}; say \"nodes\" instead", device.path, device.pci)};
    }
    if (function != functions.end()) {
      added.pci_device = static_cast<std::uint32_t>(function - functions.begin());
      added.cpus = function->cpus;
      added.nodes = function->nodes;
    }
    more->os_devices.push_back(std::move(added));
  }
  return std::shared_ptr<const topology::Topology>(std::move(more));
}

}  // namespace topolet::simulate
