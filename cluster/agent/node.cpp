#include "cluster/agent/node.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "cluster/agent/json.hpp"

namespace topolet::agent {
namespace {

/// A state is made anew after so much at least.
constexpr std::size_t kShortStateBytes = 64 << 10;

std::string connection_text(bool connected) { return connected ? R"({"connected":true})" : R"({"connected":false})"; }

std::shared_ptr<const Node::Update> update_of(std::string event, std::string data) {
  auto text = http::make_event(event, data);
  return std::make_shared<const Node::Update>(Node::Update{std::move(event), std::move(data), std::move(text)});
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
  whole_ = nullptr;
  told_since_.clear();
  tell(update_of("connection", connection_text(true)));
  if (!followers_.empty()) {
    whole_ = whole_update();
    tell(whole_);
  }
  if (listener_) listener_(nullptr);
}

void Node::apply(const watch::v1::Delta& delta, WallTime now) {
  MutexLock lock(mutex_);
  state_.apply(delta);
  past_.push_back({now, delta, delta.ByteSizeLong()});
  past_bytes_ += past_.back().bytes;
  forget_old(now);
  if (whole_ || !followers_.empty()) tell(update_of("delta", text_of(to_json(delta))));
  if (listener_) listener_(&delta);
}

void Node::set_connected(bool connected) {
  MutexLock lock(mutex_);
  if (std::exchange(connected_, connected) == connected) return;
  tell(update_of("connection", connection_text(connected)));
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
  tell_whole(follower);
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

void Node::renew(std::uint64_t number) {
  MutexLock lock(mutex_);
  if (const auto found = followers_.find(number); found != followers_.end()) tell_whole(found->second);
}

/// The text has the connection too: what was told of that may have been left out.
std::shared_ptr<const Node::Update> Node::whole_update() const {
  const auto connection = update_of("connection", connection_text(connected_));
  Update update = known_ ? *update_of("state", text_of(to_json(state_.whole()))) : *connection;
  if (known_) update.text = std::make_shared<const std::string>(*connection->text + *update.text);
  update.begins_anew = true;
  return std::make_shared<const Update>(std::move(update));
}

void Node::tell_whole(const Follower& follower) {
  if (!whole_) {
    whole_ = whole_update();
    told_since_.clear();
    told_since_bytes_ = 0;
  }
  if (known_) follower(update_of("connection", connection_text(connected_)));
  follower(whole_);
  for (const auto& update : told_since_) follower(update);
}

void Node::tell(std::shared_ptr<const Update> update) {
  if (update->begins_anew) {
    told_since_bytes_ = 0;
  } else if (whole_) {
    told_since_.push_back(update);
    told_since_bytes_ += update->text->size();
    // A state of now is shorter than what was and all that changed.
    if (told_since_bytes_ > whole_->text->size() + kShortStateBytes) {
      whole_ = nullptr;
      told_since_.clear();
    }
  }
  for (const auto& [number, follower] : followers_) follower(update);
}

}  // namespace topolet::agent
