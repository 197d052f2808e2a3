#include "core/placement/isolated_choice.hpp"

#include <optional>
#include <utility>

#include "core/placement/zone.hpp"

namespace topolet::placement {
namespace {

/// Returns the request for CPUs from one source. Former CPUs count only if they are of the same kind.
PolicyRequest only_from(const PolicyRequest& request, CpuSource from) {
  PolicyRequest only = request;
  only.from = from;
  const bool had_isolated = request.keep.intersects(request.ledger.isolated);
  if (had_isolated == (from == CpuSource::kPool)) only.keep = only.retained_withheld = {};
  return only;
}

/// With CPUs of its own, and where a scheduler has reserved room for it, if one has.
bool is_as_wished(const std::optional<NodeSet>& zone, const Decision& decision) {
  if (decision.denied || decision.shared_because_full) return false;
  return !zone || (!decision.nodes.empty() && decision.nodes.is_subset_of(*zone));
}

}  // namespace

Decision decide_by_preference(const PolicyRequest& request, const std::function<Decision(PolicyRequest)>& decide) {
  const std::optional<NodeSet> zone = zone_of(request.workload);
  const bool pool_first = zone && request.zone_is_of_pool;
  // With kPreferIsolated it is offered isolated CPUs only.
  Decision first = decide(only_from(request, pool_first ? CpuSource::kPool : CpuSource::kPreferIsolated));
  if (is_as_wished(zone, first)) return first;
  Decision second = decide(only_from(request, pool_first ? CpuSource::kPreferIsolated : CpuSource::kPool));
  if (is_as_wished(zone, second)) return second;
  Decision& of_isolated = pool_first ? second : first;
  Decision& of_pool = pool_first ? first : second;
  return std::move(of_isolated.denied ? of_pool : of_isolated);
}

}  // namespace topolet::placement
