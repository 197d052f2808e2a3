#include "core/engine/state/verdicts_json.hpp"

#include <cstdint>
#include <exception>
#include <nlohmann/json.hpp>
#include <utility>

namespace topolet::engine {
namespace {

using OrderedJson = nlohmann::ordered_json;
using placement::CandidateOpinions;

OrderedJson json_of(const CandidateOpinions& candidate) {
  OrderedJson opinions = OrderedJson::array();
  for (const CandidateOpinions::Opinion& opinion : candidate.opinions) {
    opinions.push_back(OrderedJson::array({opinion.policy, opinion.kind, opinion.score, opinion.reason}));
  }
  OrderedJson object{{"nodes", candidate.nodes}, {"score", candidate.score}};
  if (candidate.rejected) object["rejected"] = true;
  object["words"] = std::move(opinions);
  return object;
}

CandidateOpinions candidate_of(const OrderedJson& json) {
  CandidateOpinions candidate;
  json.at("nodes").get_to(candidate.nodes);
  json.at("score").get_to(candidate.score);
  candidate.rejected = json.value("rejected", false);
  for (const OrderedJson& opinion : json.at("words")) {
    candidate.opinions.push_back({opinion.at(0).get<std::string>(), opinion.at(1).get<std::string>(),
                                  opinion.at(2).get<std::int32_t>(), opinion.at(3).get<std::string>()});
  }
  return candidate;
}

/// Fields that were empty were not written.
template <class Field>
void read_if_present(const OrderedJson& json, const char* name, Field& field) {
  if (const auto found = json.find(name); found != json.end()) found->get_to(field);
}

}  // namespace

std::string encode_verdicts(const placement::Verdicts& verdicts) {
  OrderedJson best = OrderedJson::array();
  for (const CandidateOpinions& candidate : verdicts.best) best.push_back(json_of(candidate));
  OrderedJson object{{"candidates", verdicts.candidates}, {"best", std::move(best)}};
  if (!verdicts.rejected.empty()) object["rejected"] = verdicts.rejected;
  if (!verdicts.lost_votes.empty()) object["lost_votes"] = verdicts.lost_votes;
  if (!verdicts.dropped.empty()) object["dropped"] = verdicts.dropped;
  if (!verdicts.codes.empty()) object["codes"] = verdicts.codes;
  return object.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

Result<placement::Verdicts> decode_verdicts(const std::string& text) {
  try {
    const OrderedJson json = OrderedJson::parse(text);
    placement::Verdicts verdicts;
    json.at("candidates").get_to(verdicts.candidates);
    for (const OrderedJson& candidate : json.at("best")) verdicts.best.push_back(candidate_of(candidate));
    read_if_present(json, "rejected", verdicts.rejected);
    read_if_present(json, "lost_votes", verdicts.lost_votes);
    read_if_present(json, "dropped", verdicts.dropped);
    read_if_present(json, "codes", verdicts.codes);
    return verdicts;
  } catch (const std::exception& error) {
    return Error{Code::kDataLoss, std::string("verdicts: ") + error.what()};
  }
}

}  // namespace topolet::engine
