#include "plugins/gpu/judge.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "plugins/gpu/bench.hpp"

namespace topolet::gpu {
namespace {

std::int32_t points(double nearness) {
  return static_cast<std::int32_t>(std::lround(200 * nearness)) + TOPOLET_SCORE_MIN;
}

/// Points by nearness. Of equals the best keep them, the others have fewer by what they fall short of these, but never
/// as few as the next worse ones.
std::vector<std::int32_t> scores_of(const std::vector<Standing>& standings) {
  std::map<std::int32_t, std::int32_t> least_shortfalls;  // by points
  for (const Standing& standing : standings) {
    const auto level = least_shortfalls.try_emplace(points(standing.nearness), standing.shortfall()).first;
    level->second = std::min(level->second, standing.shortfall());
  }
  std::vector<std::int32_t> scores;
  for (const Standing& standing : standings) {
    const auto level = least_shortfalls.find(points(standing.nearness));
    const std::int32_t floor = level == least_shortfalls.begin() ? TOPOLET_SCORE_MIN : std::prev(level)->first + 1;
    scores.push_back(std::max(level->first - (standing.shortfall() - level->second), floor));
  }
  return scores;
}

}  // namespace

std::vector<Verdict> judge(const topolet_request& request, const Sought& sought, const Rules& rules) {
  Bench bench(request, sought, rules.whole_cores);
  if (!bench.has_devices()) {
    const std::string notes = bench.notes();
    return {request.candidate_count, Verdict{TOPOLET_VERDICT_ABSTAIN, 0, notes.empty() ? notes : notes.substr(2)}};
  }
  bench.compare_nodes();
  std::vector<Nodes> usable;
  std::vector<Standing> standings;
  for (const topolet_candidate& candidate : sdk::candidates(request)) {
    const sdk::Set takeable = bench.takeable(candidate.free);
    usable.push_back(bench.nodes().usable(candidate.nodes, takeable.view()));
    standings.push_back(bench.standing(usable.back(), takeable.view()));
  }
  const std::vector<std::int32_t> scores = scores_of(standings);
  std::vector<Verdict> verdicts;
  for (std::size_t i = 0; i < standings.size(); ++i) {
    const topolet_candidate& candidate = sdk::candidates(request)[i];
    if (rules.affinity == Affinity::kRequire && bench.misses_one(usable[i])) {
      verdicts.push_back(
          {TOPOLET_VERDICT_REJECT, 0, "affinity require: " + bench.refusal(candidate, usable[i], standings[i])});
    } else {
      verdicts.push_back({TOPOLET_VERDICT_SCORE, scores[i], bench.reason(candidate, usable[i], standings[i])});
    }
  }
  return verdicts;
}

}  // namespace topolet::gpu
