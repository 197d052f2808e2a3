#include "plugins/numa/zone.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace topolet::numa {

bool is_in_zone(const topolet_candidate& candidate, const sdk::Set& zone) {
  const std::size_t nodes = sdk::size_of(candidate.nodes);
  return nodes > 0 && sdk::size_of_both(candidate.nodes, zone.view()) == nodes;
}

std::string rejection_outside(const sdk::Set& zone) {
  return "it is not within " + sdk::node_names(zone.view()) + ", which the scheduler has chosen (zone = require)";
}

std::vector<Verdict> with_verdicts_on_zone(const topolet_request& request, const Demand& demand, bool is_required,
                                           std::vector<Verdict> verdicts) {
  if (demand.zone.empty()) return verdicts;
  constexpr std::int32_t kPerNodeLess = 10;
  verdicts.resize(request.candidate_count);
  const auto candidates = sdk::candidates(request);
  const std::size_t needed = std::max<std::size_t>(1, demand.exclusive_cpus);
  const auto is_usable = [&](std::size_t i) {
    return verdicts[i].kind != TOPOLET_VERDICT_REJECT && sdk::size_of(candidates[i].usable) >= needed;
  };
  bool has_room = false;
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    has_room = has_room || (is_in_zone(candidates[i], demand.zone) && is_usable(i));
  }
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    Verdict& verdict = verdicts[i];
    if (verdict.kind == TOPOLET_VERDICT_REJECT) continue;
    const bool inside = is_in_zone(candidates[i], demand.zone);
    if (!inside && is_required) {
      verdict = {TOPOLET_VERDICT_REJECT, 0, rejection_outside(demand.zone)};
    } else if (has_room) {
      const auto fewer = static_cast<std::int32_t>(demand.zone.size() -
                                                   std::min(demand.zone.size(), sdk::size_of(candidates[i].nodes)));
      const std::int32_t score = inside ? std::max(1, TOPOLET_SCORE_MAX - kPerNodeLess * fewer) : 0;
      const std::string reason = verdict.reason.empty() ? sdk::node_names(candidates[i].nodes) : verdict.reason;
      verdict = {TOPOLET_VERDICT_SCORE, score, reason + (inside ? kInZone : kNotInZone)};
    }
  }
  return verdicts;
}

}  // namespace topolet::numa
