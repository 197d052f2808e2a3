// The part of the history that could be deleted, by which store/retention.hpp decides.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/result.hpp"
#include "store/database.hpp"

namespace topolet::store {

/// Tells if a decision has ended before the mark.
Result<bool> has_prunable(const Database& database, std::int64_t mark_ms);

/// Moments before which some of the oldest decisions had ended, the earliest first.
Result<std::vector<std::int64_t>> marks_by_size(const Database& database);

/// The decisions that have ended before a mark.
struct Ended {
  std::int64_t decisions = 0;
  std::int64_t first_ms = 0;
  std::int64_t last_ms = 0;
  bool is_more_than_a_tenth = false;  ///< of all decisions; of one to three, more than a third

  /// Tells if they are more than may go at once because of their age.
  bool is_much() const { return is_more_than_a_tenth || last_ms - first_ms > kMostAtOnceMs; }

 private:
  static constexpr std::int64_t kMostAtOnceMs = 2 * 86'400'000;
};
Result<Ended> ended_before(const Database& database, std::int64_t mark_ms);

/// The newest decision made before then; 0: none.
Result<std::int64_t> newest_before(const Database& database, std::int64_t moment_ms);

}  // namespace topolet::store
