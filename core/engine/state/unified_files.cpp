#include "core/engine/state/unified_files.hpp"

#include <string>

#include "core/placement/unified_value.hpp"

namespace topolet::engine {

namespace {

/// With the container's part of the memory that is left over, unless policies have said how much it may use.
SharedStringMap with_memory_share(const Allocation& allocation) {
  const std::string file(placement::kMemoryHigh);
  if (allocation.memory_high == 0 || allocation.unified.count(file) != 0) return allocation.unified;
  const bool is_lifted = allocation.memory_high == kMemoryHighLifted;
  return with_files(allocation.unified,
                    {{file, is_lifted ? std::string(placement::kNoLimit) : std::to_string(allocation.memory_high)}});
}

}  // namespace

SharedStringMap with_files(const SharedStringMap& files, const SharedStringMap& others) {
  if (others.empty()) return files;
  SharedStringMap::Map all = files;
  for (const auto& [file, value] : others) all[file] = value;
  return all;
}

SharedStringMap unified_to_tell(const Allocation& allocation) {
  // Nobody tells what the request of a container that was found has set.
  const SharedStringMap wanted = with_memory_share(allocation);
  if (wanted.empty() || allocation.adopted) return {};
  const placement::Workload& workload = allocation.workload;
  SharedStringMap::Map told;
  for (const auto& [file, value] : wanted) {
    const bool is_kubelets = workload.kubelet_unified.count(file) != 0;
    if (!is_kubelets && placement::is_within_limit(value, workload.demand.memory_limit_bytes)) told[file] = value;
  }
  return told;
}

}  // namespace topolet::engine
