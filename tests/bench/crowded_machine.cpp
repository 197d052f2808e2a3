#include "tests/bench/crowded_machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/topology/discover.hpp"

namespace topolet::bench {
namespace {

constexpr std::uint16_t kGpuClass = 0x0302;
constexpr std::uint16_t kNvidia = 0x10de;

std::vector<std::uint32_t> distances_of(const MachineShape& shape) {
  const auto nodes = static_cast<int>(shape.nodes());
  std::vector<std::uint32_t> distances;
  for (int from = 0; from < nodes; ++from) {
    for (int to = 0; to < nodes; ++to) {
      const int packages_between = std::abs(from / shape.nodes_per_package - to / shape.nodes_per_package);
      const int far = packages_between == 0 ? 12 : 20 + 4 * std::min(packages_between, 4);
      distances.push_back(from == to ? 10 : static_cast<std::uint32_t>(far));
    }
  }
  return distances;
}

std::uint32_t add_bridge(topology::Topology& machine, std::uint32_t parent, const topology::Node& node) {
  const auto number = static_cast<std::uint32_t>(machine.pci_bridges.size());
  const bool is_host_bridge = parent == topology::kNoPosition;
  machine.pci_bridges.push_back(
      {is_host_bridge ? "" : fmt::format("0000:{:02x}:00.0", number), parent, 0, 0, node.cpus, NodeSet{node.os_index}});
  return number;
}

void add_gpu(topology::Topology& machine, std::uint32_t bridge, const topology::Node& node) {
  const auto number = static_cast<std::uint32_t>(machine.pci_devices.size());
  machine.pci_devices.push_back({fmt::format("0001:{:02x}:00.0", number),
                                 bridge,
                                 kGpuClass,
                                 kNvidia,
                                 0x2330,
                                 node.cpus,
                                 NodeSet{node.os_index},
                                 {}});
  topology::OsDevice named;
  named.name = fmt::format("/dev/g{}", number);
  named.subtype = "gpu";
  named.kind = topology::OsDeviceKind::kGpu;
  named.pci_device = number;
  named.cpus = node.cpus;
  named.nodes = NodeSet{node.os_index};
  machine.os_devices.push_back(std::move(named));
}

placement::Workload workload(const std::string& name, std::int64_t request_milli, placement::Qos qos) {
  placement::Workload made;
  made.key = {"uid-" + name, "main", 0, "sandbox-" + name};
  made.pod_name = "pod-" + name;
  made.pod_namespace = "default";
  made.qos = qos;
  made.demand.cpu_request_milli = request_milli;
  if (qos == placement::Qos::kGuaranteed) made.demand.cpu_limit_milli = request_milli;
  if (qos != placement::Qos::kBestEffort) made.demand.memory_limit_bytes = 1 << 20;
  if (qos != placement::Qos::kBestEffort) made.demand.memory_request_bytes = 1 << 20;
  return made;
}

placement::Workload with_devices(placement::Workload workload, std::vector<std::string> devices) {
  workload.devices = std::move(devices);
  return workload;
}

placement::Workload exclusive(const std::string& name, std::size_t cpus, std::vector<std::string> devices = {}) {
  const auto milli = static_cast<std::int64_t>(cpus) * 1000;
  return with_devices(workload(name, milli, placement::Qos::kGuaranteed), std::move(devices));
}

}  // namespace

std::size_t MachineShape::nodes() const { return static_cast<std::size_t>(packages * nodes_per_package); }

std::size_t MachineShape::cpus() const { return nodes() * static_cast<std::size_t>(2 * cores_per_node); }

std::string MachineShape::synthetic() const {
  return fmt::format("pack:{} numa:{} l3:2 core:{} pu:2", packages, nodes_per_package, cores_per_node / 2);
}

std::shared_ptr<const topology::Topology> machine_with_gpus(const MachineShape& shape, const CpuSet& offline) {
  topology::Topology machine =
      *topology::discover({.synthetic = shape.synthetic(), .offline = offline, .distances = distances_of(shape)})
           .value();
  for (std::size_t i = 0; i < machine.nodes.size(); i += 2) {
    const topology::Node& node = machine.nodes[i];
    const std::uint32_t host_bridge = add_bridge(machine, topology::kNoPosition, node);
    const std::uint32_t port = add_bridge(machine, host_bridge, node);
    for (int gpu = 0; gpu < 2; ++gpu) add_gpu(machine, port, node);
  }
  return std::make_shared<const topology::Topology>(std::move(machine));
}

engine::Ledger ledger_with_containers(const topology::Topology& topology) {
  engine::Ledger ledger({topology.allowed, {}, {}}, 0);
  const std::size_t cpus = topology.allowed.size();
  std::vector<engine::Allocation> allocations;
  for (int number = 0; number < kContainers; ++number) {
    const auto held = static_cast<std::uint32_t>(number / 10);
    const bool is_exclusive = number % 10 == 0 && 4 * (held + 1) <= cpus / 2;
    engine::Allocation allocation;
    allocation.workload = is_exclusive ? exclusive(std::to_string(number), 2)
                                       : workload(std::to_string(number), 250, placement::Qos::kBurstable);
    if (number % 5 == 0) {
      allocation.workload.settings = SharedStringMap{{"cpu-profile", number % 2 == 0 ? "heavy" : "light"}};
    }
    allocation.phase = engine::Phase::kRunning;
    allocation.container_id = fmt::format("container-{}", number);
    allocation.placement.mode = is_exclusive ? placement::Mode::kExclusive : placement::Mode::kShared;
    const auto first = static_cast<std::uint32_t>(8 * held % cpus);
    if (is_exclusive) allocation.placement.cpus = {first, first + 1 + held % 2};
    const auto node = static_cast<std::size_t>(number) % topology.nodes.size();
    if (!is_exclusive) allocation.within = topology.nodes[node].cpus;
    allocation.placement.cpus |= allocation.within;
    allocations.push_back(std::move(allocation));
  }
  ledger.load(std::move(allocations), {});
  // Containers that follow the pool leave the CPUs that others have exclusively.
  ledger.assume_released({"uid-0", "main", 0, "sandbox-0"});
  return ledger;
}

placement::Workload best_effort(const std::string& name) { return workload(name, 0, placement::Qos::kBestEffort); }

std::vector<NamedWorkload> workloads_for(const MachineShape& shape) {
  const std::size_t nodes_with_gpus = (shape.nodes() + 1) / 2;
  std::vector<std::string> every_gpu;
  for (std::size_t i = 0; i < 2 * nodes_with_gpus; ++i) every_gpu.push_back(fmt::format("/dev/g{}", i));
  const std::string far_gpu = fmt::format("/dev/g{}", 2 * nodes_with_gpus - 1);
  std::vector<NamedWorkload> all = {
      {"exclusive, 2 CPUs", exclusive("two", 2)},
      {"exclusive, 2 CPUs, a GPU", exclusive("gpu", 2, {"/dev/g0"})},
      {"exclusive, 40 CPUs", exclusive("forty", 40)},
      {"exclusive, 40 CPUs, two GPUs", exclusive("gpus", 40, {"/dev/g0", far_gpu})},
      {"exclusive, a third of the CPUs", exclusive("wide", shape.cpus() / 6 * 2)},
      {"exclusive, a third, eight GPUs",
       exclusive("wide-gpus", shape.cpus() / 6 * 2,
                 {"/dev/g0", "/dev/g1", "/dev/g2", "/dev/g3", "/dev/g4", "/dev/g5", "/dev/g6", far_gpu})},
      {"exclusive, 40 CPUs, every GPU", exclusive("every-gpu", 40, every_gpu)},
      {"shared, 250 m", workload("shared", 250, placement::Qos::kBurstable)},
      {"shared, 250 m, two GPUs",
       with_devices(workload("shared-gpus", 250, placement::Qos::kBurstable), {"/dev/g0", far_gpu})},
      {"BestEffort", best_effort("besteffort")},
  };
  NamedWorkload heavy{"exclusive, 2 CPUs, heavy", exclusive("heavy", 2)};
  heavy.workload.settings = SharedStringMap{{"cpu-profile", "heavy"}};
  NamedWorkload light{"shared, light", workload("light", 250, placement::Qos::kBurstable)};
  light.workload.settings = SharedStringMap{{"cpu-profile", "light"}};
  all.push_back(std::move(heavy));
  all.push_back(std::move(light));
  return all;
}

}  // namespace topolet::bench
