// What the history of an older topolet lacks, made good in slices.
#pragma once

#include <cstdint>

#include "core/base/result.hpp"
#include "store/database.hpp"

namespace topolet::store {

/// The power of two below the length of a lifetime in milliseconds: the column `span` of `lifetime`.
std::int64_t span_of(std::int64_t from_ms, std::int64_t until_ms);

/// Adds to `pod_history`, `event_history` and `lifetime` what about `rows` decisions lack there. False if there is
/// nothing more to do. To be run in a transaction.
Result<bool> backfill_slice(Database& database, std::int64_t rows);

}  // namespace topolet::store
