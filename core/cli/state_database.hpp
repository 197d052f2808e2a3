// The state database as a command reads it.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "core/cli/command.hpp"
#include "core/cli/deadline.hpp"
#include "core/cli/row_writer.hpp"
#include "core/cli/table.hpp"
#include "store/database.hpp"

namespace topolet::cli {

/// The file that database_file() names. NOT_FOUND says where topoletd puts its database and how to name another,
/// PERMISSION_DENIED who may read it.
Result<store::Database> open_read_only(const Invocation& invocation);

/// Opened read-only for one command, whose options include those of declare_database(). Everything that reads it ends
/// with an error when --timeout passes.
class StateDatabase {
 public:
  /// As open_read_only() does it.
  static Result<std::unique_ptr<StateDatabase>> open(const Invocation& invocation);

  const store::Database& connection() const { return connection_; }
  store::Database& connection() { return connection_; }

  /// FAILED_PRECONDITION if an older topoletd wrote the database: it may lack tables and columns.
  Status require_newest_schema() const;

  /// All rows of a statement with its parameters, for few of them.
  template <class... Values>
  Result<Table> table(const std::string& sql, const Values&... values) const {
    auto statement = connection_.prepare(sql, kPurpose);
    if (!statement) return statement.error();
    if (Status bound = statement->bind(values...); !bound) return bound.error();
    return read(*statement);
  }

  /// Writes any number of rows to stdout as --format of the command says. Without rows, people read `nothing` instead
  /// of a table.
  template <class... Values>
  Status print(const std::string& nothing, const std::string& sql, const Values&... values) const {
    auto statement = connection_.prepare(sql, kPurpose);
    if (!statement) return statement.error();
    if (Status bound = statement->bind(values...); !bound) return bound;
    return print(nothing, *statement);
  }
  Status print(const std::string& nothing, store::Statement& statement) const;
  Status print(const std::string& nothing, const Table& table) const;
  /// Between two tables for people.
  Status print_empty_line() const;

  /// The purpose that errors name.
  static constexpr const char* kPurpose = "run the query";

 private:
  StateDatabase(const Invocation& invocation, std::chrono::seconds timeout, store::Database connection);
  Result<Table> read(store::Statement& statement) const;
  Error explained(const Error& error) const;

  const Invocation& invocation_;
  Deadline deadline_;
  store::Database connection_;
};

}  // namespace topolet::cli
