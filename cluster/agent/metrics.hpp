// Prometheus metrics of the agent itself.
#pragma once

#include <string>

#include "cluster/agent/node.hpp"
#include "cluster/agent/watch_client.hpp"

namespace topolet::agent {

/// In the text format.
std::string agent_metrics(const Node& node, const WatchClient& client);
/// Returns the metric that names the Node of this agent; for joins, since no other metric names it.
std::string node_info_metrics(const std::string& node_name);

}  // namespace topolet::agent
