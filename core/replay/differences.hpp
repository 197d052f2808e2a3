// In what a decision that was made again differs from the recorded one.
#pragma once

#include <string>
#include <vector>

#include "core/replay/json_values.hpp"
#include "core/replay/policy_answers.hpp"

namespace topolet::replay {

struct DecisionDifference {
  std::string policy;  ///< the first that answers otherwise; empty: none does
  std::string what;    ///< for people
};

/// Nothing if they are the same. `before` and `now` are decisions as lines have them.
std::optional<DecisionDifference> difference_between(const Json& before,
                                                     const std::vector<PolicyAnswers>& answers_before, const Json& now,
                                                     const std::vector<PolicyAnswers>& answers_now);

}  // namespace topolet::replay
