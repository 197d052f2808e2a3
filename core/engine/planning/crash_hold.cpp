#include "core/engine/planning/crash_hold.hpp"

#include <compare>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "core/placement/reason_codes.hpp"

namespace topolet::engine {
namespace {

/// The faults of a plan that more CPUs might mend. The less, the better.
struct Shortfall {
  bool lacks_cpus = false;
  bool misses_zone = false;
  std::size_t nodes = 0;  ///< of the candidate that won

  auto operator<=>(const Shortfall&) const = default;
};

constexpr Shortfall kOnOneNode{false, false, 1};
/// Denied as a policy was not heard: more CPUs would not help.
constexpr Shortfall kUnheard{true, true, 0};

Shortfall shortfall_of(const Plan& plan) {
  const placement::Decision& decision = plan.decision;
  if (plan.lacks_cpus()) return {true, false, 0};
  if (decision.denied) return kUnheard;
  return {false, decision.reason_code == placement::reason_code::kZoneMissed, decision.nodes.size()};
}

std::vector<placement::ContainerKey> kept_for_others(const Ledger& ledger, const placement::ContainerKey& key) {
  std::vector<placement::ContainerKey> kept = ledger.kept();
  if (const Allocation* own = ledger.find_kept(key); own != nullptr) std::erase(kept, own->workload.key);
  return kept;
}

}  // namespace

std::optional<std::vector<placement::ContainerKey>> yielding_until(const Ledger& ledger,
                                                                   const placement::ContainerKey& key,
                                                                   const std::function<bool(const Ledger&)>& suffices) {
  const std::vector<placement::ContainerKey> kept = kept_for_others(ledger, key);
  if (kept.empty()) return std::nullopt;
  Ledger trial = ledger.for_plan();
  for (const placement::ContainerKey& ended : kept) trial.assume_released(ended);
  if (!suffices(trial)) return std::nullopt;
  // Whoever has waited for longest keeps the most.
  std::vector<placement::ContainerKey> yielding;
  for (const placement::ContainerKey& ended : kept) {
    Ledger with = trial;
    with.assume(*ledger.find(ended));
    if (suffices(with)) {
      trial = std::move(with);
    } else {
      yielding.push_back(ended);
    }
  }
  return yielding;
}

Plan reclaim_and_plan(const Placer& placer, const Ledger& ledger, const placement::Workload& workload,
                      const Placer::Constraints& constraints) {
  const auto plan_in = [&](const Ledger& trial) { return placer.plan(trial, workload, constraints); };
  Plan plan = plan_in(ledger);
  const Shortfall now = shortfall_of(plan);
  if (now <= kOnOneNode || now == kUnheard || plan.decision.conflict) return plan;
  // A container that requests no CPU is as well off anywhere.
  if (!now.lacks_cpus && workload.demand.cpu_request_milli == 0) return plan;
  // Set by the first trial, in which nobody keeps anything.
  std::optional<Shortfall> possible;
  auto yielding = yielding_until(ledger, workload.key, [&](const Ledger& trial) {
    const Shortfall then = shortfall_of(plan_in(trial));
    if (!possible) {
      possible = then;
      return then < now;
    }
    return then <= *possible;
  });
  if (!yielding) return plan;
  std::optional<Ledger> without;
  plan = plan_in(ledger_without(ledger, *yielding, without));
  plan.yielding = *std::move(yielding);
  return plan;
}

void release_kept(Ledger& ledger) {
  for (const placement::ContainerKey& key : ledger.kept()) ledger.assume_released(key);
}

}  // namespace topolet::engine
