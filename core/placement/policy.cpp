#include "core/placement/policy.hpp"

namespace topolet::placement {

void PolicyRequest::share(NotExclusive why) {
  if (!exclusive) return;
  exclusive = false;
  exclusive_cpus = 0;
  why_not_exclusive = why;
  keep = retained_withheld = {};
}

Result<Pick> Policy::order_pick(const PolicyRequest& request, std::size_t candidate, const CpuSet& usable,
                                std::size_t count) {
  return pick(request, candidate, usable, count);
}

Result<Pick> Policy::review_pick(const PolicyRequest& request, std::size_t candidate, const CpuSet& usable,
                                 const CpuSet& /*chosen*/) {
  return pick(request, candidate, usable, request.exclusive_cpus);
}

Result<std::vector<NodeSet>> Policy::propose(const PolicyRequest& /*request*/) { return std::vector<NodeSet>(); }

Result<Adjustment> Policy::adjust(const PolicyRequest& /*request*/, const ChosenPlacement& /*chosen*/) {
  return Adjustment();
}

}  // namespace topolet::placement
