#include "cluster/agent/node.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "cluster/agent/json.hpp"

namespace topolet::agent {
namespace {

std::string connection_text(bool connected) { return connected ? R"({"connected":true})" : R"({"connected":false})"; }

std::shared_ptr<const Node::Update> update_of(std::string event, std::string data) {
  return std::make_shared<const Node::Update>(Node::Update{std::move(event), std::move(data)});
}

}  // namespace

/// What another instance of topoletd told before is no past of this one.
void Node::begin(const watch::v1::Snapshot& snapshot, WallTime now) {
  MutexLock lock(mutex_);
  state_.begin(snapshot);
  base_ = state_;
  base_time_ = now;
  past_.clear();
  past_bytes_ = 0;
  known_ = connected_ = true;
  tell("connection", connection_text(true));
  tell("state", text_of(to_json(snapshot)));
  if (listener_) listener_(nullptr);
}

void Node::apply(const watch::v1::Delta& delta, WallTime now) {
  MutexLock lock(mutex_);
  state_.apply(delta);
  past_.push_back({now, delta, delta.ByteSizeLong()});
  past_bytes_ += past_.back().bytes;
  forget_old(now);
  if (!followers_.empty()) tell("delta", text_of(to_json(delta)));
  if (listener_) listener_(&delta);
}

void Node::set_connected(bool connected) {
  MutexLock lock(mutex_);
  if (std::exchange(connected_, connected) == connected) return;
  tell("connection", connection_text(connected));
  if (listener_) listener_(nullptr);
}

void Node::forget_old(WallTime now) {
  while (!past_.empty() && (past_bytes_ > options_.max_history_bytes || past_.front().time + options_.history < now)) {
    base_.apply(past_.front().delta);
    base_time_ = past_.front().time;
    past_bytes_ -= past_.front().bytes;
    past_.pop_front();
  }
}

Node::Summary Node::summary() const {
  MutexLock lock(mutex_);
  const watch::v1::Snapshot& head = state_.head();
  return {connected_, head.reconciled(), known_, head.generation(), state_.containers(), head.version()};
}

std::optional<watch::v1::Snapshot> Node::reconciled_state() const {
  MutexLock lock(mutex_);
  if (!connected_ || !state_.head().reconciled()) return std::nullopt;
  return state_.whole();
}

std::string Node::history(WallTime now) {
  MutexLock lock(mutex_);
  forget_old(now);
  nlohmann::json deltas = nlohmann::json::array();
  for (const Past& past : past_) deltas.push_back(to_json(past.delta));
  return text_of({{"base", to_json(base_.whole())}, {"base_time_ms", base_time_.count()}, {"deltas", deltas}});
}

std::uint64_t Node::follow(Follower follower) {
  MutexLock lock(mutex_);
  follower(update_of("connection", connection_text(connected_)));
  if (known_) follower(update_of("state", text_of(to_json(state_.whole()))));
  followers_[++last_follower_] = std::move(follower);
  return last_follower_;
}

void Node::unfollow(std::uint64_t number) {
  MutexLock lock(mutex_);
  followers_.erase(number);
}

std::size_t Node::followers() const {
  MutexLock lock(mutex_);
  return followers_.size();
}

void Node::set_listener(Listener listener) {
  MutexLock lock(mutex_);
  listener_ = std::move(listener);
}

void Node::tell(std::string event, std::string data) {
  if (followers_.empty()) return;
  const auto update = update_of(std::move(event), std::move(data));
  for (const auto& [number, follower] : followers_) follower(update);
}

}  // namespace topolet::agent
