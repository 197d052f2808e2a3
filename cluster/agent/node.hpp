// The node as the agent knows it now, what is ill on it, the last hour of it, and who follows it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cluster/agent/history.hpp"
#include "cluster/http/http_server.hpp"
#include "core/base/illness.hpp"
#include "core/base/mutex.hpp"
#include "core/watch/node_state.hpp"

namespace topolet::agent {

/// Any thread may call any function. Followers are called with the lock held: they must only pass the update on.
class Node {
 public:
  using WallTime = std::chrono::milliseconds;  ///< since 1970
  struct Options {
    std::chrono::milliseconds history{std::chrono::hours(1)};
    std::size_t max_history_bytes = 8 << 20;  ///< of serialized deltas: the oldest are dropped before their time
    std::string version = {};                 ///< the agent's, for the page
    std::string name = {};                    ///< the Node's, for the page; empty: nobody knows it
  };
  /// One event of the stream for browsers: its name and its data.
  struct Update {
    std::string event;
    std::string data;
    http::EventText text;      ///< as browsers are sent it
    bool begins_anew = false;  ///< it makes all that came before void
  };
  using Follower = std::function<void(const std::shared_ptr<const Update>&)>;
  /// Called with each delta, and with null when all that was known is replaced or the connection has begun or ended.
  using Listener = std::function<void(const watch::v1::Delta* delta)>;

  Node() : Node(Options{}) {}
  explicit Node(Options options)
      : options_(std::move(options)), history_({.length = options_.history, .max_bytes = options_.max_history_bytes}) {}

  // Updates from the watch socket.
  void begin(const watch::v1::Snapshot& snapshot, WallTime now) TOPOLET_EXCLUDES(mutex_);
  void apply(const watch::v1::Delta& delta, WallTime now) TOPOLET_EXCLUDES(mutex_);
  void set_connected(bool connected, WallTime now) TOPOLET_EXCLUDES(mutex_);
  /// Passes it on to those who follow, as "load"; it is no part of the history. Without a connection nothing is known.
  void set_load(const watch::v1::Load& load) TOPOLET_EXCLUDES(mutex_);
  /// Replaces the problems that only the agent knows. One that is still there keeps the time at which it began.
  void set_own_illnesses(std::vector<Illness> illnesses, WallTime now) TOPOLET_EXCLUDES(mutex_);

  /// All that is ill: what topoletd tells, while it is there, and what only the agent knows. The worst first.
  std::vector<Illness> illnesses() const TOPOLET_EXCLUDES(mutex_);
  /// Why no pod can start here, or why the agent may not tell the cluster of this node; empty if neither is so.
  std::string not_ready() const TOPOLET_EXCLUDES(mutex_);

  struct Summary {
    bool connected = false;
    bool reconciled = false;
    bool known = false;  ///< it was connected at some time
    std::uint64_t generation = 0;
    std::size_t containers = 0;
    std::string version;
  };
  Summary summary() const TOPOLET_EXCLUDES(mutex_);
  /// Returns the state with all containers; nothing while there is no connection, or topoletd does not know yet what
  /// runs.
  std::optional<watch::v1::Snapshot> reconciled_state() const TOPOLET_EXCLUDES(mutex_);
  /// Returns History::to_json(): the last hour, whichever topoletd sent it.
  std::string history(WallTime now) TOPOLET_EXCLUDES(mutex_);

  /// Tells the follower how things are, and then each change, until unfollow().
  std::uint64_t follow(Follower follower) TOPOLET_EXCLUDES(mutex_);
  void unfollow(std::uint64_t number) TOPOLET_EXCLUDES(mutex_);
  /// Tells a follower that has missed something how things are.
  void renew(std::uint64_t number) TOPOLET_EXCLUDES(mutex_);
  std::size_t followers() const TOPOLET_EXCLUDES(mutex_);
  /// At most one; an empty one hears nothing.
  void set_listener(Listener listener) TOPOLET_EXCLUDES(mutex_);

 private:
  void tell(std::shared_ptr<const Update> update) TOPOLET_REQUIRES(mutex_);
  void tell_whole(const Follower& follower) TOPOLET_REQUIRES(mutex_);
  void tell_load() TOPOLET_REQUIRES(mutex_);
  std::shared_ptr<const Update> whole_update() const TOPOLET_REQUIRES(mutex_);
  std::shared_ptr<const Update> agent_update() const TOPOLET_REQUIRES(mutex_);
  std::vector<Illness> find_illnesses() const TOPOLET_REQUIRES(mutex_);
  void note(History::Change change) TOPOLET_REQUIRES(mutex_);
  void replace_state(const watch::v1::Snapshot& snapshot, WallTime now) TOPOLET_REQUIRES(mutex_);
  void tell_illnesses() TOPOLET_REQUIRES(mutex_);

  const Options options_;
  mutable Mutex mutex_;
  bool connected_ TOPOLET_GUARDED_BY(mutex_) = false;
  bool known_ TOPOLET_GUARDED_BY(mutex_) = false;
  watch::NodeState state_ TOPOLET_GUARDED_BY(mutex_);
  std::vector<Illness> own_illnesses_ TOPOLET_GUARDED_BY(mutex_);
  History history_ TOPOLET_GUARDED_BY(mutex_);
  WallTime lost_at_ TOPOLET_GUARDED_BY(mutex_){};  ///< the connection, the last time
  /// The full state, made once for all new followers, who get the updates since as well. Null: not made yet.
  std::shared_ptr<const Update> whole_ TOPOLET_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<const Update>> told_since_ TOPOLET_GUARDED_BY(mutex_);
  std::size_t told_since_bytes_ TOPOLET_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<const Update> load_ TOPOLET_GUARDED_BY(mutex_);  ///< the newest; null: none came yet
  std::map<std::uint64_t, Follower> followers_ TOPOLET_GUARDED_BY(mutex_);
  std::uint64_t last_follower_ TOPOLET_GUARDED_BY(mutex_) = 0;
  Listener listener_ TOPOLET_GUARDED_BY(mutex_);
};

}  // namespace topolet::agent
