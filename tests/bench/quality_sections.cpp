#include "tests/bench/quality_sections.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>

#include "tests/bench/headroom_model.hpp"
#include "tests/bench/kubelet_model.hpp"
#include "tests/bench/oracle.hpp"
#include "tests/bench/quality_counts.hpp"

namespace topolet::bench {
namespace {

/// How many CPUs each node has that pods may have.
std::vector<std::uint32_t> node_sizes(const QualityMachine& machine) {
  std::vector<std::uint32_t> sizes;
  for (const topology::Node& node : machine.topology()->nodes) {
    const std::size_t size = (node.cpus & machine.cpus()).size();
    if (size > 0) sizes.push_back(static_cast<std::uint32_t>(size));
  }
  return sizes;
}

/// Pods that want a part of a CPU, or that no node holds, can be judged in section shared only.
void check_sizes(const std::vector<PodSize>& sizes, const QualityMachine& machine) {
  const std::vector<std::uint32_t> nodes = node_sizes(machine);
  for (const PodSize& size : sizes) {
    const bool fits_node = std::any_of(nodes.begin(), nodes.end(), [&size](std::uint32_t node) {
      return std::int64_t{node} * 1000 >= size.milli_cpus;
    });
    if (size.milli_cpus % 1000 == 0 && fits_node) continue;
    throw std::runtime_error(
        fmt::format("a pod of {} CPUs is not whole, or larger than every node", size.milli_cpus / 1e3));
  }
}

/// The kubelet and the oracle, beside what topolet does with the same pods.
class Beside {
 public:
  explicit Beside(const QualityMachine& machine)
      : topology_(*machine.topology()), kubelet_(machine.topology()), nodes_(node_sizes(machine)) {}

  /// Returns true if the pod is inside one node, in the model of the kubelet.
  bool kubelet_in_node(std::size_t pod, const Arrival& arrival) {
    for (const std::size_t ended : arrival.ended_before) kubelet_.end(ended);
    const std::optional<CpuSet> cpus = kubelet_.admit(pod, arrival.cpus());
    return cpus && topology_.nodes_of(*cpus).size() == 1;
  }

  /// Returns true if all pods that are there could be.
  bool could_all(std::size_t pod, const Arrival& arrival) {
    for (const std::size_t ended : arrival.ended_before) live_.erase(ended);
    live_[pod] = arrival.cpus();
    std::vector<std::uint32_t> sizes;
    for (const auto& [unused, cpus] : live_) sizes.push_back(cpus);
    return fits(nodes_, std::move(sizes));
  }

