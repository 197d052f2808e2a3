#include "cluster/agent/history.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "cluster/agent/json.hpp"

namespace topolet::agent {

void History::begin(const watch::NodeState& state, WallTime now) {
  base_ = state;
  base_connected_ = true;
  base_time_ = now;
  changes_.clear();
  bytes_ = 0;
}

void History::add(Change change) {
  newest_ = change.number;
  const WallTime now = change.time;
  const std::size_t bytes = change.delta.ByteSizeLong();
  changes_.push_back({std::move(change), bytes});
  bytes_ += bytes;
  forget_old(now);
}

void History::forget_old(WallTime now) {
  while (!changes_.empty() && (bytes_ > options_.max_bytes || changes_.front().change.time + options_.length < now)) {
    const Change& oldest = changes_.front().change;
    base_.apply(oldest.delta);
    if (oldest.teller) base_.set_teller(*oldest.teller);
    base_connected_ = oldest.connected.value_or(base_connected_);
    base_time_ = oldest.time;
    bytes_ -= changes_.front().bytes;
    changes_.pop_front();
  }
}

nlohmann::json History::to_json(WallTime now) {
  forget_old(now);
  nlohmann::json deltas = nlohmann::json::array();
  for (const Kept& kept : changes_) deltas.push_back(agent::to_json(kept.change));
  return {{"base", agent::to_json(base_.whole())},
          {"base_time_ms", base_time_.count()},
          {"connected", base_connected_},
          {"number", newest_},
          {"deltas", std::move(deltas)}};
}

nlohmann::json to_json(const History::Change& change) {
  nlohmann::json json = to_json(change.delta);
  json["number"] = change.number;
  if (change.connected) json["connected"] = *change.connected;
  if (change.teller) {
    json["instance"] = change.teller->instance();
    json["version"] = change.teller->version();
    json["host"] = change.teller->host();
  }
  return json;
}

}  // namespace topolet::agent
