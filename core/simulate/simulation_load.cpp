// What a simulation has for a sampler: the measurements that `load` lines say.
#include <fmt/format.h>

#include <algorithm>

#include "core/simulate/simulation.hpp"

namespace topolet::simulate {
namespace {

template <class Loads>
void put_or_erase(Loads& loads, const typename Loads::key_type& of, bool is_known,
                  const typename Loads::mapped_type& load) {
  if (is_known) {
    loads[of] = load;
  } else {
    loads.erase(of);
  }
}

}  // namespace

void Simulation::set_load(const Operation& operation, OperationResult& result) {
  if (operation.measured_for) {
    measured_for_ = operation.measured_for;
  } else if (operation.cpu) {
    if (!topology_->online.contains(*operation.cpu))
      return set_error(result, fmt::format("the machine has no CPU {}, or it is offline", *operation.cpu));
    put_or_erase(cpu_loads_, *operation.cpu, operation.known,
                 {operation.effective_milli, operation.age, operation.used_milli});
  } else if (operation.pod.empty()) {
    const auto is_it = [&](const topology::Node& node) { return node.os_index == operation.node; };
    if (std::none_of(topology_->nodes.begin(), topology_->nodes.end(), is_it))
      return set_error(result, fmt::format("the machine has no node {}", operation.node));
    // One of which nothing is known has no effective capacity either.
    node_loads_[operation.node] = operation.known
                                      ? load::NodeLoad{operation.effective_milli, operation.age, operation.used_milli}
                                      : load::NodeLoad{};
  } else {
    set_container_load(operation, result);
  }
}

void Simulation::set_container_load(const Operation& operation, OperationResult& result) {
  const auto id = container_id(operation, result);
  if (!id) return;
  container_ids_[{operation.pod, operation.container}] = *id;
  put_or_erase(loads_, {operation.pod, operation.container}, operation.known,
               {.cpu_milli = operation.cpu_milli.value_or(0),
                .psi_some_permille = operation.psi_some_permille,
                .age = operation.age,
                .is_throttled = operation.is_throttled,
                .memory_bytes = operation.memory_bytes,
                .memory_psi_permille = operation.memory_psi_permille,
                .io_psi_permille = operation.io_psi_permille});
  fill_placement(operation, result);
}

/// As a sampler would at this moment: null where nothing is measured.
std::shared_ptr<const load::Load> Simulation::measure() const {
  auto measured = std::make_shared<load::Load>();
  measured->nodes = node_loads_;
  measured->cpus = cpu_loads_;
  measured->measured_for = measured_for_;
  for (const topology::Node& node : topology_->nodes) {
    if ((loads_.empty() && node_loads_.empty()) || node.memory_only) continue;
    const auto whole = static_cast<std::int64_t>((node.cpus & topology_->online).size()) * 1000;
    measured->nodes.try_emplace(node.os_index, load::NodeLoad{.effective_milli = whole, .age = {}, .used_milli = {}});
  }
  for (const auto& [name, load] : loads_) {
    if (const auto id = container_ids_.find(name); id != container_ids_.end()) measured->containers[id->second] = load;
  }
  if (measured->empty()) return nullptr;
  return measured;
}

}  // namespace topolet::simulate
