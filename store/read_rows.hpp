// Rows of the database as the store hands them out.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/result.hpp"
#include "store/database.hpp"
#include "store/store.hpp"

namespace topolet::store {

/// Reads rows of the view `allocation`, whose first column is the number of the decision.
Result<std::vector<AllocationRow>> read_allocations(Statement& statement);
/// Reads rows of `pod`.
Result<std::vector<PodRow>> read_pods(Statement& statement);
/// Reads rows of `reported_capacity`, whose first column is the node.
Result<std::vector<CapacityRow>> read_capacities(Statement& statement);
/// Reads rows of `recent_size`.
Result<std::vector<RecentSizeRow>> read_recent_sizes(Statement& statement);
/// Reads the denials that were made or repeated since then, the oldest first.
Result<std::vector<DenialRow>> read_denials(const Database& database, std::int64_t since_ms);
/// Reads the first column of all rows that the statement gives for `parameter`.
Result<std::vector<std::int64_t>> read_numbers(Statement& statement, std::int64_t parameter);

}  // namespace topolet::store
