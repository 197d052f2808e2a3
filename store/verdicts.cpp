#include "store/verdicts.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace topolet {
namespace {

using Json = nlohmann::ordered_json;

Json encode(const VerdictRow& row) {
  Json words = Json::array();
  for (const VerdictRow::Word& word : row.words) {
    words.push_back(Json::array({word.policy, word.kind, word.score, word.reason}));
  }
  Json object{{"nodes", row.nodes}, {"score", row.score}};
  if (row.rejected) object["rejected"] = true;
  object["words"] = std::move(words);
  return object;
}

}  // namespace

std::string encode_verdicts(const VerdictsRow& verdicts) {
  Json best = Json::array();
  for (std::size_t i = 0; i < std::min(verdicts.best.size(), kKeptCandidates); ++i) {
    best.push_back(encode(verdicts.best[i]));
  }
  Json object{{"candidates", verdicts.candidates}, {"best", std::move(best)}};
  if (!verdicts.rejected.empty()) object["rejected"] = verdicts.rejected;
  if (!verdicts.lost_votes.empty()) object["lost_votes"] = verdicts.lost_votes;
  if (!verdicts.dropped.empty()) object["dropped"] = verdicts.dropped;
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace topolet
