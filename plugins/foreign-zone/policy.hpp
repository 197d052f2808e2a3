// Places containers where a scheduler of another project has reserved room for their pod.
#pragma once

#include <topolet/policy.hpp>

#include <array>
#include <string>
#include <vector>

namespace topolet::foreign_zone {

struct PolicyOptions {
  bool requires_zone = false;  ///< a container may be on no other nodes
};

struct CpuChoice {
  sdk::Set narrow = {};
  std::string reason = {};
  std::string unmet = {};  ///< why the CPUs cannot be used
};

/// Immutable, so any thread may call it.
class Policy {
 public:
  explicit Policy(const PolicyOptions& options) : options_(options) {}

  static constexpr std::array<topolet_str, 0> kAnnotations = {};  // of topolet's own

  /// 100 for candidates within the nodes that a scheduler has chosen, 0 for others, or a rejection. If no node was
  /// chosen, those of the chosen CPUs. None at all where no scheduler says anything, and abstentions with the reason
  /// where what it says cannot be read or, unless it is required, has no room.
  std::vector<sdk::Verdict> score(const topolet_request& request) const;
  /// The nodes, if they are more than one; else none.
  sdk::Set propose(const topolet_request& request) const;
  /// The CPUs that the scheduler has chosen, as far as they are free.
  CpuChoice pick(const topolet_pick_request& picking) const;

  /// The annotations of the schedulers.
  static topolet_reads reads();
  void score(const topolet_request& request, sdk::Scores& scores) const { scores.give(score(request)); }
  void propose(const topolet_request& request, sdk::Proposals& proposals) const;
  void pick(const topolet_pick_request& request, sdk::Picks& picks) const;

 private:
  PolicyOptions options_;
};

}  // namespace topolet::foreign_zone
