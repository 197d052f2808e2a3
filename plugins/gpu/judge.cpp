#include "plugins/gpu/judge.hpp"

#include "plugins/gpu/bench.hpp"
#include "plugins/gpu/ranking.hpp"

namespace topolet::gpu {
namespace {

/// Whether an exclusive container could be there at all.
bool has_room(const topolet_request& request, topolet_set takeable) {
  return sdk::size_of(takeable) >= (request.exclusive == 0 ? 1 : request.exclusive_cpus);
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
  std::vector<Rank> ranks;
  for (const topolet_candidate& candidate : sdk::candidates(request)) {
    const sdk::Set takeable = bench.takeable(candidate.free);
    usable.push_back(bench.nodes().usable(candidate.nodes, takeable.view()));
    const Standing& standing = standings.emplace_back(bench.standing(usable.back(), takeable.view()));
    ranks.push_back({standing.local, standing.nearness, standing.shortfall(), sdk::size_of(candidate.nodes),
                     has_room(request, takeable.view())});
  }
  const std::vector<std::int32_t> scores = scores_of(ranks);
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
