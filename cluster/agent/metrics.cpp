#include "cluster/agent/metrics.hpp"

#include <prometheus/text_serializer.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/metrics/process.hpp"
#include "core/metrics/table.hpp"

namespace topolet::agent {

/// Every code that is known has a row, so that a rule sees one begin.
static void add_illnesses(const std::vector<Illness>& illnesses, std::vector<prometheus::MetricFamily>& families) {
  std::map<std::string, std::uint32_t> counts;
  std::uint32_t serious = 0;
  for (const char* code : illness::kAll) counts[code] = 0;
  for (const Illness& illness : illnesses) {
    counts[illness.code] += illness.count;
    if (needs_somebody(illness.severity)) serious += illness.count;
  }
  metrics::Table by_code("topolet_illness", "What is ill on this node: how many times, by code.");
  for (const auto& [code, count] : counts) by_code.add(count, {{"code", code}});
  families.push_back(by_code.family());
  metrics::Table needs("topolet_needs_somebody", "How many of the node's illnesses are more than a notice.");
  families.push_back(needs.add(serious).family());
}

std::string agent_metrics(const Node& node, const WatchClient& client) {
  using metrics::Table;
  constexpr auto kCounter = prometheus::MetricType::Counter;
  const Node::Summary now = node.summary();
  const WatchCounts counts = client.counts();
  std::vector<prometheus::MetricFamily> families;
  const auto add = [&families](Table table, double value, const metrics::Labels& labels = {}) {
    families.push_back(table.add(value, labels).family());
  };
  add({"topolet_agent_build_info", "The version of topolet-agent."}, 1, {{"version", TOPOLET_VERSION}});
  add({"topolet_agent_connected", "Whether the agent is connected to topoletd."}, now.connected ? 1 : 0);
  add({"topolet_agent_reconciled", "Whether topoletd has compared its containers with the runtime since its start."},
      now.reconciled ? 1 : 0);
  add({"topolet_agent_generation", "The newest generation of topoletd's ledger that has come."},
      static_cast<double>(now.generation));
  add({"topolet_agent_containers", "Containers that topoletd knows."}, static_cast<double>(now.containers));
  add({"topolet_agent_watch_lag_seconds", "From the commit of the newest change until it came to the agent."},
      static_cast<double>(counts.last_lag.count()) / 1000);
  add({"topolet_agent_deltas_total", "Changes that topoletd has told of.", kCounter},
      static_cast<double>(counts.deltas));
  add({"topolet_agent_snapshots_total", "Times that topoletd has told all of its state.", kCounter},
      static_cast<double>(counts.snapshots));
  add({"topolet_agent_lost_connections_total", "Connections to topoletd that have ended.", kCounter},
      static_cast<double>(counts.lost_connections));
  add_illnesses(node.illnesses(), families);
  add({"topolet_agent_page_viewers", "Browsers that follow the page."}, static_cast<double>(node.followers()));
  for (prometheus::MetricFamily& family : metrics::process_families("topolet_agent_"))
    families.push_back(std::move(family));
  return prometheus::TextSerializer().Serialize(families);
}

std::string node_info_metrics(const std::string& node_name) {
  return prometheus::TextSerializer().Serialize({metrics::Table("topolet_agent_node_info", "The Node that this is.")
                                                     .add(1, {{"node", node_name}, {"version", TOPOLET_VERSION}})
                                                     .family()});
}

}  // namespace topolet::agent
