// Retention: which part of the history is deleted, a slice at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
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

/// The decisions that prune_slice() would delete by and by, and those that would be left.
struct PruneForecast {
  std::int64_t decisions = 0;
  std::int64_t decisions_left = 0;
};
Result<PruneForecast> forecast_prune(const Database& database, std::int64_t mark_ms);

/// The moment before which the history may have gaps; 0: nothing was ever deleted.
Result<std::int64_t> pruned_until(const Database& database);

/// The size of the file, and of the log beside it.
struct DatabaseSize {
  std::int64_t used_bytes = 0;
  std::int64_t free_bytes = 0;  ///< pages of the file that nothing is on
  std::int64_t log_bytes = 0;
};
Result<DatabaseSize> size_of(const Database& database);

/// The same as far as it can be true: a mark that a clock ahead has left in the future is taken for a minute ago.
Result<std::int64_t> believable_pruned_until(const Database& database, std::int64_t now_ms);

/// The next thing to do. Nothing of it is done yet.
struct RetentionStep {
  std::int64_t mark_ms = 0;                                      ///< for prune_slice(); 0: nothing is to be deleted now
  std::map<std::string, std::optional<std::int64_t>> rows = {};  ///< of the table, to be written first; none: removed
  bool looks_again = false;                                      ///< once these are written
  std::vector<std::string> notices = {};                         ///< for people, once each
};

/// Decides what is to be deleted. A wall clock may be wrong for a while, and what was deleted because of it is gone:
///
/// - The mark by age moves no further in a run than the monotonic clock has. Where the wall clock was set forward, and
/// has
///   stayed so for a day, it is followed.
/// - Before more than a tenth of the decisions, or more than two days of them, go at once because of their age, that is
///   said, and they stay for another day of running. The day goes on in the next run, and then only what was that old
///   when it began goes, and what has come to be since. If the clock was set right meanwhile, all of them stay. The
///   same goes for whatever would go on the first day of a run that seems to begin days after the newest decision.
/// - Where daemon.keep is shorter than in the run before, what goes because of that goes at once, and that is said;
///   unless the clock may be wrong.
/// - The database's own mark of what was deleted is lowered where it is in the future, because a clock was ahead. If it
///   was right, and the clock is behind, it is raised again when the clock comes back.
///
/// Deletion because of the size does not depend on a clock.
class Retention {
 public:
  explicit Retention(RetentionLimits limits) : limits_(limits) {}

  /// Only reads.
  Result<RetentionStep> next_step(const Database& database, const Moment& now);
  /// The step's rows, in a transaction.
  static Status write_rows(Database& database, const RetentionStep& step);
  /// Takes what prune_slice() returned for the step's mark.
  void on_pruned(std::int64_t deleted);

 private:
  /// So much would go because of its age that it stays for another day of running.
  struct Wait {
    std::int64_t waited_ms = 0;
    std::int64_t mark_ms =
        0;  ///< the lowest since then, less what was waited: what is as old as it was at the beginning
    std::int64_t written_ms = -1;  ///< of `waited_ms`
  };
  /// The wall clock was set forward.
  struct Leap {
    std::chrono::steady_clock::time_point since{};
    std::int64_t by_ms = 0;  ///< the least since then
  };

  Status begin(const Database& database, const Moment& now);
  bool moves_mark(std::int64_t mark_ms, std::int64_t now_ms, RetentionStep& step) const;
  void follow_clock(const Moment& now);
  std::int64_t mark_by_age(const Moment& now) const;
  Result<std::int64_t> find_mark_by_age(const Database& database, const Moment& now, RetentionStep& step);
  Result<bool> may_be_ahead(const Database& database) const;
  Result<bool> was_shortened(const Database& database, std::int64_t mark_ms) const;
  Result<std::int64_t> wait(const Database& database, std::int64_t mark_ms, std::chrono::milliseconds passed,
                            const std::string& what, RetentionStep& step);
  void forget_wait(RetentionStep& step);
  Result<std::int64_t> find_mark_by_size(const Database& database);
  Result<bool> is_too_large(const Database& database);

  const RetentionLimits limits_;
  std::optional<Moment> began_;  ///< the first look of this run, by the clock that is followed
  std::chrono::steady_clock::time_point first_look_{};
  std::chrono::steady_clock::time_point last_look_{};
  std::optional<Leap> leap_;
  std::optional<std::int64_t> former_keep_ms_;
  std::optional<std::int64_t> lowered_from_ms_;
  std::int64_t lowered_to_ms_ = 0;
  std::optional<Wait> wait_;
  bool has_waited_ = false;    ///< what is being deleted has
  std::int64_t mark_ms_ = 0;   ///< what is being deleted; 0: nothing
  bool is_too_large_ = false;  ///< until it is well below the limit
};

/// Gives some of the free pages back to the file system, if the file was made to shrink and has many. True if there is
/// more to give back. Outside of a transaction.
Result<bool> shrink_slice(Database& database);

}  // namespace topolet::store
