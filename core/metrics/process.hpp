// The metrics that every program has of its own process.
#pragma once

#include <prometheus/metric_family.h>

#include <string>
#include <vector>

namespace topolet::metrics {

/// Returns resident memory, CPU time, and the numbers of open and permitted descriptors. Names begin with `prefix`,
/// such as "topolet_agent_", as several programs are scraped at one address. Values that cannot be read are left out.
std::vector<prometheus::MetricFamily> process_families(const std::string& prefix);

}  // namespace topolet::metrics
