// From a candidate to a placement: what the policies pick and adjust, put together.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/placement/placement_rules.hpp"
#include "core/placement/policy.hpp"
#include "core/placement/rank.hpp"
#include "core/placement/votes.hpp"

namespace topolet::placement {

/// Works on the decision's placement, `within` and dropped picks. Borrows its arguments.
class PlacementBuilder {
 public:
  PlacementBuilder(const PolicyRequest& request, const PlacementRules& rules, const Votes& votes, VoteTally& tally,
                   Decision& decision)
      : request_(request), rules_(rules), votes_(votes), tally_(tally), decision_(decision) {}

  /// The picks of all policies for one candidate, put together. The error says why what comes out is not valid.
  Status place(const RankedCandidate& ranked);
  /// Returns the votes of policies of which something was dropped there.
  const std::vector<const Vote*>& overridden() const { return overridden_; }
  /// Returns why CPUs are withheld, each "; POLICY: REASON".
  const std::string& withholding_reasons() const { return withholding_reasons_; }
  /// Applies the policies' settings besides the CPUs. Returns their reasons, each "; POLICY: REASON".
  std::string adjust(const RankedCandidate& ranked);

 private:
  struct CombinedPicks {
    CpuSet of_any_kind;              ///< what narrowing has left of the CPUs offered
    CpuSet usable;                   ///< of these, CPUs of one kind if they suffice
    std::vector<CpuMinimum> shares;  ///< in the order in which they count
    const Vote* ordering_vote = nullptr;
    std::vector<std::uint32_t> order;  ///< of all of `usable`; for exclusive containers
  };
  /// `considered`: whose narrowing and shares count; everybody's if there is none.
  using Considered = std::optional<std::vector<const Vote*>>;
  static bool is_considered(const Considered& considered, const Vote& vote);
  Status choose(const RankedCandidate& ranked, const Considered& considered);
  /// The votes whose picks still count after some rejected the result of all; none if those are all votes.
  Considered rejecting_or_required();
  Status rejection() const;
  /// One policy's pick for a candidate, by way of `ask`; nothing if its vote is lost.
  template <class Ask>
  std::optional<Pick> ask(const Vote& vote, const CpuSet& offered, Ask ask);
  /// None if its vote is lost.
  std::vector<std::uint32_t> ask_for_order(const Vote& vote, const RankedCandidate& ranked, const CpuSet& usable,
                                           std::size_t count);
  CombinedPicks ask_for_picks(const RankedCandidate& ranked, const Considered& considered);
  void review_choice(const RankedCandidate& ranked, const CpuSet& offered);
  CpuSet take(const RankedCandidate& ranked, const CombinedPicks& picked);
  CpuSet take_of(CpuSet usable, const RankedCandidate& ranked, const CombinedPicks& picked);
  void narrow(CpuSet& usable, const CpuSet& to, const Vote& vote);
  bool withhold(const CpuSet& cpus, const Vote& vote);
  void bind_memory(const NodeSet& nodes, const NodeSet& open, const std::string& policy);
  void set_file(const std::pair<std::string, std::string>& file, const std::string& policy);
  void set_rdt_class(const std::string& rdt_class, const std::string& policy);
  /// Of a scheduler class or an I/O priority: the first counts.
  template <class Setting>
  void set_first(std::optional<Setting>& chosen, const std::optional<Setting>& wanted, std::string_view noun,
                 const std::string& policy);
  using WantedMemoryPolicy = std::pair<std::string, MemoryPolicy>;
  void set_memory_policy(const std::vector<WantedMemoryPolicy>& wanted, const NodeSet& open);
  template <class Theirs>
  void add(std::vector<std::pair<std::string, std::string>>& added, const std::pair<std::string, std::string>& field,
           const Theirs& theirs, const std::string& policy, std::string_view noun);
  void reject(const Vote& vote, const std::string& why);
  void drop(const std::string& policy, const std::string& what);
  void drop_pick(const Vote& vote, const std::string& what);
  void add_replacement(const Vote& vote, const Replacement& other);

  const PolicyRequest& request_;
  const PlacementRules& rules_;
  const Votes& votes_;
  VoteTally& tally_;
  Decision& decision_;
  std::string withholding_reasons_;
  std::set<std::string> unmet_requirements_;  ///< what required policies picked for this candidate and do not get
  std::vector<const Vote*> overridden_;
  std::vector<const Vote*> choosing_votes_;                      ///< who narrowed it or has a share in it
  std::vector<std::pair<const Vote*, std::string>> rejections_;  ///< of the CPUs that were chosen, and why
};

}  // namespace topolet::placement
