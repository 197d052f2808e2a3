// Each policy's answers in one decision, short enough to be kept: enough to see that it answers otherwise, and to
// have it lose the same votes again.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/result.hpp"
#include "core/placement/decide.hpp"
#include "core/replay/json_values.hpp"

namespace topolet::replay {

/// A call that a policy did not answer.
struct LostCall {
  std::uint32_t number = 0;  ///< among the calls of this policy in the decision, counted from 1
  std::string call;          ///< "score", "propose", "pick", "order", "review", "adjust"
  Code code = Code::kUnknown;
  std::string why;

  friend bool operator==(const LostCall&, const LostCall&) = default;
};

struct PolicyAnswers {
  std::string policy;
  std::uint64_t digest = 0;  ///< of all that it answered, lost calls aside
  std::vector<LostCall> lost;

  friend bool operator==(const PolicyAnswers&, const PolicyAnswers&) = default;
};

struct NotedDecision {
  placement::Decision decision;
  std::vector<PolicyAnswers> answers;  ///< in the order of the votes; empty where nobody asked for them
};

/// Whether the answers of the policies are to be known beside the decision.
enum class Notes : std::uint8_t { kNone, kTaken };

/// Decides as placement::decide() does, and takes notes of what each policy answered.
NotedDecision decide(const placement::PolicyRequest& request, const placement::PlacementRules& rules,
                     const placement::Votes& votes, Notes notes);

/// The same with notes, where the calls that `recorded` says were lost are lost again, without the policy being asked.
NotedDecision decide_again(const placement::PolicyRequest& request, const placement::PlacementRules& rules,
                           const placement::Votes& votes, const std::vector<PolicyAnswers>& recorded);

template <>
struct Fields<LostCall> {
  static auto all() {
    return std::make_tuple(field("number", &LostCall::number), field("call", &LostCall::call),
                           field("code", &LostCall::code), field("why", &LostCall::why));
  }
};

template <>
struct Fields<PolicyAnswers> {
  static auto all() {
    return std::make_tuple(field("policy", &PolicyAnswers::policy), field("digest", &PolicyAnswers::digest),
                           field("lost", &PolicyAnswers::lost));
  }
};

}  // namespace topolet::replay
