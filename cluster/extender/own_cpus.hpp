// The part of a pod's demand that counts on one node, by the node's rules.
#pragma once

#include <boost/container/small_vector.hpp>
#include <optional>

#include "cluster/extender/demand.hpp"
#include "cluster/extender/node_rules.hpp"

namespace topolet::extender {

/// Returns the source of the container's CPUs; nothing if it shares CPUs there.
std::optional<CpuSource> cpu_source(const Demand& demand, const ContainerDemand& container, const NodeRules& rules);

/// One for each container of the demand, in its order.
using CpuSources = boost::container::small_vector<std::optional<CpuSource>, 8>;
CpuSources cpu_sources(const Demand& demand, const NodeRules& rules);

/// Returns true if any of its containers has CPUs of its own on a node with these rules.
bool has_own_cpus(const Demand& demand, const NodeRules& rules);

/// Returns the amounts with isolated CPUs in place of those of the pool.
Amounts as_isolated(const Amounts& amounts);

}  // namespace topolet::extender
