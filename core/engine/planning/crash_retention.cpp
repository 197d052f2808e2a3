#include "core/engine/planning/crash_retention.hpp"

#include <utility>
#include <vector>

namespace topolet::engine {

Plan plan_with_reclaim(const Placer& placer, const Ledger& ledger, const Workload& workload,
                       const Placer::Terms& terms) {
  Plan plan = placer.plan(ledger, workload, terms);
  if (!plan.lacks_cpus()) return plan;
  std::vector<ContainerKey> kept = ledger.crashed();
  if (const Allocation* own = ledger.find_crashed(workload.key); own != nullptr) std::erase(kept, own->workload.key);
  if (kept.empty()) return plan;

  Ledger trial = ledger;
  for (const ContainerKey& key : kept) trial.assume_released(key);
  if (placer.plan(trial, workload, terms).lacks_cpus()) return plan;

  // The newest first: who failed last is the likeliest to come back.
  std::vector<ContainerKey> reclaimed;
  for (auto key = kept.rbegin(); key != kept.rend(); ++key) {
    Ledger with = trial;
    with.assume(*ledger.find(*key));
    if (placer.plan(with, workload, terms).lacks_cpus()) {
      reclaimed.insert(reclaimed.begin(), *key);
    } else {
      trial = std::move(with);
    }
  }
  plan = placer.plan(trial, workload, terms);
  plan.reclaimed = std::move(reclaimed);
  return plan;
}

}  // namespace topolet::engine
