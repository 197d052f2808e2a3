// Statements that write any columns of a row, by name.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/base/result.hpp"
#include "store/database.hpp"
#include "store/store.hpp"

namespace topolet::store {

/// Each statement is prepared when its columns are written for the first time, and kept.
class ColumnStatements {
 public:
  /// Names a table, the column that is the key of its rows, and the purpose, as in Database::prepare().
  struct Target {
    const char* table;
    const char* key;
    const char* purpose;
    /// The name of a column in the table; null: its own.
    std::string (*name_in_table)(const std::string& column) = nullptr;

    std::string name_of(const std::string& column) const { return name_in_table ? name_in_table(column) : column; }
  };

  /// Writes a row in the place of the one that has this key.
  Status put(const Database& database, const Target& target, std::int64_t key, const Columns& columns);
  /// Changes some columns of the row that has this key. Database::changed_rows() tells if there was one.
  Status update(const Database& database, const Target& target, std::int64_t key, const Columns& columns);

  /// To be called before the connection is closed.
  void clear() { statements_.clear(); }

 private:
  template <class MakeSql>
  Result<Statement*> find_or_prepare(const Database& database, const char* verb, const Target& target,
                                     const Columns& columns, MakeSql make_sql);

  std::map<std::string, Statement> statements_;  ///< by verb, table and columns
};

}  // namespace topolet::store
