// The schema of state.db: its first version and the steps to the newest. README.md beside this file documents it.
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
};

/// All steps, oldest first. The first one makes a schema in an empty database: that of an older version is not brought
/// forward. The last one's version is the newest there is.
const std::vector<Migration>& migrations();

/// The code of an error about a file whose schema is older than the first of the steps.
inline constexpr Code kTooOld = Code::kUnimplemented;

/// Refuses, without writing, what must not be written to: FAILED_PRECONDITION for another program's database or a
/// schema newer than `steps`, kTooOld for an older one, DATA_LOSS for a file that is damaged.
Status check_writable(const Database& database, const std::vector<Migration>& steps = migrations());

/// FAILED_PRECONDITION if the schema is not yet the newest, with `purpose` as the subject: "pruning".
Status check_newest(const Database& database, const std::string& purpose);

/// Runs the steps that the database has not seen, each in a transaction of its own. A step that fails leaves the
/// database at the version before it.
Status migrate(Database& database, const std::vector<Migration>& steps = migrations());

}  // namespace topolet::store
