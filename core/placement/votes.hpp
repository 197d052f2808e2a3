// Who still has a say in one decision.
#pragma once

#include <optional>
#include <string>

#include "core/placement/decide.hpp"

namespace topolet {

bool in_reserved_namespace(const Workload& workload, const DecideRules& rules);

/// The votes of one decision; what is lost is noted in the decision. Borrows what it is made of.
class Votes {
 public:
  Votes(const PolicyRequest& request, const DecideRules& rules, Decision& decision)
      : request_(request), rules_(rules), decision_(decision) {}

  void count_answer() { ++answers_; }
  void lose(const Voter& voter, const Error& error);
  /// For what only the core could see through.
  void lose_for(const Voter& voter, const std::string& bad_answer);
  bool has_lost(const Voter& voter) const;
  /// Whether what it picks must be carried out.
  bool insists(const Voter& voter) const;

  bool nobody_answered() const { return answers_ == 0; }
  /// Why a lost vote denies the container, if it does.
  const std::optional<std::string>& denial() const { return denial_; }

 private:
  const PolicyRequest& request_;
  const DecideRules& rules_;
  Decision& decision_;
  std::size_t answers_ = 0;
  std::optional<std::string> denial_;
};

}  // namespace topolet
