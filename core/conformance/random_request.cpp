#include "core/conformance/random_request.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/engine/state/ledger.hpp"
#include "core/placement/candidates.hpp"
#include "core/placement/decide.hpp"

namespace topolet {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

std::string odd_string(Dice& dice) {
  static const std::vector<std::string> kStrings = {"",
                                                    "web",
                                                    "0",
                                                    "a b=c, \"d\"\n\t",
                                                    std::string("zero\0inside", 11),
                                                    "\xff\xfe\x80",
                                                    "\xc3\x28",
                                                    "%s%n%1000d",
                                                    "/dev/null",
                                                    "../../etc",
                                                    "Größe 数量"};
  if (dice.one_in(12)) return std::string(64 << 10, dice.one_in(2) ? 'x' : '\xf0');
  return dice.one_of(kStrings);
}

template <class Tag>
IndexSet<Tag> part_of(const IndexSet<Tag>& set, std::uint64_t one_in, Dice& dice) {
  IndexSet<Tag> part;
  for (const std::uint32_t index : set) {
    if (dice.one_in(one_in)) part.insert(index);
  }
  return part;
}

CpuSet some_of(const CpuSet& set, std::uint64_t count, Dice& dice) {
  std::vector<std::uint32_t> indices(set.begin(), set.end());
  CpuSet some;
  for (; count > 0 && !indices.empty(); --count) {
    const auto at = indices.begin() + static_cast<std::ptrdiff_t>(dice.below(indices.size()));
    some.insert(*at);
    indices.erase(at);
  }
  return some;
}

Demand random_demand(Dice& dice) {
  static const std::vector<std::int64_t> kMilli = {0,    1,    250,  999,  1000, 1000, 2000,
                                                   2000, 3000, 4000, 8000, 1500, 96000};
  static const std::vector<std::int64_t> kMemory = {0, 1, 64 * kMiB, 4096 * kMiB, 1 << 20, 4096 * kMiB * 1024};
  Demand demand;
  demand.cpu_request_milli = dice.one_of(kMilli);
  demand.cpu_limit_milli = dice.one_in(2) ? demand.cpu_request_milli : dice.one_of(kMilli);
  demand.memory_request_bytes = dice.one_of(kMemory);
  demand.memory_limit_bytes = dice.one_in(2) ? demand.memory_request_bytes : dice.one_of(kMemory);
  demand.memory_request_estimated = dice.one_in(3);
  if (dice.one_in(4)) demand.hugepage_limit_bytes["2MB"] = 2 * kMiB * static_cast<std::int64_t>(dice.below(1000));
  if (dice.one_in(8)) demand.hugepage_limit_bytes[odd_string(dice)] = std::numeric_limits<std::int64_t>::max();
  return demand;
}

Qos random_qos(Dice& dice) {
  return dice.one_of(std::vector<Qos>{Qos::kGuaranteed, Qos::kGuaranteed, Qos::kBurstable, Qos::kBestEffort});
}

std::map<std::string, std::string> random_map(Dice& dice) {
  std::map<std::string, std::string> map;
  for (std::uint64_t i = dice.below(4); i > 0; --i) map[odd_string(dice)] = odd_string(dice);
  return map;
}

/// Names of the machine's devices among names of none, so that plugins find some.
std::vector<std::string> random_devices(const Topology& topology, Dice& dice) {
  std::vector<std::string> devices;
  const std::uint64_t count = dice.one_in(10) ? 300 : dice.below(4);
  for (std::uint64_t i = 0; i < count; ++i) {
    const bool known = !topology.os_devices.empty() && dice.one_in(2);
    devices.push_back(known ? "/dev/" + dice.one_of(topology.os_devices).name : odd_string(dice));
  }
  return devices;
}

std::vector<std::string> random_cdi_devices(const Topology& topology, Dice& dice) {
  std::vector<std::string> devices;
  for (std::uint64_t i = dice.below(3); i > 0; --i) {
    const bool known = !topology.pci_devices.empty() && dice.one_in(2);
    devices.push_back("example.com/gpu=" + (known ? dice.one_of(topology.pci_devices).address : odd_string(dice)));
  }
  return devices;
}

Workload random_workload(const Ground& ground, Dice& dice) {
  const Topology& topology = *ground.machine.topology;
  Workload workload;
  workload.key = {odd_string(dice), odd_string(dice), static_cast<std::uint32_t>(dice.below(5)), odd_string(dice)};
  workload.pod_name = odd_string(dice);
  workload.pod_namespace = dice.one_in(8) ? "kube-system" : odd_string(dice);
  workload.runtime_handler = odd_string(dice);
  workload.qos = random_qos(dice);
  workload.demand = random_demand(dice);
  if (dice.one_in(5)) workload.kubelet_cpus = part_of(topology.online, 2, dice);
  if (dice.one_in(5)) {
    NodeSet nodes;
    for (const Node& node : topology.nodes) nodes.insert(node.os_index);
    workload.kubelet_mems = part_of(nodes, 2, dice);
  }
  workload.devices = random_devices(topology, dice);
  workload.cdi_devices = random_cdi_devices(topology, dice);
  for (std::uint64_t i = dice.below(4); i > 0; --i) {
    std::string name = odd_string(dice);
    workload.env.emplace_back(std::move(name), odd_string(dice));
  }
  workload.pod_labels = random_map(dice);
  workload.pod_annotations = random_map(dice);
  workload.annotations = random_map(dice);
  workload.settings = random_map(dice);
  if (dice.one_in(2)) workload.pod_demand = random_demand(dice);
  if (dice.one_in(4)) workload.pod_nodes = dice.one_of(ground.candidates).nodes;
  return workload;
}

engine::Allocation random_allocation(const Ground& ground, const engine::Ledger& ledger, std::uint32_t number,
                                     Dice& dice) {
  engine::Allocation allocation;
  allocation.workload.key = {"held-" + std::to_string(number), odd_string(dice), 0, "held"};
  allocation.workload.qos = random_qos(dice);
  allocation.workload.demand = random_demand(dice);
  allocation.phase = engine::Phase::kRunning;
  Placement& placement = allocation.placement;
  if (dice.one_in(2) || ledger.pool().size() < 2) {
    placement.mode = Mode::kShared;
    allocation.within = dice.one_of(ground.candidates).cpus;
    return allocation;
  }
  placement.mode = dice.one_in(6) ? Mode::kForeign : Mode::kExclusive;
  placement.cpus = some_of(ledger.pool(), 1 + dice.below(4), dice);
  if (dice.one_in(4)) placement.withheld = some_of(ledger.pool() - placement.cpus, 1, dice);
  return allocation;
}

LedgerView random_ledger(const Ground& ground, Dice& dice) {
  const Topology& topology = *ground.machine.topology;
  const CpuSet reserved = dice.one_in(3) && topology.allowed.size() > 1 ? CpuSet{topology.allowed.first()} : CpuSet{};
  engine::Ledger ledger({topology.allowed, reserved, topology.isolated}, 1 + dice.below(1000));
  const std::uint64_t count = dice.one_in(3) ? 0 : dice.one_in(6) ? 40 : dice.below(8);
  for (std::uint32_t i = 0; i < count; ++i) ledger.assume(random_allocation(ground, ledger, i, dice));
  return ledger.view();
}

PolicyRequest usual_request(const Ground& ground, std::size_t cpus, const CpuSet& held) {
  const Topology& topology = *ground.machine.topology;
  engine::Ledger ledger({topology.allowed, {}, topology.isolated}, 1);
  if (!held.empty()) {
    engine::Allocation allocation;
    allocation.workload.key = {"uid-0", "db", 0, "sandbox-0"};
    allocation.workload.qos = Qos::kGuaranteed;
    allocation.workload.demand.cpu_request_milli = static_cast<std::int64_t>(held.size()) * 1000;
    allocation.placement.mode = Mode::kExclusive;
    allocation.placement.cpus = held;
    allocation.phase = engine::Phase::kRunning;
    ledger.assume(std::move(allocation));
  }
  Workload workload;
  workload.key = {"uid-1", "web", 0, "sandbox-1"};
  workload.pod_name = "web-0";
  workload.pod_namespace = "default";
  workload.qos = cpus > 0 ? Qos::kGuaranteed : Qos::kBurstable;
  workload.demand.cpu_request_milli = cpus > 0 ? static_cast<std::int64_t>(cpus) * 1000 : 250;
  workload.demand.cpu_limit_milli = workload.demand.cpu_request_milli;
  workload.demand.memory_request_bytes = workload.demand.memory_limit_bytes = 512 * kMiB;
  return make_request(ground.machine.topology, ledger.view(), std::move(workload), ground.candidates, {}, false);
}

}  // namespace

