// The policies' answers in one decision, as far as they are kept.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace topolet::placement {

/// One candidate and the policies' opinions of it.
struct CandidateOpinions {
  std::string nodes;       ///< node list, "0-1"
  std::int64_t score = 0;  ///< weighted sum
  bool rejected = false;
  /// One policy's: `kind` is "score", "reject" or "abstain".
  struct Opinion {
    std::string policy;
    std::string kind;
    std::int32_t score = 0;
    std::string reason;
    std::string code = {};  ///< as in Verdict; not kept by itself
  };
  std::vector<Opinion> opinions;
};

struct Verdicts {
  std::uint32_t candidates = 0;                   ///< how many there were
  std::vector<CandidateOpinions> best;            ///< the winner first, then the best of the others
  std::map<std::string, std::uint32_t> rejected;  ///< "policy: reason" → how many candidates
  std::vector<std::string> lost_votes;            ///< "policy: why"
  std::vector<std::string> dropped;               ///< narrowings and withholdings that were dropped, and why
  /// "ID/CODE" of what plugins said of the winner, and of what they rejected; in order, each once.
  std::vector<std::string> codes = {};

  /// None if it is empty.
  void add_code(const std::string& code) {
    const auto place = std::lower_bound(codes.begin(), codes.end(), code);
    if (!code.empty() && (place == codes.end() || *place != code)) codes.insert(place, code);
  }
};

}  // namespace topolet::placement
