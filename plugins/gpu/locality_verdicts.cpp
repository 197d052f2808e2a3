#include "plugins/gpu/locality_verdicts.hpp"

#include <algorithm>
#include <utility>

#include "plugins/gpu/locality_model.hpp"
#include "plugins/gpu/ranking.hpp"

namespace topolet::gpu {
namespace {

using sdk::Verdict;

bool keeps_cpus_together(const topolet_request& request, const Rules& rules) {
  return rules.split == Split::kCpus && request.exclusive != 0;
}

/// Returns the addition to a candidate's reason if `split = cpus` has an influence on its score.
std::string split_text(const CandidateRank& rank, const std::vector<CandidateRank>& ranks) {
  const std::size_t narrowest = narrowest_width(ranks).value_or(rank.width);
  if (rank.width > narrowest) return "; split = cpus prefers " + sdk::counted(narrowest, "node") + " for all CPUs";
  const bool is_beaten = std::any_of(ranks.begin(), ranks.end(), [&rank](const CandidateRank& other) {
    return other.has_capacity && other.width > rank.width && other.nearness > rank.nearness;
  });
  return is_beaten && rank.has_capacity ? "; split = cpus keeps all CPUs together" : "";
}

}  // namespace

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
  const bool together = keeps_cpus_together(request, rules);
  if (together) put_narrow_first(ranks, model.device_count());
  const std::vector<std::int32_t> scores = scores_of(ranks);
  std::vector<Verdict> verdicts;
  verdicts.reserve(localities.size());
  for (std::size_t i = 0; i < localities.size(); ++i) {
    const topolet_candidate& candidate = sdk::candidates(request)[i];
    if (rules.affinity == Affinity::kRequire && model.misses_a_device(localities[i].usable)) {
      verdicts.push_back({TOPOLET_VERDICT_REJECT, 0, kRequireText + model.rejection(candidate, localities[i])});
    } else {
      std::string reason = model.reason(candidate, localities[i]);
      if (together) reason += split_text(ranks[i], ranks);
      verdicts.push_back({TOPOLET_VERDICT_SCORE, scores[i], std::move(reason)});
    }
  }
  return verdicts;
}

}  // namespace topolet::gpu
