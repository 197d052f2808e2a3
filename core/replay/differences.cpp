#include "core/replay/differences.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "core/replay/recorded_fields.hpp"

namespace topolet::replay {
namespace {

using placement::Decision;

const PolicyAnswers* find(const std::vector<PolicyAnswers>& answers, const std::string& policy) {
  const auto found = std::find_if(answers.begin(), answers.end(),
                                  [&policy](const PolicyAnswers& one) { return one.policy == policy; });
  return found == answers.end() ? nullptr : &*found;
}

std::string first_other_policy(const std::vector<PolicyAnswers>& before, const std::vector<PolicyAnswers>& now) {
  for (const PolicyAnswers& one : now) {
    const PolicyAnswers* other = find(before, one.policy);
    if (other == nullptr || *other != one) return one.policy;
  }
  for (const PolicyAnswers& one : before) {
    if (find(now, one.policy) == nullptr) return one.policy;
  }
  return {};
}

/// The policy's answers on each of the best candidates, by its nodes.
std::map<std::string, std::string> words_of(const Decision& decision, const std::string& policy) {
  std::map<std::string, std::string> words;
  for (const placement::CandidateOpinions& candidate : decision.verdicts.best) {
    for (const placement::CandidateOpinions::Opinion& opinion : candidate.opinions) {
      if (opinion.policy != policy) continue;
      const std::string score = opinion.kind == "score" ? fmt::format("{:+}", opinion.score) : opinion.kind;
      words[candidate.nodes] = fmt::format("{} ({})", score, opinion.reason);
    }
  }
  return words;
}

std::string other_words(const Decision& before, const Decision& now, const std::string& policy) {
  const std::map<std::string, std::string> then = words_of(before, policy);
  for (const auto& [nodes, words] : words_of(now, policy)) {
    const auto said = then.find(nodes);
    if (said == then.end() || said->second == words) continue;
    return fmt::format("of nodes {} it said {}, and says {} now", nodes.empty() ? "none" : nodes, said->second, words);
  }
  return "it chooses other CPUs than it chose, sets other fields, or says something else of candidates that did not "
         "win";
}

std::string place_of(const Decision& decision) {
  if (decision.denied) return "denied (" + decision.reason_code + ")";
  const placement::Placement& placement = decision.placement;
  std::string place = fmt::format("{} on CPUs {}", to_string(placement.mode), placement.cpus.to_string());
  if (!placement.withheld.empty()) place += ", withheld " + placement.withheld.to_string();
  if (!placement.mems.empty()) place += ", memory nodes " + placement.mems.to_string();
  return place;
}

std::string other_place(const Decision& before, const Decision& now) {
  const std::string then = place_of(before);
  const std::string place = place_of(now);
  return then == place ? "the container's place is the same, " + place
                       : fmt::format("it was {}, and is {} now", then, place);
}

std::string other_policy(const std::vector<PolicyAnswers>& answers_before,
                         const std::vector<PolicyAnswers>& answers_now, const Decision& before, const Decision& now,
                         const std::string& policy) {
  const PolicyAnswers* then = find(answers_before, policy);
  const PolicyAnswers* again = find(answers_now, policy);
  if (then == nullptr) return "it was not asked then";
  if (again == nullptr) return "it is not asked now";
  if (then->lost != again->lost) {
    return again->lost.empty() ? "it lost its vote then"
                               : fmt::format("it loses its vote now: {}", again->lost.front().why);
  }
  return other_words(before, now, policy);
}

}  // namespace

std::optional<DecisionDifference> difference_between(const Json& before,
                                                     const std::vector<PolicyAnswers>& answers_before, const Json& now,
                                                     const std::vector<PolicyAnswers>& answers_now) {
  const std::string policy = first_other_policy(answers_before, answers_now);
  if (policy.empty() && before == now) return std::nullopt;
  const auto then = from_json<Decision>(before);
  const auto again = from_json<Decision>(now);
  const std::string place = other_place(then, again);
  if (policy.empty()) return DecisionDifference{"", "no policy answers otherwise; " + place};
  return DecisionDifference{policy, fmt::format("policy {} answers otherwise: {}; {}", policy,
                                                other_policy(answers_before, answers_now, then, again, policy), place)};
}

}  // namespace topolet::replay
