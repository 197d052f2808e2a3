#include "plugins/numa/demand.hpp"

#include <topolet/policy/lists.hpp>

#include <algorithm>
#include <utility>

#include "plugins/numa/pod_place.hpp"
#include "plugins/numa/quantities.hpp"

namespace topolet::numa {

sdk::Set zone_of(const topolet_workload& workload) {
  return sdk::parse_list(sdk::value_of(workload.settings, kZoneSetting)).value_or(sdk::Set());
}

namespace {

/// The host tells the nodes of the pod, and there are none if its first container is outside any node.
bool is_pod_outside_nodes(const topolet_request& request) {
  for (const topolet_candidate& candidate : sdk::candidates(request)) {
    if (sdk::size_of(candidate.nodes) > 0) continue;
    for (const topolet_ledger_entry& entry : sdk::entries(*request.ledger)) {
      if (sdk::text(entry.pod_uid) != sdk::text(request.workload->pod_uid)) continue;
      const std::size_t cpus = sdk::size_of(entry.cpus);
      if (cpus > 0 && sdk::size_of_both(entry.cpus, candidate.cpus) == cpus) return true;
    }
  }
  return false;
}

void add_pod_demand(const topolet_request& request, Demand& demand) {
  const topolet_workload& workload = *request.workload;
  if (workload.pod_demand == nullptr) {
    demand.note += (demand.note.empty() ? "" : "; ") +
                   std::string(
                       "the request of the whole pod is unknown, so the container is placed as with scope = "
                       "container");
    return;
  }
  demand.pod_nodes = workload.pod_nodes;
  demand.pod_is_placed = sdk::size_of(workload.pod_nodes) > 0 || is_pod_outside_nodes(request);
  if (demand.pod_is_placed) return;
  const std::int64_t milli = non_negative(workload.pod_demand->cpu_request_milli);
  // Fractions of a CPU are requested by containers that share CPUs.
  const auto cpus = static_cast<std::size_t>(milli / 1000);
  if (demand.exclusive && cpus > demand.exclusive_cpus) demand.pod_exclusive_cpus = cpus;
  if (!demand.exclusive && milli > demand.shared_milli) demand.pod_shared_milli = milli;
  const std::int64_t memory = memory_of(*workload.pod_demand);
  if (memory > demand.memory_bytes) demand.pod_memory_bytes = memory;
}

/// Without those that have no CPUs, where no container can run: somebody else's scheduler may name the node of a GPU.
sdk::Set with_cpus(const topolet_topology& topology, sdk::Set nodes) {
  for (const topolet_node& node : sdk::nodes(topology)) {
    sdk::Set alone;
    alone.insert(node.os_index);
    if (node.memory_only != 0) nodes -= alone;
  }
  return nodes;
}

void add_zone(const topolet_request& request, Demand& demand) {
  const sdk::Set zone = zone_of(*request.workload);
  demand.zone = with_cpus(*request.topology, zone);
  if (!zone.empty() && demand.zone.empty())
    demand.note = sdk::node_names(zone.view()) + ", which the scheduler has chosen, cannot run anything: no CPUs";
}

/// Adds the rest of the pod's requests. The runtime's CPU shares lose a thousandth of a CPU in each container.
void add_rest_of_pod(const topolet_request& request, Demand& demand) {
  const topolet_workload& workload = *request.workload;
  if (workload.pod_demand == nullptr || workload.demand == nullptr) return;
  const PlacedOfPod placed = placed_of_pod(request);
  const std::int64_t own_milli =
      demand.exclusive ? static_cast<std::int64_t>(demand.exclusive_cpus) * 1000 : demand.shared_milli;
  constexpr std::int64_t kLostMilli = 2;
  const std::int64_t milli = non_negative(workload.pod_demand->cpu_request_milli) - placed.milli - own_milli;
  demand.rest_of_pod_milli = milli <= kLostMilli ? 0 : milli;
  // Known for Guaranteed pods only.
  const std::int64_t bytes = non_negative(workload.pod_demand->memory_request_bytes);
  demand.rest_of_pod_bytes = non_negative(bytes - placed.memory_bytes - demand.memory_bytes);
}

/// Returns true if exclusive containers of the pod may have isolated CPUs.
bool takes_isolated(const topolet_workload& workload, const PolicyOptions& options) {
  if (workload.qos != TOPOLET_QOS_GUARANTEED) return false;
  return options.gives_isolated || !sdk::value_of(workload.settings, kIsolatedSetting).empty();
}

/// Its pod requests something beyond its containers: what the sandbox says counts for where they go.
void stand_for_pod(Demand& demand) {
  if (!demand.is_empty() || (demand.rest_of_pod_milli == 0 && demand.rest_of_pod_bytes == 0)) return;
  demand.shared_milli = std::exchange(demand.rest_of_pod_milli, 0);
  demand.memory_bytes = std::exchange(demand.rest_of_pod_bytes, 0);
  demand.stands_for_pod = true;
}

}  // namespace

Alignment alignment_of(const topolet_workload& workload, const PolicyOptions& options) {
  const auto value = sdk::find_value(workload.settings, kPolicyAnnotation);
  return value ? alignment_named(*value).value_or(options.policy) : options.policy;
}

Demand demand_of(const topolet_request& request, const PolicyOptions& options) {
  const topolet_workload& workload = *request.workload;
  Demand demand;
  demand.alignment = alignment_of(workload, options);
  demand.annotation_error = sdk::setting_error(workload.settings, kPolicyAnnotation,
                                               {"none", "best-effort", "restricted", "single-numa-node"});
  add_zone(request, demand);
  demand.exclusive = request.exclusive != 0 && request.exclusive_cpus > 0;
  demand.exclusive_cpus = demand.exclusive ? request.exclusive_cpus : 0;
  if (workload.demand != nullptr) {
    const topolet_demand& requested = *workload.demand;
    demand.shared_milli = demand.exclusive ? 0 : non_negative(requested.cpu_request_milli);
    demand.memory_bytes = memory_of(requested);
    demand.huge_pages = huge_pages_of(requested);
    demand.binds_memory = options.bind_memory && requested.memory_limit_bytes > 0;
  }
  if (options.scope == Scope::kPod && demand.alignment != Alignment::kNone && !demand.is_empty()) {
    add_pod_demand(request, demand);
  } else if (options.scope == Scope::kContainer && demand.alignment != Alignment::kNone) {
    add_rest_of_pod(request, demand);
    demand.pod_takes_isolated = takes_isolated(workload, options);
    stand_for_pod(demand);
  }
  return demand;
}

}  // namespace topolet::numa
