#include "core/placement/votes.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace topolet {

bool in_reserved_namespace(const Workload& workload, const DecideRules& rules) {
  const auto& names = rules.reserved_namespaces;
  return std::find(names.begin(), names.end(), workload.pod_namespace) != names.end();
}

void Votes::lose(const Voter& voter, const Error& error) {
  const std::string& name = voter.policy->name();
  decision_.lost_votes.push_back(name);
  decision_.verdicts.lost_votes.push_back(name + ": " + error.message);
  if (voter.fail_closed && !in_reserved_namespace(request_.workload, rules_)) {
    denial_ = fmt::format("plugin {} did not answer ({}) and on-failure.{} = closed", name, error.message, name);
  }
}

void Votes::lose_for(const Voter& voter, const std::string& bad_answer) {
  decision_.bad_answers.push_back({voter.policy->name(), bad_answer});
  lose(voter, {Code::kInternal, bad_answer});
}

bool Votes::has_lost(const Voter& voter) const {
  const auto& lost = decision_.lost_votes;
  return std::find(lost.begin(), lost.end(), voter.policy->name()) != lost.end();
}

}  // namespace topolet
