#include "cluster/extender/metrics.hpp"

#include <prometheus/text_serializer.h>

#include <utility>
#include <vector>

#include "core/metrics/process.hpp"
#include "core/metrics/table.hpp"

namespace topolet::extender {
namespace {

const prometheus::Histogram::BucketBoundaries kSeconds = {0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0015, 0.002, 0.003,
                                                          0.005,   0.01,   0.025,   0.05,   0.1,   0.25,   1,     5};

}  // namespace

Metrics::Metrics()
    : calls_(prometheus::BuildCounter()
                 .Name("topolet_extender_calls_total")
                 .Help("Calls of schedulers and of other replicas, by call and outcome.")
                 .Register(registry_)),
      seconds_(prometheus::BuildHistogram()
                   .Name("topolet_extender_call_seconds")
                   .Help("From when a call was read until its answer was known.")
                   .Register(registry_)),
      refused_clients_(prometheus::BuildCounter()
                           .Name("topolet_extender_refused_clients_total")
                           .Help("Calls of clients whose certificate has a name that may not call.")
                           .Register(registry_)
                           .Add({})) {}

void Metrics::add_call(const std::string& call, const std::string& outcome, std::chrono::nanoseconds duration) {
  calls_.Add({{"call", call}, {"outcome", outcome}}).Increment();
  seconds_.Add({{"call", call}}, kSeconds).Observe(std::chrono::duration<double>(duration).count());
}

std::string Metrics::text(const Numbers& now) const {
  using metrics::Table;
  std::vector<prometheus::MetricFamily> families = registry_.Collect();
  const auto add = [&families](Table table, double value, const metrics::Labels& labels = {}) {
    families.push_back(table.add(value, labels).family());
  };
  add({"topolet_extender_build_info", "The version of topolet-extender."}, 1, {{"version", TOPOLET_VERSION}});
  add({"topolet_extender_leads", "Whether this replica leads."}, now.leads ? 1 : 0);
  add({"topolet_extender_nodes", "Nodes that publish zones."}, static_cast<double>(now.nodes));
  add({"topolet_extender_stale_nodes",
       "Nodes that do not count a pod that was bound to them, or whose agent was not heard of, for a minute or "
       "longer."},
      static_cast<double>(now.stale_nodes));
  add({"topolet_extender_promises", "Pods whose zones are kept free until their node counts them."},
      static_cast<double>(now.promises));
  add({"topolet_extender_kept", "Zones on nodes that are kept for pods for which others are evicted."},
      static_cast<double>(now.kept));
  add({"topolet_extender_waiting", "Pods that no node had a zone for when a scheduler asked last."},
      static_cast<double>(now.waiting));
  add({"topolet_extender_wake_ups_total", "Times that schedulers were told that there is room again.",
       prometheus::MetricType::Counter},
      static_cast<double>(now.wake_ups));
  Table rights("topolet_extender_missing_rights",
               "Rights that it lacks: those without which it is not ready, and those without which it does less.");
  if (now.missing_needed_rights) rights.add(static_cast<double>(*now.missing_needed_rights), {{"right", "needed"}});
  if (now.missing_useful_rights) rights.add(static_cast<double>(*now.missing_useful_rights), {{"right", "useful"}});
  families.push_back(rights.family());
  Table requests("topolet_extender_api_requests_total", "Requests to the API server by verb and status; 0: no answer.",
                 prometheus::MetricType::Counter);
  for (const auto& [request, count] : now.requests)
    requests.add(static_cast<double>(count), {{"verb", request.first}, {"status", std::to_string(request.second)}});
  families.push_back(requests.family());
  for (prometheus::MetricFamily& family : metrics::process_families("topolet_extender_"))
    families.push_back(std::move(family));
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace topolet::extender
