#include "cluster/agent/node.hpp"

#include <fmt/format.h>

#include <algorithm>
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

constexpr const char* kNotConnected = "not connected to topoletd";
constexpr const char* kNotKnown = "topoletd does not know yet what runs";

/// One that the agent makes itself.
watch::v1::Event event_of(const char* word, std::string reason) {
  watch::v1::Event event;
  event.set_event(word);
  event.set_reason(std::move(reason));
  return event;
}

std::string duration_of(Node::WallTime time) {
  return time < std::chrono::seconds(10) ? fmt::format("{:.1f} s", static_cast<double>(time.count()) / 1000)
                                         : fmt::format("{} s", time.count() / 1000);
}

/// How a connection begins after another one. `away`: how long there was none.
watch::v1::Event beginning_of(const watch::v1::Snapshot& before, const watch::v1::Snapshot& now, Node::WallTime away) {
  const std::string after = away.count() > 0 ? " after " + duration_of(away) : "";
  if (before.instance() == now.instance()) {
    return event_of("reconnected", fmt::format("topoletd {} is connected again{}; what happened meanwhile is told by "
                                               "`topolet audit`",
                                               now.version(), after));
  }
  const std::string version = before.version() == now.version()
                                  ? now.version()
                                  : fmt::format("{} in place of {}", now.version(), before.version());
  const std::string lost =
      now.generation() < before.generation() ? "; it has lost its state database, and counts generations anew" : "";
  return event_of("restarted", fmt::format("another topoletd serves{}: version {}{}", after, version, lost));
}

Node::WallTime begin_of(const Illness& illness, const std::vector<Illness>& before, Node::WallTime now) {
  const auto same = std::find_if(before.begin(), before.end(), [&illness](const Illness& other) {
    return other.code == illness.code && other.subject == illness.subject;
  });
  return same == before.end() ? now : same->since;
}

nlohmann::json json_of(const Illness& illness) {
  return {{"code", illness.code},         {"severity", to_string(illness.severity)}, {"subject", illness.subject},
          {"sentence", illness.sentence}, {"since_ms", illness.since.count()},       {"count", illness.count}};
}

}  // namespace

void Node::begin(const watch::v1::Snapshot& snapshot, WallTime now) {
  MutexLock lock(mutex_);
  replace_state(snapshot, now);
  known_ = connected_ = true;
  whole_ = nullptr;
  told_since_.clear();
  tell(update_of("connection", connection_text(true)));
  tell(agent_update());
  if (!followers_.empty()) {
    whole_ = whole_update();
    tell(whole_);
  }
  if (listener_) listener_(nullptr);
}

/// Starts from a new snapshot. The events so far stay in this node's history, even if another topoletd sent them.
void Node::replace_state(const watch::v1::Snapshot& snapshot, WallTime now) {
  const watch::NodeState before = state_;
  state_.begin(snapshot);
  if (!known_) return history_.begin(state_, now);
  History::Change change{.time = now, .delta = before.difference_to(snapshot), .connected = true, .teller = snapshot};
  change.teller->clear_containers();
  change.teller->clear_machine();
  change.delta.set_time_ms(now.count());
  *change.delta.add_events() = beginning_of(before.head(), snapshot, connected_ ? WallTime(0) : now - lost_at_);
  note(std::move(change));
}

void Node::note(History::Change change) {
  change.number = history_.next_number();
  if (whole_ || !followers_.empty()) tell(update_of("delta", text_of(to_json(change))));
  history_.add(std::move(change));
}

void Node::apply(const watch::v1::Delta& delta, WallTime now) {
  MutexLock lock(mutex_);
  state_.apply(delta);
  note({.time = now, .delta = delta});
  if (delta.has_illnesses() || delta.has_reconciled()) tell_illnesses();
  if (listener_) listener_(&delta);
}

void Node::set_connected(bool connected, WallTime now) {
  MutexLock lock(mutex_);
  if (std::exchange(connected_, connected) == connected) return;
  if (!connected) {
    lost_at_ = now;
    History::Change change{.time = now, .connected = false};
    change.delta.set_generation(state_.head().generation());
    change.delta.set_time_ms(now.count());
    *change.delta.add_events() =
        event_of("disconnected", "no connection to topoletd; until it is back, this is what was known last");
    note(std::move(change));
  }
  tell(update_of("connection", connection_text(connected)));
  if (load_) {
    load_ = update_of("load", text_of(to_json(watch::v1::Load())));
    tell_load();
  }
  tell_illnesses();
  if (listener_) listener_(nullptr);
}

void Node::set_load(const watch::v1::Load& load) {
  MutexLock lock(mutex_);
  load_ = update_of("load", text_of(to_json(load)));
  tell_load();
}

void Node::tell_load() {
  for (const auto& [number, follower] : followers_) follower(load_);
}

void Node::set_own_illnesses(std::vector<Illness> illnesses, WallTime now) {
  MutexLock lock(mutex_);
  for (Illness& illness : illnesses) illness.since = begin_of(illness, own_illnesses_, now);
  if (illnesses == own_illnesses_) return;
  own_illnesses_ = std::move(illnesses);
  tell_illnesses();
}

void Node::tell_illnesses() {
  if (whole_ || !followers_.empty()) tell(agent_update());
}

std::vector<Illness> Node::illnesses() const {
  MutexLock lock(mutex_);
  return find_illnesses();
}

std::vector<Illness> Node::find_illnesses() const {
  std::vector<Illness> found;
  if (!connected_) {
    found.push_back({illness::kTopoletdUnreachable, Severity::kCritical, "topoletd", kNotConnected,
                     known_ ? lost_at_ : WallTime(0)});
  } else {
    for (const watch::v1::Illness& told : state_.head().illnesses().illnesses()) {
      found.push_back({told.code(), severity_from(told.severity()), told.subject(), told.sentence(),
                       WallTime(told.since_ms()), std::max(told.count(), 1U)});
    }
    if (!state_.head().has_illnesses() && !state_.head().reconciled())
      found.push_back({illness::kNotReconciled, Severity::kCritical, "topoletd", kNotKnown});
  }
  found.insert(found.end(), own_illnesses_.begin(), own_illnesses_.end());
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.severity > b.severity; });
  return found;
}

std::string Node::not_ready() const {
  MutexLock lock(mutex_);
  if (!connected_) return kNotConnected;
  if (!state_.head().reconciled()) return kNotKnown;
  for (const Illness& illness : find_illnesses()) {
    if (illness.severity == Severity::kCritical || illness.code == illness::kMayNotPublish)
      return fmt::format("{}: {}", illness.subject, illness.sentence);
  }
  return {};
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
  return text_of(history_.to_json(now));
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

std::shared_ptr<const Node::Update> Node::agent_update() const {
  nlohmann::json illnesses = nlohmann::json::array();
  for (const Illness& illness : find_illnesses()) illnesses.push_back(json_of(illness));
  return update_of("agent",
                   text_of({{"version", options_.version}, {"node", options_.name}, {"illnesses", illnesses}}));
}

/// Makes a full state. It includes the connection and the agent's own problems, since updates about them may have been
/// left out.
std::shared_ptr<const Node::Update> Node::whole_update() const {
  const auto connection = update_of("connection", connection_text(connected_));
  const auto agent = agent_update();
  Update update = known_ ? *update_of("state", text_of(to_json(state_.whole()))) : *connection;
  if (known_) update.text = std::make_shared<const std::string>(*connection->text + *agent->text + *update.text);
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
  follower(agent_update());
  follower(whole_);
  for (const auto& update : told_since_) follower(update);
  if (load_) follower(load_);
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
