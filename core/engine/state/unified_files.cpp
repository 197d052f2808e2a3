#include "core/engine/state/unified_files.hpp"

#include <string>

#include "core/placement/unified_value.hpp"

namespace topolet::engine {

namespace {

/// With the container's part of the memory that is left over, unless policies have said how much it may use. Nobody
/// tells what the request of a container that was found has set: of its files topolet tells none but a memory.high that
/// it knows for its own.
SharedStringMap with_memory_share(const Allocation& allocation) {
  const std::string file(placement::kMemoryHigh);
  const SharedStringMap by_policies = allocation.adopted ? SharedStringMap() : allocation.unified;
  if (allocation.memory_high == 0 || by_policies.count(file) != 0) return by_policies;
  const bool is_lifted = allocation.memory_high == kMemoryHighLifted;
  return with_files(by_policies,
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
  const SharedStringMap wanted = with_memory_share(allocation);
  if (wanted.empty()) return {};
  const placement::Workload& workload = allocation.workload;
  SharedStringMap::Map told;
  for (const auto& [file, value] : wanted) {
    const bool is_kubelets = workload.kubelet_unified.count(file) != 0;
    if (!is_kubelets && placement::is_within_limit(value, workload.demand.memory_limit_bytes)) told[file] = value;
  }
  return told;
}

}  // namespace topolet::engine
