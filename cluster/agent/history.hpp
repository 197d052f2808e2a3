// The last hour of a node: how it was before, and each change since, across restarts of topoletd.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "core/watch/node_state.hpp"

namespace topolet::agent {

/// A plain value.
class History {
 public:
  using WallTime = std::chrono::milliseconds;  ///< since 1970
  struct Options {
    std::chrono::milliseconds length{std::chrono::hours(1)};
    std::size_t max_bytes = 8 << 20;  ///< of serialized changes: the oldest are dropped before their time
  };
  struct Change {
    WallTime time{};  ///< when it was heard of
    watch::v1::Delta delta = {};
    std::optional<bool> connected = {};              ///< where the connection to topoletd began or ended
    std::optional<watch::v1::Snapshot> teller = {};  ///< where another topoletd tells from then on: who it is
    std::uint64_t number = 0;                        ///< one more than that of the one before
  };

  explicit History(Options options) : options_(options) {}

  /// Starts a history without a past.
  void begin(const watch::NodeState& state, WallTime now);
  /// The number of the next change.
  std::uint64_t next_number() const { return newest_ + 1; }
  void add(Change change);
  /// {"base": the state at the beginning, "base_time_ms": …, "connected": then, "number": of the newest change,
  /// "deltas": [all since]}
  nlohmann::json to_json(WallTime now);

 private:
  struct Kept {
    Change change;
    std::size_t bytes;
  };

  void forget_old(WallTime now);

  const Options options_;
  watch::NodeState base_;  ///< before the oldest of `changes_`
  bool base_connected_ = true;
  WallTime base_time_{};
  std::deque<Kept> changes_;
  std::size_t bytes_ = 0;
  std::uint64_t newest_ = 0;
};

/// For the page: a delta that says more, and has a number.
nlohmann::json to_json(const History::Change& change);

}  // namespace topolet::agent
