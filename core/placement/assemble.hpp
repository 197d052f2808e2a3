// From a candidate to a placement: what the policies pick and adjust, put together.
#pragma once

#include <optional>
#include <string>
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
  /// What the policies set besides the CPUs. Returns their reasons, each "; POLICY: REASON".
  std::string adjust(const Ranked& ranked);

 private:
  struct Picked {
    CpuSet usable;  ///< what is left of what was offered
    CpuSet withheld;
    std::vector<std::uint32_t> order;
  };
  Picked ask_for_picks(const Ranked& ranked, const CpuSet& offered);
  CpuSet take(const CpuSet& offered, const Picked& picked) const;
  void narrow(CpuSet& usable, const CpuSet& to, const std::string& policy);
  void withhold(CpuSet withheld);
  void bind_memory(const NodeSet& nodes, const NodeSet& open, const std::string& policy);
  template <class Theirs>
  void add(std::vector<std::pair<std::string, std::string>>& added, const std::pair<std::string, std::string>& field,
           const Theirs& theirs, const std::string& policy, std::string_view noun);
  void drop(const std::string& policy, const std::string& what);

  const PolicyRequest& request_;
  const DecideRules& rules_;
  const std::vector<Voter>& voters_;
  Votes& votes_;
  Decision& decision_;
};

}  // namespace topolet
