// The votes that still count in one decision.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>

#include "core/placement/decision.hpp"
#include "core/placement/policy.hpp"

namespace topolet::placement {

/// The votes of one decision; what is lost is noted in the decision. Borrows what it is made of.
class VoteTally {
 public:
  VoteTally(const PolicyRequest& request, Decision& decision) : request_(request), decision_(decision) {}

  void count_reply() { ++replies_; }
  /// For the reply of a policy that has lost its vote since.
  void take_back_reply() { --replies_; }
  void lose(const Vote& vote, const Error& error);
  /// For what only the core could detect.
  void lose_for_invalid_reply(const Vote& vote, const std::string& bad_answer);
  bool has_lost(const Vote& vote) const;
  /// Returns true if it lost its vote because there was no time to ask it, which is not its fault.
  bool ran_out_of_time(const Vote& vote) const { return out_of_time_.contains(vote.policy->name()); }
  /// "; gpu lost its vote" for each that has, for the end of the decision's reason.
  std::string lost_votes_text() const;
  /// Returns true if its pick must be carried out.
  bool is_required(const Vote& vote) const;

  bool has_no_reply() const { return replies_ == 0; }
  /// Returns why a lost vote denies the container, if it does: the first that does.
  const std::optional<std::string>& denial() const { return denial_; }

 private:
  /// Containers of the system are never denied because a plugin failed, nor are those that run.
  bool may_deny() const { return request_.shared_mode != Mode::kReserved && !request_.stay_near; }

  const PolicyRequest& request_;
  Decision& decision_;
  std::size_t replies_ = 0;
  std::set<std::string> out_of_time_;  ///< names of policies
  std::optional<std::string> denial_;
};

}  // namespace topolet::placement
