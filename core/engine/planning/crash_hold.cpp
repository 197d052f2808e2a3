#include "core/engine/planning/crash_hold.hpp"

#include <optional>
#include <utility>
#include <vector>

namespace topolet::engine {

std::optional<std::vector<placement::ContainerKey>> yielding_until(const Ledger& ledger,
                                                                   const placement::ContainerKey& key,
                                                                   const std::function<bool(const Ledger&)>& suffices) {
  std::vector<placement::ContainerKey> kept = ledger.crashed();
  if (const Allocation* own = ledger.find_crashed(key); own != nullptr) std::erase(kept, own->workload.key);
  if (kept.empty()) return std::nullopt;
  Ledger trial = ledger;
  for (const placement::ContainerKey& crashed : kept) trial.assume_released(crashed);
  if (!suffices(trial)) return std::nullopt;
  // The newest first: who failed last is the likeliest to come back.
  std::vector<placement::ContainerKey> yielding;
  for (auto crashed = kept.rbegin(); crashed != kept.rend(); ++crashed) {
    Ledger with = trial;
    with.assume(*ledger.find(*crashed));
    if (suffices(with)) {
      trial = std::move(with);
    } else {
      yielding.insert(yielding.begin(), *crashed);
    }
  }
  return yielding;
}

Plan reclaim_and_plan(const Placer& placer, const Ledger& ledger, const placement::Workload& workload,
                      const Placer::Constraints& constraints) {
  Plan plan = placer.plan(ledger, workload, constraints);
  if (!plan.lacks_cpus()) return plan;
  auto yielding = yielding_until(ledger, workload.key, [&](const Ledger& trial) {
    return !placer.plan(trial, workload, constraints).lacks_cpus();
  });
  if (!yielding) return plan;
  std::optional<Ledger> without;
  plan = placer.plan(ledger_without(ledger, *yielding, without), workload, constraints);
  plan.yielding = *std::move(yielding);
  return plan;
}

}  // namespace topolet::engine
