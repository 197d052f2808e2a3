#include "cluster/extender/own_cpus.hpp"

#include <algorithm>

#include "core/base/pattern.hpp"

namespace topolet::extender {
namespace {

bool may_take_more(const Demand& demand, const NodeRules& rules) {
  if (rules.reserves(demand.name_space)) return true;
  if (!rules.exclusive_namespaces) return demand.may_take_more;
  return first_match(*rules.exclusive_namespaces, demand.name_space) != nullptr;
}

/// Returns true if the annotation takes no more than the rule gives to containers without it.
bool is_given_anyway(ContainerDemand::Isolated wish, NodeRules::Isolated rule) {
  if (rule == NodeRules::Isolated::kAlways) return wish == ContainerDemand::Isolated::kRequire;
  return rule == NodeRules::Isolated::kPrefer;
}

}  // namespace

bool NodeRules::reserves(std::string_view name_space) const {
  if (!reserved_namespaces) return name_space == "kube-system";
  return std::find(reserved_namespaces->begin(), reserved_namespaces->end(), name_space) != reserved_namespaces->end();
}

std::optional<CpuSource> cpu_source(const Demand& demand, const ContainerDemand& container, const NodeRules& rules) {
  using Wish = ContainerDemand::Isolated;
  if (container.why == ContainerDemand::Why::kDefault && rules.reserves(demand.name_space)) return std::nullopt;
  if (container.why == ContainerDemand::Why::kRoundedUp && !may_take_more(demand, rules)) return std::nullopt;
  if (rules.isolated == NodeRules::Isolated::kUntold) return CpuSource::kPool;
  const bool counts = container.isolated != Wish::kNone &&
                      (is_given_anyway(container.isolated, rules.isolated) || may_take_more(demand, rules));
  if (counts) return container.isolated == Wish::kRequire ? CpuSource::kIsolated : CpuSource::kPreferIsolated;
  if (rules.isolated == NodeRules::Isolated::kAlways) return CpuSource::kIsolated;
  return rules.isolated == NodeRules::Isolated::kPrefer ? CpuSource::kPreferIsolated : CpuSource::kPool;
}

CpuSources cpu_sources(const Demand& demand, const NodeRules& rules) {
  CpuSources sources;
  for (const ContainerDemand& container : demand.containers) sources.push_back(cpu_source(demand, container, rules));
  return sources;
}

bool has_own_cpus(const Demand& demand, const NodeRules& rules) {
  return std::any_of(demand.containers.begin(), demand.containers.end(), [&](const ContainerDemand& container) {
    return cpu_source(demand, container, rules).has_value();
  });
}

Amounts as_isolated(const Amounts& amounts) {
  Amounts isolated;
  for (const Ask& ask : amounts.asks()) isolated.set(ask.resource == kCpu ? kIsolatedCpu : ask.resource, ask.amount);
  return isolated;
}

}  // namespace topolet::extender
