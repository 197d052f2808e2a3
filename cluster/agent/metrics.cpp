#include "cluster/agent/metrics.hpp"

#include <fmt/format.h>

#include <string_view>

namespace topolet::agent {
namespace {

template <class Value>
void add(std::string& text, std::string_view name, std::string_view type, std::string_view help, Value value,
         std::string_view labels = "") {
  text += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n{0}{3} {4}\n", name, help, type, labels, value);
}

}  // namespace

std::string agent_metrics(const Node& node, const WatchClient& client) {
  const Node::Summary now = node.summary();
  const WatchCounts counts = client.counts();
  std::string text;
  add(text, "topolet_agent_build_info", "gauge", "The version of topolet-agent.", 1,
      "{version=\"" TOPOLET_VERSION "\"}");
  add(text, "topolet_agent_connected", "gauge", "Whether the agent is connected to topoletd.", now.connected ? 1 : 0);
  add(text, "topolet_agent_reconciled", "gauge",
      "Whether topoletd has compared its containers with the runtime since its start.", now.reconciled ? 1 : 0);
  add(text, "topolet_agent_generation", "gauge", "The newest generation of topoletd's ledger that has come.",
      now.generation);
  add(text, "topolet_agent_containers", "gauge", "Containers that topoletd knows.", now.containers);
  add(text, "topolet_agent_watch_lag_seconds", "gauge",
      "From the commit of the newest change until it came to the agent.",
      static_cast<double>(counts.last_lag.count()) / 1000);
  add(text, "topolet_agent_deltas_total", "counter", "Changes that topoletd has told of.", counts.deltas);
  add(text, "topolet_agent_snapshots_total", "counter", "Times that topoletd has told all of its state.",
      counts.snapshots);
  add(text, "topolet_agent_lost_connections_total", "counter", "Connections to topoletd that have ended.",
      counts.lost_connections);
  add(text, "topolet_agent_page_viewers", "gauge", "Browsers that follow the page.", node.followers());
  return text;
}

}  // namespace topolet::agent
