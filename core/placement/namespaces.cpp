#include "core/placement/namespaces.hpp"

#include <algorithm>

#include "core/base/pattern.hpp"

namespace topolet::placement {

bool is_in_reserved_namespace(const Workload& workload, const PlacementRules& rules) {
  const auto& names = rules.reserved_namespaces;
  return std::find(names.begin(), names.end(), workload.pod_namespace) != names.end();
}

bool may_take_more_than_requested(const Workload& workload, const PlacementRules& rules) {
  return is_in_reserved_namespace(workload, rules) ||
         first_match(rules.exclusive_namespaces, workload.pod_namespace) != nullptr;
}

}  // namespace topolet::placement
