// SQLite behind two types. Errors name what was tried, the file and SQLite's own message. Not synchronised.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/result.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace topolet::store {

/// One prepared statement, to be used again and again. It must not outlive its Database.
class Statement {
 public:
  Statement() = default;

  /// Binds `values` to the parameters, runs to the end and resets.
  template <class... Values>
  Status run(const Values&... values) {
    if (Status bound = bind(values...); !bound) return bound;
    return finish();
  }

  /// Begins anew with `values` as its parameters: whole numbers, strings, or optionals of them.
  template <class... Values>
  Status bind(const Values&... values) {
    reset();
    int position = 0;
    return check_bound((... && bind_one(++position, values)));
  }

  /// The same with `key` as the first parameter, and then the values of `columns` in their order.
  template <class Key, class Columns>
  Status run_columns(const Key& key, const Columns& columns) {
    reset();
    int position = 1;
    bool bound = bind_one(position, key);
    for (const auto& [name, value] : columns) {
      ++position;
      bound = bound && std::visit([&](const auto& held) { return bind_one(position, held); }, value);
    }
    if (Status checked = check_bound(bound); !checked) return checked;
    return finish();
  }

  /// Begins anew with the first `count` values of `columns` as its parameters.
  template <class Columns>
  Status bind_columns(const Columns& columns, std::size_t count) {
    reset();
    bool bound = true;
    for (std::size_t i = 0; i < count; ++i) {
      const int position = static_cast<int>(i) + 1;
      bound = bound && std::visit([&](const auto& held) { return bind_one(position, held); }, columns[i].second);
    }
    return check_bound(bound);
  }

  /// Binds `values` and gives the first column of the first row, if there is a row.
  template <class... Values>
  Result<std::optional<std::int64_t>> first_integer(const Values&... values) {
    if (Status bound = bind(values...); !bound) return bound.error();
    return fetch_first_integer();
  }
  template <class... Values>
  Result<std::optional<std::string>> first_text(const Values&... values) {
    if (Status bound = bind(values...); !bound) return bound.error();
    return fetch_first_text();
  }

  /// Moves to the next row; false after the last one, and then it is reset.
  Result<bool> next();

  /// The columns of the row at hand, from 0.
  std::int64_t integer(int column) const;
  std::string text(int column) const;
  bool is_null(int column) const;
  bool is_integer(int column) const;
  bool is_text(int column) const;
  bool is_real(int column) const;
  double real(int column) const;

  /// Loads all columns of the row at hand, also those that are kept on pages of their own.
  void read_columns() const;

  /// The names of the columns.
  std::vector<std::string> columns() const;

  /// Ends a run of next() early, so that it holds no snapshot of the database any longer.
  void reset();

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  Statement(sqlite3_stmt* handle, std::string purpose) : handle_(handle), purpose_(std::move(purpose)) {}

  Status finish();
  Result<std::optional<std::int64_t>> fetch_first_integer();
  Result<std::optional<std::string>> fetch_first_text();
  Error error() const;
  Status check_bound(bool bound) const;
  bool bind_one(int position, std::int64_t value);
  bool bind_one(int position, std::string_view value);
  bool bind_null(int position);
  template <class Value>
  bool bind_one(int position, const std::optional<Value>& value) {
    return value ? bind_one(position, *value) : bind_null(position);
  }

  std::unique_ptr<sqlite3_stmt, Finalize> handle_;
  std::string purpose_;
};

/// One connection to one file.
class Database {
 public:
  enum class Access : std::uint8_t {
    kReadWrite,
    kReadOnly,
    kImmutable,  ///< as a file that nobody changes: without locks, and whatever its log says
  };

  /// Connected to nothing; only good to be assigned to.
  Database() = default;

  /// Opens a file that exists; an empty one is a database without tables.
  static Result<Database> open(const std::filesystem::path& path, Access access);

  /// A database without tables that no file holds; it ends with this.
  static Result<Database> open_in_memory();

  std::string path() const;

  /// `purpose` completes "cannot …" in errors: "add a decision".
  Result<Statement> prepare(std::string_view sql, std::string purpose) const;

  /// For SQL that others wrote: one statement, with any comments and semicolons before and after it, that only reads.
  /// From the first call on, this connection refuses everything else: statements that write, open other files or begin
  /// transactions, pragmas but those that describe the database, and functions that reach files. PERMISSION_DENIED
  /// names what was refused, INVALID_ARGUMENT says what is wrong with the SQL.
  Result<Statement> prepare_reading(std::string_view sql, std::string purpose);

  /// Runs any number of statements, whatever rows they give.
  Status execute(const std::string& sql, std::string_view purpose);

  /// The first column of the first row; 0 or "" if there is none.
  Result<std::int64_t> integer(std::string_view sql, std::string purpose) const;
  Result<std::string> text(std::string_view sql, std::string purpose) const;

  /// The number of the row that the last INSERT made, and how many rows the last statement changed.
  std::int64_t last_row_number() const;
  std::int64_t changed_rows() const;

  /// False also after SQLite itself rolled back, as it does when the disk is full.
  bool in_transaction() const;

  /// Copies the database as it is now over the empty file `path`, which ends up complete by itself: without a
  /// write-ahead log, and not yet synced to the disk. What fails leaves files that begin with `path`.
  Status copy_to(const std::filesystem::path& path) const;

  /// Runs after each commit with the length of the write-ahead log in pages, on the thread that commits. SQLite itself
  /// then no longer makes a checkpoint when the log has 1000 pages.
  void on_log_written(std::function<void(int pages)> on_written);
  /// Writes the log into the file as far as no reader needs it, beside other connections that write. Whatever fails
  /// stays in the log.
  void checkpoint();

  /// For the other files of this room that use SQLite itself.
  sqlite3* handle() const { return handle_.get(); }

  /// Ends what is being read or written with DEADLINE_EXCEEDED once `passed` is true. It is asked every few
  /// microseconds of SQLite's work.
  void interrupt_once(std::function<bool()> passed);

  /// While `on`, closing leaves the file and its -wal as they are instead of making a checkpoint.
  void leave_untouched_at_close(bool on);

 private:
  struct Close {
    void operator()(sqlite3* handle) const;
  };
  static Result<Database> open(const std::string& name, int flags);
  void refuse_all_but_reading();
  explicit Database(sqlite3* handle) : handle_(handle) {}

  std::unique_ptr<sqlite3, Close> handle_;
  // On the heap, as SQLite keeps their addresses.
  std::unique_ptr<std::string> refused_;  ///< what prepare_reading() met last that does more than reading
  std::unique_ptr<std::function<void(int pages)>> on_log_written_;
  std::unique_ptr<std::function<bool()>> interrupt_once_;
};

}  // namespace topolet::store
