// How long the history is kept: what is deleted of it, a slice at a time.
#pragma once

#include <cstdint>

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

/// Decides what is to be deleted.
class Retention {
 public:
  explicit Retention(RetentionLimits limits) : limits_(limits) {}

  /// The mark for the next prune_slice(); 0: nothing is to be deleted now. Only reads.
  Result<std::int64_t> find_mark(const Database& database, std::int64_t now_ms);
  /// What that slice returned.
  void on_pruned(std::int64_t deleted);

 private:
  Result<bool> is_too_large(const Database& database);

  const RetentionLimits limits_;
  bool began_ = false;
  std::int64_t mark_ms_ = 0;   ///< what is being deleted; 0: nothing
  bool is_too_large_ = false;  ///< until it is well below the limit
};

/// Gives some of the free pages back to the file system, if the file was made to shrink and has many. True if there is
/// more to give back. Outside of a transaction.
Result<bool> shrink_slice(Database& database);

}  // namespace topolet::store
