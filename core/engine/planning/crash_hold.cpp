#include "core/engine/planning/crash_hold.hpp"

#include <utility>
#include <vector>

namespace topolet::engine {

Plan reclaim_and_plan(const Placer& placer, const Ledger& ledger, const placement::Workload& workload,
                      const Placer::Constraints& constraints) {
  Plan plan = placer.plan(ledger, workload, constraints);
  if (!plan.lacks_cpus()) return plan;
  std::vector<placement::ContainerKey> kept = ledger.crashed();
  if (const Allocation* own = ledger.find_crashed(workload.key); own != nullptr) std::erase(kept, own->workload.key);
  if (kept.empty()) return plan;

  Ledger trial = ledger;
  for (const placement::ContainerKey& key : kept) trial.assume_released(key);
  if (placer.plan(trial, workload, constraints).lacks_cpus()) return plan;

  // The newest first: who failed last is the likeliest to come back.
  std::vector<placement::ContainerKey> yielding;
  for (auto key = kept.rbegin(); key != kept.rend(); ++key) {
    Ledger with = trial;
    with.assume(*ledger.find(*key));
    if (placer.plan(with, workload, constraints).lacks_cpus()) {
      yielding.insert(yielding.begin(), *key);
    } else {
      trial = std::move(with);
    }
  }
  plan = placer.plan(trial, workload, constraints);
  plan.yielding = std::move(yielding);
  return plan;
}

}  // namespace topolet::engine
