// Prometheus metrics of the agent's work in the cluster.
#pragma once

#include <string>

#include "cluster/agent/kubernetes/reporter.hpp"

namespace topolet::agent {

/// In the text format.
std::string reporter_metrics(const Reporter::Counts& counts);

}  // namespace topolet::agent
