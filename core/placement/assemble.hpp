// From a candidate to a placement: what the policies pick and adjust, put together.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/placement/rank.hpp"

namespace topolet {

/// Works on the decision's placement, `within` and what was dropped. Borrows what it is made of.
class Assembly {
 public:
  Assembly(const PolicyRequest& request, const DecideRules& rules, const std::vector<Voter>& voters, Votes& votes,
           Decision& decision)
      : request_(request), rules_(rules), voters_(voters), votes_(votes), decision_(decision) {}

  /// The picks of all policies for one candidate, put together. The error says why what comes out is not valid.
  Status place(const Ranked& ranked);
  /// Those of whom something was dropped there.
  const std::vector<const Voter*>& thwarted() const { return thwarted_; }
  /// Why CPUs are withheld, each "; POLICY: REASON".
  const std::string& withholding_reasons() const { return withholding_reasons_; }
  /// What the policies set besides the CPUs. Returns their reasons, each "; POLICY: REASON".
  std::string adjust(const Ranked& ranked);

 private:
  struct Picked {
    CpuSet left;                ///< of what was offered
    CpuSet usable;              ///< of that the CPUs that are alike
    std::vector<Share> shares;  ///< in the order in which they count
    const Voter* orderer = nullptr;
    std::vector<std::uint32_t> order;  ///< of all of `usable`
  };
  /// `heard`: whose narrowing and shares count; everybody's if there is none.
  using Heard = std::optional<std::vector<const Voter*>>;
  static bool is_heard(const Heard& heard, const Voter& voter);
  Status choose(const Ranked& ranked, const Heard& heard);
  /// Those whose picks count if some reject what all of them make; none if they are all there are.
  Heard without_the_others();
  Status rejection() const;
  /// What a voter says of one candidate, in one of two ways of asking; nothing if its vote is lost.
  template <class Ask>
  std::optional<Pick> ask(const Voter& voter, const CpuSet& offered, Ask ask);
  std::optional<Pick> ask_for_pick(const Voter& voter, const Ranked& ranked, const CpuSet& usable, std::size_t count);
  Picked ask_for_picks(const Ranked& ranked, const Heard& heard);
  void ask_what_to_withhold(const Ranked& ranked, const CpuSet& offered);
  CpuSet take(const Ranked& ranked, const Picked& picked);
  CpuSet take_of(CpuSet usable, const Ranked& ranked, const Picked& picked);
  void narrow(CpuSet& usable, const CpuSet& to, const Voter& voter);
  bool withhold(const CpuSet& cpus, const Voter& voter);
  void bind_memory(const NodeSet& nodes, const NodeSet& open, const std::string& policy);
  template <class Theirs>
  void add(std::vector<std::pair<std::string, std::string>>& added, const std::pair<std::string, std::string>& field,
           const Theirs& theirs, const std::string& policy, std::string_view noun);
  void drop(const std::string& policy, const std::string& what);
  void drop_pick(const Voter& voter, const std::string& what);

  const PolicyRequest& request_;
  const DecideRules& rules_;
  const std::vector<Voter>& voters_;
  Votes& votes_;
  Decision& decision_;
  std::string withholding_reasons_;
  std::set<std::string> insisted_;  ///< what required policies picked for this candidate and do not get
  std::vector<const Voter*> thwarted_;
  std::vector<const Voter*> choosers_;                            ///< who narrowed it or has a share in it
  std::vector<std::pair<const Voter*, std::string>> rejections_;  ///< of the CPUs that were chosen, and why
};

}  // namespace topolet
