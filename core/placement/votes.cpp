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
  if (!voter.fail_closed && !insists(voter)) return;
  if (in_reserved_namespace(request_.workload, rules_)) return;
  denial_ = fmt::format(
      "plugin {} did not answer ({}) and {}", name, error.message,
      voter.fail_closed ? fmt::format("on-failure.{} = closed", name) : fmt::format("required.{} = true", name));
}

bool Votes::insists(const Voter& voter) const {
  return voter.required && !in_reserved_namespace(request_.workload, rules_);
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