std::vector<Ground> make_grounds() {
  std::vector<Ground> grounds;
  for (Machine& machine : make_machines()) {
    std::vector<Candidate> candidates = make_candidates(*machine.topology, machine.topology->allowed);
    grounds.push_back({std::move(machine), std::move(candidates)});
  }
  return grounds;
}

std::vector<PolicyRequest> usual_requests(const Ground& ground) {
  const CpuSet& allowed = ground.machine.topology->allowed;
  const std::size_t half = std::max<std::size_t>(1, allowed.size() / 2);
  CpuSet held;
  for (const std::uint32_t cpu : allowed) {
    if (held.size() + 1 < half) held.insert(cpu);
  }
  std::vector<PolicyRequest> requests;
  for (const std::size_t cpus : {std::size_t{0}, std::size_t{1}, std::size_t{2}, half, allowed.size()}) {
    requests.push_back(usual_request(ground, cpus, {}));
    requests.push_back(usual_request(ground, cpus, held - ground.machine.topology->isolated));
  }
  return requests;
}

PolicyRequest random_request(const Ground& ground, Dice& dice) {
  LedgerView ledger = random_ledger(ground, dice);
  Workload workload = random_workload(ground, dice);
  if (dice.one_in(10)) workload.demand.memory_limit_bytes = std::numeric_limits<std::int64_t>::max();
  return make_request(ground.machine.topology, std::move(ledger), std::move(workload), ground.candidates, {},
                      dice.one_in(10));
}

}  // namespace topolet
