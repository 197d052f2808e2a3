#include "core/engine/converge/footprints.hpp"

namespace topolet::engine {

void Footprints::add(const std::string& container_id, const CpuSet& cpus) {
  cpus_[container_id] |= cpus;
  told_[container_id] |= cpus;
}

void Footprints::forget(const std::string& container_id) {
  cpus_.erase(container_id);
  told_.erase(container_id);
}

CpuSet Footprints::find(const ByContainer& sets, const std::string& container_id) {
  const auto known = sets.find(container_id);
  return known == sets.end() ? CpuSet() : known->second;
}

std::vector<placement::ContainerKey> Footprints::unnoticed_on_cpus_of(const placement::ContainerKey& key,
                                                                      const Ledger& ledger) const {
  std::vector<placement::ContainerKey> keys;
  const Allocation* newcomer = ledger.find(key);
  const CpuSet alone = newcomer == nullptr ? CpuSet() : newcomer->dedicated_cpus();
  if (alone.empty()) return keys;
  for (const auto& [id, cpus] : cpus_) {
    if (!cpus.intersects(alone)) continue;
    const Allocation* other = ledger.find_by_container(id);
    // One in conflict stays where the kubelet put it, and one without any CPU left where the kernel puts it.
    if (other == nullptr || other == newcomer || !other->is_managed() || other->conflict) continue;
    if (other->squeeze == Squeeze::kLeftToKernel) continue;
    if (!(cpus & alone).is_subset_of(other->vacating)) keys.push_back(other->workload.key);
  }
  return keys;
}

}  // namespace topolet::engine
