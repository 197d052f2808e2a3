#include "core/plugin_checker/random_request.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <utility>

#include "core/engine/state/ledger.hpp"
#include "core/placement/candidates.hpp"
#include "core/placement/make_request.hpp"

namespace topolet::plugin_checker {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

std::string odd_short_string(RandomSource& rng) {
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
  return rng.one_of(kStrings);
}

std::string odd_string(RandomSource& rng) {
  if (rng.one_in(12)) return std::string(64 << 10, rng.one_in(2) ? 'x' : '\xf0');
  return odd_short_string(rng);
}

template <class Tag>
IndexSet<Tag> part_of(const IndexSet<Tag>& set, std::uint64_t one_in, RandomSource& rng) {
  IndexSet<Tag> part;
  for (const std::uint32_t index : set) {
    if (rng.one_in(one_in)) part.insert(index);
  }
  return part;
}

CpuSet some_of(const CpuSet& set, std::uint64_t count, RandomSource& rng) {
  std::vector<std::uint32_t> indices(set.begin(), set.end());
  CpuSet some;
  for (; count > 0 && !indices.empty(); --count) {
    const auto at = indices.begin() + static_cast<std::ptrdiff_t>(rng.below(indices.size()));
    some.insert(*at);
    indices.erase(at);
  }
  return some;
}

placement::Demand random_demand(RandomSource& rng) {
  static const std::vector<std::int64_t> kMilli = {0,    1,    250,  999,  1000, 1000, 2000,
                                                   2000, 3000, 4000, 8000, 1500, 96000};
  static const std::vector<std::int64_t> kMemory = {0, 1, 64 * kMiB, 4096 * kMiB, 1 << 20, 4096 * kMiB * 1024};
  placement::Demand demand;
  demand.cpu_request_milli = rng.one_of(kMilli);
  demand.cpu_limit_milli = rng.one_in(2) ? demand.cpu_request_milli : rng.one_of(kMilli);
  demand.memory_request_bytes = rng.one_of(kMemory);
  demand.memory_limit_bytes = rng.one_in(2) ? demand.memory_request_bytes : rng.one_of(kMemory);
  demand.memory_request_estimated = rng.one_in(3);
  if (rng.one_in(4)) demand.hugepage_limit_bytes["2MB"] = 2 * kMiB * static_cast<std::int64_t>(rng.below(1000));
  if (rng.one_in(8)) demand.hugepage_limit_bytes[odd_string(rng)] = std::numeric_limits<std::int64_t>::max();
  return demand;
}

placement::Qos random_qos(RandomSource& rng) {
  return rng.one_of(std::vector<placement::Qos>{placement::Qos::kGuaranteed, placement::Qos::kGuaranteed,
                                                placement::Qos::kBurstable, placement::Qos::kBestEffort});
}

std::map<std::string, std::string> random_map(RandomSource& rng) {
  std::map<std::string, std::string> map;
  for (std::uint64_t i = rng.below(4); i > 0; --i) map[odd_string(rng)] = odd_string(rng);
  return map;
}

/// Names of the machine's devices among names of none, so that plugins find some. Where there are many, most are short:
/// to copy megabytes would take most of the time of the check.
std::vector<std::string> random_devices(const topology::Topology& topology, RandomSource& rng) {
  std::vector<std::string> devices;
  constexpr std::uint64_t kMostLong = 4;
  const std::uint64_t count = rng.one_in(10) ? 300 : rng.below(kMostLong);
  for (std::uint64_t i = 0; i < count; ++i) {
    const bool known = !topology.os_devices.empty() && rng.one_in(2);
    devices.push_back(known           ? "/dev/" + rng.one_of(topology.os_devices).name
                      : i < kMostLong ? odd_string(rng)
                                      : odd_short_string(rng));
  }
  return devices;
}

std::vector<std::string> random_cdi_devices(const topology::Topology& topology, RandomSource& rng) {
  std::vector<std::string> devices;
  for (std::uint64_t i = rng.below(3); i > 0; --i) {
    const bool known = !topology.pci_devices.empty() && rng.one_in(2);
    devices.push_back("example.com/gpu=" + (known ? rng.one_of(topology.pci_devices).address : odd_string(rng)));
  }
  return devices;
}

placement::Workload random_workload(const Testbed& testbed, RandomSource& rng) {
  const topology::Topology& topology = *testbed.machine.topology;
  placement::Workload workload;
  workload.key = {odd_string(rng), odd_string(rng), static_cast<std::uint32_t>(rng.below(5)), odd_string(rng)};
  workload.pod_name = odd_string(rng);
  workload.pod_namespace = rng.one_in(8) ? "kube-system" : odd_string(rng);
  workload.runtime_handler = odd_string(rng);
  workload.qos = random_qos(rng);
  workload.demand = random_demand(rng);
  if (rng.one_in(5)) workload.kubelet_cpus = part_of(topology.online, 2, rng);
  if (rng.one_in(5)) {
    NodeSet nodes;
    for (const topology::Node& node : topology.nodes) nodes.insert(node.os_index);
    workload.kubelet_mems = part_of(nodes, 2, rng);
  }
  workload.devices = random_devices(topology, rng);
  workload.cdi_devices = random_cdi_devices(topology, rng);
  for (std::uint64_t i = rng.below(4); i > 0; --i) {
    std::string name = odd_string(rng);
    workload.env.emplace_back(std::move(name), odd_string(rng));
  }
  workload.pod_labels = random_map(rng);
  workload.pod_annotations = random_map(rng);
  workload.annotations = random_map(rng);
  workload.settings = random_map(rng);
  if (rng.one_in(2)) workload.pod_demand = random_demand(rng);
  if (rng.one_in(4)) workload.pod_nodes = rng.one_of(testbed.candidates).nodes;
  return workload;
}

engine::Allocation random_allocation(const Testbed& testbed, const engine::Ledger& ledger, std::uint32_t number,
                                     RandomSource& rng) {
  engine::Allocation allocation;
  allocation.workload.key = {"held-" + std::to_string(number), odd_string(rng), 0, "held"};
  allocation.workload.qos = random_qos(rng);
  allocation.workload.demand = random_demand(rng);
  allocation.phase = engine::Phase::kRunning;
  allocation.container_id = "c" + std::to_string(number);
  placement::Placement& placement = allocation.placement;
  if (rng.one_in(2) || ledger.pool().size() < 2) {
    placement.mode = placement::Mode::kShared;
    allocation.within = rng.one_of(testbed.candidates).cpus;
    return allocation;
  }
  placement.mode = rng.one_in(6) ? placement::Mode::kForeign : placement::Mode::kExclusive;
  placement.cpus = some_of(ledger.pool(), 1 + rng.below(4), rng);
  if (rng.one_in(4)) placement.withheld = some_of(ledger.pool() - placement.cpus, 1, rng);
  return allocation;
}

placement::LedgerSnapshot random_ledger(const Testbed& testbed, RandomSource& rng) {
  const topology::Topology& topology = *testbed.machine.topology;
  const CpuSet reserved = rng.one_in(3) && topology.allowed.size() > 1 ? CpuSet{topology.allowed.first()} : CpuSet{};
  engine::Ledger ledger({topology.allowed, reserved, topology.isolated}, 1 + rng.below(1000));
  const std::uint64_t count = rng.one_in(3) ? 0 : rng.one_in(6) ? 40 : rng.below(8);
  for (std::uint32_t i = 0; i < count; ++i) ledger.assume(random_allocation(testbed, ledger, i, rng));
  return ledger.snapshot();
}

/// Null, or of some containers and nodes, or of none of either kind: idle ones, and ones that use more than there is.
std::shared_ptr<const load::Load> random_load(const placement::PolicyRequest& request, RandomSource& rng) {
  static const std::vector<std::int64_t> kMilli = {0, 1, 250, 1000, 64'000, std::int64_t{1} << 40};
  if (rng.one_in(3)) return nullptr;
  const auto age = [&rng] { return std::chrono::milliseconds(rng.below(2) * 1000); };
  load::Load load;
  const bool has_nodes = rng.one_in(2);
  for (const topology::Node& node : request.topology->nodes) {
    if (has_nodes && !rng.one_in(4)) load.nodes[node.os_index] = {rng.one_of(kMilli), age()};
  }
  const bool has_containers = rng.one_in(2);
  for (const placement::LedgerEntry& entry : request.ledger.entries) {
    if (!has_containers || rng.one_in(4)) continue;
    load::ContainerLoad& container = load.containers[entry.container_id];
    container = {rng.one_of(kMilli), {}, age()};
    if (rng.one_in(2)) container.psi_some_permille = static_cast<std::uint32_t>(rng.below(1001));
  }
  return std::make_shared<const load::Load>(std::move(load));
}

/// Nothing, as on a new node, or up to more than the machine has by now.
std::uint32_t random_largest(const CpuSet& allowed, RandomSource& rng) {
  const auto cpus = static_cast<std::uint32_t>(allowed.size());
  return rng.one_of(std::vector<std::uint32_t>{0, 0, 1, (cpus + 1) / 2, cpus, 2 * cpus});
}

/// Why it is decided, what the container had, what was and is measured, and what other policies are set to.
void add_circumstances(placement::PolicyRequest& request, RandomSource& rng) {
  request.occasion =
      static_cast<placement::Occasion>(rng.below(static_cast<std::uint64_t>(placement::Occasion::kAdopt) + 1));
  if (rng.one_in(2)) request.rdt_classes = {"gold", "silver"};
  if (request.occasion != placement::Occasion::kCreate) request.had.cpus = request.shared_cpus();
  request.largest_exclusive_cpus = random_largest(request.topology->allowed, rng);
  request.load = random_load(request, rng);
  request.common_options = {.whole_cores = rng.one_in(4), .pod_scope = rng.one_in(4), .spread_cores = rng.one_in(8)};
  if (rng.one_in(2)) request.settable = placement::all_settable("NRI");
}

placement::PolicyRequest usual_request(const Testbed& testbed, std::size_t cpus, const CpuSet& held) {
  const topology::Topology& topology = *testbed.machine.topology;
  engine::Ledger ledger({topology.allowed, {}, topology.isolated}, 1);
  if (!held.empty()) {
    engine::Allocation allocation;
    allocation.workload.key = {"uid-0", "db", 0, "sandbox-0"};
    allocation.workload.qos = placement::Qos::kGuaranteed;
    allocation.workload.demand.cpu_request_milli = static_cast<std::int64_t>(held.size()) * 1000;
    allocation.placement.mode = placement::Mode::kExclusive;
    allocation.placement.cpus = held;
    allocation.phase = engine::Phase::kRunning;
    ledger.assume(std::move(allocation));
  }
  placement::Workload workload;
  workload.key = {"uid-1", "web", 0, "sandbox-1"};
  workload.pod_name = "web-0";
  workload.pod_namespace = "default";
  workload.qos = cpus > 0 ? placement::Qos::kGuaranteed : placement::Qos::kBurstable;
  workload.demand.cpu_request_milli = cpus > 0 ? static_cast<std::int64_t>(cpus) * 1000 : 250;
  workload.demand.cpu_limit_milli = workload.demand.cpu_request_milli;
  workload.demand.memory_request_bytes = workload.demand.memory_limit_bytes = 512 * kMiB;
  return make_request(testbed.machine.topology, ledger.snapshot(), std::move(workload), testbed.candidates, {}, false);
}

}  // namespace

std::vector<Testbed> make_testbeds() {
  std::vector<Testbed> testbeds;
  for (Machine& machine : make_machines()) {
    std::vector<placement::Candidate> candidates =
        placement::make_candidates(*machine.topology, machine.topology->allowed);
    testbeds.push_back({std::move(machine), std::move(candidates)});
  }
  return testbeds;
}

std::vector<placement::PolicyRequest> usual_requests(const Testbed& testbed) {
  const CpuSet& allowed = testbed.machine.topology->allowed;
  const std::size_t half = std::max<std::size_t>(1, allowed.size() / 2);
  CpuSet held;
  for (const std::uint32_t cpu : allowed) {
    if (held.size() + 1 < half) held.insert(cpu);
  }
  std::vector<placement::PolicyRequest> requests;
  for (const std::size_t cpus : {std::size_t{0}, std::size_t{1}, std::size_t{2}, half, allowed.size()}) {
    requests.push_back(usual_request(testbed, cpus, {}));
    requests.push_back(usual_request(testbed, cpus, held - testbed.machine.topology->isolated));
  }
  return requests;
}

placement::PolicyRequest random_request(const Testbed& testbed, RandomSource& rng) {
  placement::LedgerSnapshot ledger = random_ledger(testbed, rng);
  placement::Workload workload = random_workload(testbed, rng);
  if (rng.one_in(10)) workload.demand.memory_limit_bytes = std::numeric_limits<std::int64_t>::max();
  placement::PolicyRequest request = make_request(testbed.machine.topology, std::move(ledger), std::move(workload),
                                                  testbed.candidates, {}, rng.one_in(10));
  add_circumstances(request, rng);
  return request;
}

}  // namespace topolet::plugin_checker
