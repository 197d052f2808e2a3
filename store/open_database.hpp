// How the database is opened: checked, and brought to the newest schema.
#pragma once

#include <filesystem>

#include "core/base/result.hpp"
#include "store/database.hpp"
#include "store/state_directory.hpp"
#include "store/statements.hpp"
#include "store/store.hpp"

namespace topolet::store {

/// Statements go before their connection.
struct OpenedDatabase {
  Database database;
  Statements statements;
};

/// Opens or makes the file. DATA_LOSS if it is damaged, as far as a start looks, or marked as such; kTooOld if its
/// schema is.
Result<OpenedDatabase> open_database(const StateDirectory& directory, Durability durability);

/// Opens the file as it is, where it cannot be written to. An error unless it has the newest schema.
Result<OpenedDatabase> open_database_to_read(const std::filesystem::path& file);

/// Makes a database of the same schema that no file holds.
Result<OpenedDatabase> open_database_in_memory();

}  // namespace topolet::store