 private:
  const topology::Topology& topology_;
  KubeletModel kubelet_;
  std::vector<std::uint32_t> nodes_;
  std::map<std::size_t, std::uint32_t> live_;
};

}  // namespace

Figures measure_nodes(const Scene& scene, std::uint64_t seed) {
  QualityMachine machine(scene.machine);
  check_sizes(scene.churn.sizes, machine);
  Beside beside(machine);
  Counts counts;
  std::uint32_t kubelet = 0;
  std::uint32_t possible = 0;
  play(churn_on(machine, scene, seed), machine, [&](const Admission& admission) {
    const bool in_kubelet = beside.kubelet_in_node(admission.pod, admission.arrival);
    const bool could = beside.could_all(admission.pod, admission.arrival);
    if (!admission.arrival.is_counted) return;
    counts.add(admission, *machine.topology());
    kubelet += in_kubelet ? 1 : 0;
    possible += could ? 1 : 0;
  });
  Figures figures = counts.figures();
  append(figures, {{"kubelet", share(kubelet, counts.counted)},
                   {"oracle", share(possible, counts.counted)},
                   {"/ kubelet", share(counts.in_node, kubelet)},
                   {"/ oracle", share(counts.in_node, possible)}});
  return figures;
}

namespace {

bool one_has(std::size_t cpus, const CpuSet& free, const std::vector<CpuSet>& groups) {
  return std::any_of(groups.begin(), groups.end(), [&](const CpuSet& group) { return (group & free).size() >= cpus; });
}

}  // namespace

Figures measure_caches(const Scene& scene, std::uint64_t seed) {
  QualityMachine machine(scene.machine);
  check_sizes(scene.churn.sizes, machine);
  const std::vector<CpuSet>& caches = machine.topology()->l3s;
  if (caches.empty()) throw std::runtime_error("the machine has no L3 cache");
  Counts counts;
  std::uint32_t inside = 0;
  std::uint32_t had_room = 0;
  play(churn_on(machine, scene, seed), machine, [&](const Admission& admission) {
    const std::uint32_t cpus = admission.arrival.cpus();
    if (!admission.arrival.is_counted || !one_has(cpus, machine.cpus(), caches)) return;
    counts.add(admission, *machine.topology());
    inside += is_inside_one(admission.placed.cpus, caches) ? 1 : 0;
    had_room += one_has(cpus, admission.free_before, caches) ? 1 : 0;
  });
  Figures figures = counts.figures();
  append(figures, {{"in one L3", share(inside, counts.counted)},
                   {"had room", share(had_room, counts.counted)},
                   {"/ had room", share(inside, had_room)}});
  return figures;
}

namespace {

/// CPUs beside the GPU that neither the pod itself nor another one with a GPU has.
std::size_t room_with_moves(const QualityMachine& machine, const Churn& churn, std::size_t pod) {
  CpuSet room = machine.cpus_beside_gpu(*churn[pod].gpu) & machine.cpus();
  for (const auto& [other, placed] : machine.pods()) {
    if (other != pod && churn[other].gpu) room -= placed.cpus;
  }
  return room.size();
}

HeadroomModel headroom_model_of(const QualityMachine& machine) {
  std::vector<std::uint32_t> cpus;
  std::map<std::uint32_t, std::size_t> places;  // by OS index
  for (const topology::Node& node : machine.topology()->nodes) {
    places[node.os_index] = cpus.size();
    cpus.push_back(node.memory_only ? 0 : static_cast<std::uint32_t>((node.cpus & machine.cpus()).size()));
  }
  std::vector<std::size_t> node_of_gpu;
  for (std::uint32_t gpu = 0; gpu < machine.gpus(); ++gpu) node_of_gpu.push_back(places[machine.node_of_gpu(gpu)]);
  return {std::move(cpus), std::move(node_of_gpu)};
}

/// The figures of the counted pods with a GPU.
struct GpuCounts {
  std::uint32_t counted = 0;
  std::uint32_t local = 0;
  std::uint32_t rule = 0;
  std::uint32_t had_room = 0;
  std::uint32_t could_have = 0;

