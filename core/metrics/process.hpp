// What every program tells of its own process.
#pragma once

#include <prometheus/metric_family.h>

#include <string>
#include <vector>

namespace topolet::metrics {

/// Resident memory, CPU time, and descriptors that are open and that may be. Names begin with `prefix`, such as
/// "topolet_agent_", as several programs are scraped at one address. What cannot be read is left out.
std::vector<prometheus::MetricFamily> process_families(const std::string& prefix);

}  // namespace topolet::metrics
