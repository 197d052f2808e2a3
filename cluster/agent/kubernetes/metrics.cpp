#include "cluster/agent/kubernetes/metrics.hpp"

#include <prometheus/text_serializer.h>

#include <vector>

#include "core/metrics/table.hpp"

namespace topolet::agent {

std::string reporter_metrics(const Reporter::Counts& counts) {
  using metrics::Table;
  constexpr auto kCounter = prometheus::MetricType::Counter;
  std::vector<prometheus::MetricFamily> families;
  const auto add = [&families](Table table, double value) { families.push_back(table.add(value).family()); };
  Table requests("topolet_agent_api_requests_total", "Requests to the API server by verb and status; 0: no answer.",
                 kCounter);
  for (const auto& [request, count] : counts.requests)
    requests.add(static_cast<double>(count), {{"verb", request.first}, {"status", std::to_string(request.second)}});
  families.push_back(requests.family());
  Table events("topolet_agent_pod_events_total", "Events written on pods, by reason.", kCounter);
  for (const auto& [reason, count] : counts.events.written)
    events.add(static_cast<double>(count), {{"reason", reason}});
  families.push_back(events.family());
  add({"topolet_agent_pod_events_dropped_total", "Events on pods that were not written, for being too many.", kCounter},
      static_cast<double>(counts.events.dropped));
  add({"topolet_agent_pod_events_failed_total", "Events on pods that the API server did not take.", kCounter},
      static_cast<double>(counts.events.failed));
  add({"topolet_agent_bound_pods", "Pods that are bound to this node."}, static_cast<double>(counts.bound_pods));
  add({"topolet_agent_knows_pods", "Whether the pods of this node were listed."}, counts.knows_pods ? 1 : 0);
  add({"topolet_agent_knows_devices", "Whether the kubelet tells which devices it gives out."},
      counts.knows_devices ? 1 : 0);
  const Publisher::Counts& topology = counts.topology;
  add({"topolet_agent_topology_writes_total", "Writes of the NodeResourceTopology.", kCounter},
      static_cast<double>(topology.writes));
  add({"topolet_agent_topology_failed_writes_total", "Writes that the API server did not take.", kCounter},
      static_cast<double>(topology.failed_writes));
  add({"topolet_agent_topology_touches_total", "Second writes, for schedulers that looked too early.", kCounter},
      static_cast<double>(topology.touches));
  add({"topolet_agent_topology_heartbeats_total", "Writes that change the heartbeat only.", kCounter},
      static_cast<double>(topology.heartbeats));
  add({"topolet_agent_topology_deletions_total", "Times that somebody deleted the object.", kCounter},
      static_cast<double>(topology.deletions));
  if (topology.has_node)
    add({"topolet_agent_has_node", "Whether the API server has a Node of this name, as it said last."},
        *topology.has_node ? 1 : 0);
  add({"topolet_agent_topology_other_writers_total", "Times that another program wrote over the object.", kCounter},
      static_cast<double>(topology.other_writers));
  add({"topolet_agent_topology_wake_ups_total", "Times that schedulers were told that there is room again.", kCounter},
      static_cast<double>(topology.wake_ups));
  add({"topolet_agent_topology_generation", "The generation of topoletd's ledger that is published."},
      static_cast<double>(topology.generation));
  add({"topolet_agent_unplaced_containers", "Containers of bound pods that topoletd would deny."},
      static_cast<double>(topology.unplaced_containers));
  Table warnings("topolet_agent_setup_warnings",
                 "Whether this node is set up as nobody can mean it, by what is wrong.");
  for (const char* what : kSetupWarnings)
    warnings.add(topology.setup_warnings.contains(what) ? 1 : 0, {{"what", what}});
  families.push_back(warnings.family());
  if (counts.capacity) {
    Table told("topolet_agent_capacity_hand_downs_total",
               "Times that topoletd was told what others say of this node's capacity, by result.", kCounter);
    told.add(static_cast<double>(counts.capacity->handed_down), {{"result", "ok"}});
    told.add(static_cast<double>(counts.capacity->failed), {{"result", "failed"}});
    families.push_back(told.family());
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace topolet::agent
