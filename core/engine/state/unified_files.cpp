#include "core/engine/state/unified_files.hpp"

#include "core/placement/unified_value.hpp"

namespace topolet::engine {

SharedStringMap with_files(const SharedStringMap& files, const SharedStringMap& others) {
  if (others.empty()) return files;
  SharedStringMap::Map all = files;
  for (const auto& [file, value] : others) all[file] = value;
  return all;
}

SharedStringMap unified_to_tell(const Allocation& allocation) {
  // Nobody tells what the request of a container that was found has set.
  if (allocation.unified.empty() || allocation.adopted) return {};
  const placement::Workload& workload = allocation.workload;
  SharedStringMap::Map told;
  for (const auto& [file, value] : allocation.unified) {
    const bool is_kubelets = workload.kubelet_unified.count(file) != 0;
    if (!is_kubelets && placement::is_within_limit(value, workload.demand.memory_limit_bytes)) told[file] = value;
  }
  return told;
}

}  // namespace topolet::engine
