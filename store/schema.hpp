// The schema of state.db as steps, and the way from any older version to the newest. README.md beside this file
// documents it.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.hpp"
#include "store/database.hpp"

namespace topolet::store {

/// Marks a file as topolet's (PRAGMA application_id): "tplt".
inline constexpr std::int64_t kApplicationId = 0x74706c74;

/// Brings a database from the version before to `version`.
struct Migration {
  std::int64_t version = 0;
  std::string sql;
  std::string sql_if_empty = {};  ///< besides, where no decision was ever made
};

/// All steps, oldest first; the last one's version is the newest there is.
const std::vector<Migration>& migrations();

/// Refuses, without writing, what must not be written to: FAILED_PRECONDITION for another program's database or a
/// schema newer than `steps`, DATA_LOSS for a file that is damaged.
Status check_writable(const Database& database, const std::vector<Migration>& steps = migrations());

/// Runs the steps that the database has not seen, each in a transaction of its own. A step that fails leaves the
/// database at the version before it.
Status migrate(Database& database, const std::vector<Migration>& steps = migrations());

}  // namespace topolet::store
