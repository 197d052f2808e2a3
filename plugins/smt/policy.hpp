// Decides who runs on the sibling threads of a container's cores: nobody, or whom it goes well with.
#pragma once

#include <topolet/policy.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "plugins/smt/cores.hpp"
#include "plugins/smt/wish.hpp"

namespace topolet::smt {

using sdk::Verdict;

struct Picked {
  sdk::Set narrow;  ///< empty: all will do
  sdk::Set withhold;
  std::string reason;
  std::string unmet;  ///< what there is no way to do
};

/// Immutable, so safe from any thread.
class Policy {
 public:
  explicit Policy(const PolicyOptions& options) : options_(options) {}

  /// One verdict per candidate, or none at all. A place where a container can be isolated gets 100, one where it can't
  /// 0; for heavy and light ones see score_of(). Where all candidates are alike it has no opinion. Rejects what breaks
  /// numa.full-pcpus-only as long as there is another place, or the request does not fill its cores.
  std::vector<Verdict> score(const topolet_request& request) const;

  /// First the CPUs to use; once they are chosen, the siblings that nobody runs on.
  Picked pick(const topolet_pick_request& picking) const;

  void score(const topolet_request& request, sdk::Scores& scores) const;
  void pick(const topolet_pick_request& request, sdk::Picks& picks) const;

 private:
  PolicyOptions options_;
};

}  // namespace topolet::smt