  Figures figures() const {
    return {count("GPU pods", counted),
            {"local", share(local, counted)},
            {"simple rule", share(rule, counted)},
            {"had room", share(had_room, counted)},
            {"with moves", share(could_have, counted)},
            {"/ simple rule", share(local, rule)},
            {"/ had room", share(local, had_room)},
            {"/ with moves", share(local, could_have)}};
  }
};

}  // namespace

Figures measure_gpus(const Scene& scene, std::uint64_t seed) {
  QualityMachine machine(scene.machine);
  check_sizes(scene.churn.sizes, machine);
  check_sizes(scene.churn.gpu_sizes, machine);
  const Churn churn = churn_on(machine, scene, seed);
  HeadroomModel rule = headroom_model_of(machine);
  Counts all;
  GpuCounts gpus;
  play(churn, machine, [&](const Admission& admission) {
    const Arrival& arrival = admission.arrival;
    for (const std::size_t ended : arrival.ended_before) rule.end(ended);
    const bool is_local_by_rule = rule.admit(admission.pod, arrival);
    if (!arrival.is_counted) return;
    all.add(admission, *machine.topology());
    if (!arrival.gpu) return;
    const CpuSet& beside = machine.cpus_beside_gpu(*arrival.gpu);
    ++gpus.counted;
    gpus.local += is_inside_one(admission.placed.cpus, {beside}) ? 1 : 0;
    gpus.rule += is_local_by_rule ? 1 : 0;
    gpus.had_room += one_has(arrival.cpus(), admission.free_before, {beside}) ? 1 : 0;
    gpus.could_have += room_with_moves(machine, churn, admission.pod) >= arrival.cpus() ? 1 : 0;
  });
  Figures figures = all.figures();
  append(figures, gpus.figures());
  return figures;
}

namespace {

/// Returns the CPUs that shared pods request on each node; one on several nodes counts on each by its CPUs there.
std::vector<double> shared_by_node(const QualityMachine& machine, const Churn& churn) {
  std::vector<double> by_node;
  for (const topology::Node& node : machine.topology()->nodes) {
    if (node.memory_only) continue;
    double& sum = by_node.emplace_back(0);
    for (const auto& [pod, placed] : machine.pods()) {
      if (churn[pod].is_exclusive() || placed.cpus.empty()) continue;
      const double part =
          static_cast<double>((placed.cpus & node.cpus).size()) / static_cast<double>(placed.cpus.size());
      sum += part * static_cast<double>(churn[pod].milli_cpus) / 1000;
    }
  }
  return by_node;
}

/// The most loaded node's part of the shared requests, as a multiple of the mean.
double imbalance(const std::vector<double>& by_node) {
  double sum = 0;
  for (const double node : by_node) sum += node;
  return sum == 0 ? 1 : *std::max_element(by_node.begin(), by_node.end()) * static_cast<double>(by_node.size()) / sum;
}

}  // namespace

Figures measure_shared(const Scene& scene, std::uint64_t seed) {
  QualityMachine machine(scene.machine);
  const Churn churn = churn_on(machine, scene, seed);
  Counts exclusive;
  Counts shared;
  std::uint32_t squeezed = 0;
  double sum = 0;
  play(churn, machine, [&](const Admission& admission) {
    (admission.arrival.is_exclusive() ? exclusive : shared).add(admission, *machine.topology());
    const std::vector<double> by_node = shared_by_node(machine, churn);
    sum += imbalance(by_node);
    std::size_t place = 0;
    bool over = false;
    for (const topology::Node& node : machine.topology()->nodes) {
      if (node.memory_only) continue;
      over = over || by_node[place++] > static_cast<double>((node.cpus & machine.free()).size()) + 1e-6;
    }
    squeezed += over ? 1 : 0;
  });
  const auto steps = static_cast<std::uint32_t>(churn.size());
  return {count("pods", steps),
          count("denied", exclusive.denied + shared.denied),
          count("lost votes", exclusive.lost_votes + shared.lost_votes),
          {"max/mean, mean", sum / steps},
          {"max/mean, end", imbalance(shared_by_node(machine, churn))},
          {"squeezed", share(squeezed, steps)},
          {"exclusive in one node", share(exclusive.in_node, exclusive.counted)}};
}

namespace {

/// Returns the share of common nodes among all nodes of both, 0 to 1.
double in_common(const topology::Topology& topology, const Placed& pod) {
  const NodeSet first = topology.nodes_of(pod.cpus);
  const NodeSet second = topology.nodes_of(pod.beside);
  const std::size_t all = (first | second).size();
  return all == 0 ? 0 : static_cast<double>((first & second).size()) / static_cast<double>(all);
}

bool are_in_one_node(const topology::Topology& topology, const Placed& pod) {
  return topology.nodes_of(pod.cpus | pod.beside).size() == 1;
}

/// Returns the mean over the pods that run.
double mean_in_common(const QualityMachine& machine) {
  double sum = 0;
  for (const auto& [unused, pod] : machine.pods()) sum += in_common(*machine.topology(), pod);
  return machine.pods().empty() ? 1 : sum / static_cast<double>(machine.pods().size());
}

}  // namespace

Figures measure_pods(const Scene& scene, std::uint64_t seed) {
  QualityMachine machine(scene.machine);
  Counts counts;
  double common = 0;
  double common_of_all = 0;
  std::uint32_t whole = 0;
  std::uint32_t containers = 0;
  std::uint32_t containers_in_node = 0;
  const topology::Topology& topology = *machine.topology();
  play(churn_on(machine, scene, seed), machine, [&](const Admission& admission) {
    if (!admission.arrival.is_counted) return;
    counts.add(admission, topology);
    const Placed& placed = admission.placed;
    common += placed.is_denied ? 0 : in_common(topology, placed);
    whole += !placed.is_denied && are_in_one_node(topology, placed) ? 1 : 0;
    common_of_all += mean_in_common(machine);
    for (const CpuSet* cpus : {&placed.cpus, &placed.beside}) {
      ++containers;
      containers_in_node += topology.nodes_of(*cpus).size() == 1 ? 1 : 0;
    }
  });
  return {count("pods", counts.counted),
          count("denied", counts.denied),
          count("lost votes", counts.lost_votes),
          {"containers in one node", share(containers_in_node, containers)},
          {"nodes in common", share(common, counts.counted)},
          {"of those that run", share(common_of_all, counts.counted)},
          {"pods in one node", share(whole, counts.counted)}};
}

}  // namespace topolet::bench
