#include "plugins/gpu/verdicts.hpp"

#include <algorithm>

#include "plugins/gpu/locality_model.hpp"
#include "plugins/gpu/ranking.hpp"

namespace topolet::gpu {

std::vector<Verdict> locality_verdicts(const topolet_request& request, const ContainerDevices& container,
                                       const Rules& rules) {
  LocalityModel model(request, container, rules.whole_cores);
  if (!model.has_devices()) {
    const std::string notes = model.notes();
    return {request.candidate_count, Verdict{TOPOLET_VERDICT_ABSTAIN, 0, notes.empty() ? notes : notes.substr(2)}};
  }
  model.compare_nodes();
  std::vector<Nodes> usable;
  std::vector<LocalityScore> localities;
  std::vector<CandidateRank> ranks;
  for (const topolet_candidate& candidate : sdk::candidates(request)) {
    const sdk::Set assignable = model.assignable(candidate.free);
    usable.push_back(model.nodes().usable(candidate.nodes, assignable.view()));
    const LocalityScore& locality = localities.emplace_back(model.score(usable.back(), assignable.view()));
    ranks.push_back({locality.local, locality.nearness, locality.penalty(),
                     std::max<std::size_t>(1, sdk::size_of(candidate.nodes)),
                     assignable.size() >= cpus_needed(request)});
  }
  const std::vector<std::int32_t> scores = scores_of(ranks);
  std::vector<Verdict> verdicts;
  for (std::size_t i = 0; i < localities.size(); ++i) {
    const topolet_candidate& candidate = sdk::candidates(request)[i];
    if (rules.affinity == Affinity::kRequire && model.misses_a_device(usable[i])) {
      verdicts.push_back(
          {TOPOLET_VERDICT_REJECT, 0, kRequireText + model.rejection(candidate, usable[i], localities[i])});
    } else {
      verdicts.push_back({TOPOLET_VERDICT_SCORE, scores[i], model.reason(candidate, usable[i], localities[i])});
    }
  }
  return verdicts;
}

}  // namespace topolet::gpu
