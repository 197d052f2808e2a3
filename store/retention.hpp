// How long the history is kept: what is deleted of it, a slice at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.hpp"
#include "store/database.hpp"
#include "store/store.hpp"

namespace topolet::store {

/// Deletes up to `decisions` of the decisions that had ended before `mark_ms`, with all that belongs to them; or else,
/// where there are none, as many of the pool versions, and the machines and setups, that only such decisions need. What
/// was held at the mark, and since, can be told as before. Returns how many decisions and pool versions it deleted: 0
/// once there is nothing more. To be run in a transaction.
Result<std::int64_t> prune_slice(Database& database, std::int64_t mark_ms, std::int64_t decisions);

/// What prune_slice() would delete by and by, and what would be left.
struct PruneForecast {
  std::int64_t decisions = 0;
  std::int64_t decisions_left = 0;
};
Result<PruneForecast> forecast_prune(const Database& database, std::int64_t mark_ms);

/// The moment before which the history may have gaps; 0: nothing was ever deleted.
Result<std::int64_t> pruned_until(const Database& database);

/// What the file has in use, and the log beside it.
struct DatabaseSize {
  std::int64_t used_bytes = 0;
  std::int64_t free_bytes = 0;  ///< pages of the file that nothing is on
  std::int64_t log_bytes = 0;
};
Result<DatabaseSize> size_of(const Database& database);

/// The same as far as it can be true: a mark that a clock ahead has left in the future is taken for a minute ago.
Result<std::int64_t> believable_pruned_until(const Database& database, std::int64_t now_ms);

/// What is to be done next. Nothing of it is done yet.
struct RetentionStep {
  std::int64_t mark_ms = 0;               ///< for prune_slice(); 0: nothing is to be deleted now
  bool lowers_mark = false;               ///< the database's own mark is in the future: lower_mark() comes first
  bool remembers_keep = false;            ///< remember_keep()
  std::vector<std::string> notices = {};  ///< for people, once each
};

/// Decides what is to be deleted. A wall clock may be wrong for a while, and what was deleted because of it is gone:
///
/// - The mark by age moves no further in a run than the monotonic clock has. One that begins while the clock is behind
///   deletes nothing by age until the next run, or as much as time passes.
/// - Before more than a tenth of the decisions, or more than two days of them, go at once because of their age, that is
///   said, and they stay for another day, by the monotonic clock. If the clock was set right meanwhile, they stay.
/// - Where daemon.keep is shorter than in the run before, what goes because of that goes at once, and that is said.
///
/// What is deleted because of the size knows no clock.
class Retention {
 public:
  explicit Retention(RetentionLimits limits) : limits_(limits) {}

  /// Only reads.
  Result<RetentionStep> next_step(const Database& database, const Moment& now);
  /// What the slice with the step's mark returned.
  void on_pruned(std::int64_t deleted);

  /// In a transaction each.
  static Status lower_mark(Database& database, std::int64_t now_ms);
  Status remember_keep(Database& database);

 private:
  Status begin(const Database& database, const Moment& now);
  std::int64_t mark_by_age(const Moment& now) const;
  Result<bool> may_delete_by_age(const Database& database, const Moment& now, std::int64_t mark_ms,
                                 RetentionStep& step);
  Result<bool> was_shortened(const Database& database, std::int64_t mark_ms) const;
  Result<std::int64_t> find_mark(const Database& database, const Moment& now, RetentionStep& step);
  Result<bool> is_too_large(const Database& database);

  const RetentionLimits limits_;
  std::optional<Moment> began_;  ///< the first look of this run
  std::optional<std::int64_t> former_keep_ms_;
  std::optional<std::chrono::steady_clock::time_point> waits_since_;  ///< much would go because of its age
  std::int64_t mark_ms_ = 0;                                          ///< what is being deleted; 0: nothing
  bool is_too_large_ = false;                                         ///< until it is well below the limit
};

/// Gives some of the free pages back to the file system, if the file was made to shrink and has many. True if there is
/// more to give back. Outside of a transaction.
Result<bool> shrink_slice(Database& database);

}  // namespace topolet::store
