#include "plugins/gpu/verdicts.hpp"

#include <algorithm>

#include "plugins/gpu/locality_model.hpp"
#include "plugins/gpu/ranking.hpp"

namespace topolet::gpu {

std::vector<Verdict> locality_verdicts(const topolet_request& request, const ContainerDevices& container,
                                       const Rules& rules) {
  LocalityModel model(request, container, rules.whole_cores);
  if (!model.has_devices()) {
    const std::string& notes = model.notes();
    return {request.candidate_count, Verdict{TOPOLET_VERDICT_ABSTAIN, 0, notes.empty() ? notes : notes.substr(2)}};
  }
  model.compare_nodes();
  std::vector<CandidateLocality> localities;
  std::vector<CandidateRank> ranks;
  localities.reserve(request.candidate_count);
  ranks.reserve(request.candidate_count);
  for (const topolet_candidate& candidate : sdk::candidates(request)) {
    const CandidateLocality& locality = localities.emplace_back(model.locality_of(candidate));
    ranks.push_back({locality.score.local, locality.score.nearness, locality.score.penalty(),
                     std::max<std::size_t>(1, sdk::size_of(candidate.nodes)),
                     locality.assignable >= cpus_needed(request)});
  }
  const std::vector<std::int32_t> scores = scores_of(ranks);
  std::vector<Verdict> verdicts;
  verdicts.reserve(localities.size());
  for (std::size_t i = 0; i < localities.size(); ++i) {
    const topolet_candidate& candidate = sdk::candidates(request)[i];
    if (rules.affinity == Affinity::kRequire && model.misses_a_device(localities[i].usable)) {
      verdicts.push_back({TOPOLET_VERDICT_REJECT, 0, kRequireText + model.rejection(candidate, localities[i])});
    } else {
      verdicts.push_back({TOPOLET_VERDICT_SCORE, scores[i], model.reason(candidate, localities[i])});
    }
  }
  return verdicts;
}

}  // namespace topolet::gpu
