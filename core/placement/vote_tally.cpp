#include "core/placement/vote_tally.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace topolet::placement {

void VoteTally::lose(const Vote& vote, const Error& error) {
  const std::string& name = vote.policy->name();
  decision_.lost_votes.push_back(name);
  if (error.code == Code::kDeadlineExceeded) out_of_time_.insert(name);
  const std::string prefix = name + ": ";
  decision_.verdicts.lost_votes.push_back(error.message.starts_with(prefix) ? error.message : prefix + error.message);
  if (denial_ || !may_deny() || !(vote.fail_closed || is_required(vote))) return;
  denial_ = fmt::format("plugin {} lost its vote ({}), and {}; see `topolet plugin list`", name, error.message,
                        vote.fail_closed ? fmt::format("plugins.on-failure.{} = closed", name)
                                         : fmt::format("plugins.required.{} = true", name));
}

bool VoteTally::is_required(const Vote& vote) const { return vote.required && may_deny(); }

void VoteTally::lose_for_invalid_reply(const Vote& vote, const std::string& bad_answer) {
  decision_.invalid_replies.push_back({vote.policy->name(), bad_answer});
  lose(vote, {Code::kInternal, bad_answer});
}

std::string VoteTally::lost_votes_text() const {
  // By name, whatever the order in which the plugins are enabled.
  std::string text;
  for (const std::string& name : std::set<std::string>(decision_.lost_votes.begin(), decision_.lost_votes.end()))
    text += "; " + name + " lost its vote";
  return text;
}

bool VoteTally::has_lost(const Vote& vote) const {
  const auto& lost = decision_.lost_votes;
  return std::find(lost.begin(), lost.end(), vote.policy->name()) != lost.end();
}

}  // namespace topolet::placement
