// What the agent tells of itself to Prometheus.
#pragma once

#include <string>

#include "cluster/agent/node.hpp"
#include "cluster/agent/watch_client.hpp"

namespace topolet::agent {

/// In the text format.
std::string agent_metrics(const Node& node, const WatchClient& client);

}  // namespace topolet::agent
