// Writes to the store that survive a store that cannot write for a while.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <utility>

#include "core/base/clock.hpp"
#include "core/base/log.hpp"
#include "core/base/result.hpp"
#include "store/store.hpp"

namespace topolet {

/// Every write is one transaction. While the store fails, writes are kept in memory in their order and decisions go
/// on; the first commit afterwards records how long the gap was and then what was kept. One thread.
class Journal {
 public:
  using Write = std::function<Status(Store&)>;

  Journal(Store& store, Clock clock, Log& log) : store_(store), clock_(std::move(clock)), log_(log) {}

  /// Writes now, or keeps the write for later. `write` may run more than once; only its last run counts.
  void write(Write write);
  /// Tries to write what was kept. Called by a timer.
  void catch_up();

  bool degraded() const { return !backlog_.empty(); }

 private:
  Status attempt(const Write& write);
  bool dropped(const Error& error);
  DecidedRow gap_row() const;

  Store& store_;
  Clock clock_;
  Log& log_;
  std::deque<Write> backlog_;
  std::chrono::milliseconds failing_since_{};
  bool gap_recorded_ = false;
};

}  // namespace topolet
