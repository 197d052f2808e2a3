#include "store/database.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <utility>

#include "store/log_vfs.hpp"

namespace topolet::store {
namespace {

/// A writer waits only for another writer (a person's sqlite3 shell); long enough for one statement.
constexpr int kBusyTimeoutMs = 1000;

/// Steps of SQLite's virtual machine, which take some ten microseconds.
constexpr int kStepsBetweenQuestions = 1000;

Code code_of(int sqlite_code) {
  switch (sqlite_code & 0xff) {
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
      return Code::kDataLoss;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
      return Code::kUnavailable;
    case SQLITE_FULL:
    case SQLITE_NOMEM:
    case SQLITE_TOOBIG:
      return Code::kResourceExhausted;
    case SQLITE_INTERRUPT:
      return Code::kDeadlineExceeded;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return Code::kPermissionDenied;
    case SQLITE_CONSTRAINT:
      return sqlite_code == SQLITE_CONSTRAINT_FOREIGNKEY ? Code::kNotFound : Code::kFailedPrecondition;
    default:
      return Code::kInternal;
  }
}

const char* remedy(int sqlite_code) {
  switch (sqlite_code & 0xff) {
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
      return "; the file is damaged";
    case SQLITE_FULL:
      return "; free space on that file system";
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return "; another program keeps it locked for writing";
    default:
      return "";
  }
}

std::string immutable_uri(const std::filesystem::path& path) {
  std::string uri = "file:";
  for (const char c : path.string()) {
    if (c == '?' || c == '#' || c == '%') {
      uri += fmt::format("%{:02x}", static_cast<unsigned char>(c));
    } else {
      uri += c;
    }
  }
  return uri + "?immutable=1";
}

std::string path_of(sqlite3* handle) {
  const char* path = sqlite3_db_filename(handle, "main");
  return path != nullptr ? path : "";
}

Error error_of(sqlite3* handle, std::string_view purpose) {
  const int code = sqlite3_extended_errcode(handle);
  return {code_of(code), fmt::format("cannot {} in '{}': {} (SQLite {}){}", purpose, path_of(handle),
                                     sqlite3_errmsg(handle), code, remedy(code))};
}

/// Pragmas that describe the database. Those of the second list would set what they tell if they had a value.
constexpr std::array<std::string_view, 15> kDescribingPragmas = {
    "table_info",      "table_xinfo",      "table_list",    "index_list",        "index_info",
    "index_xinfo",     "foreign_key_list", "database_list", "collation_list",    "function_list",
    "compile_options", "integrity_check",  "quick_check",   "foreign_key_check", "pragma_list"};
constexpr std::array<std::string_view, 7> kDescribingPragmasWithoutValue = {
    "schema_version", "user_version", "application_id", "page_count", "page_size", "freelist_count", "encoding"};

/// Some builds of SQLite have them.
constexpr std::array<std::string_view, 5> kFunctionsThatReachFiles = {"load_extension", "readfile", "writefile", "edit",
                                                                      "fts3_tokenizer"};

template <class Names>
bool has(const Names& names, const char* name) {
  return std::any_of(names.begin(), names.end(), [name](std::string_view other) {
    return other.size() == std::strlen(name) &&
           sqlite3_strnicmp(other.data(), name, static_cast<int>(other.size())) == 0;
  });
}

/// Empty if the statement may do it, or else its name.
std::string refused_action(int action, const char* first, const char* second) {
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
      return {};
    case SQLITE_PRAGMA:
      if (has(kDescribingPragmas, first) || (second == nullptr && has(kDescribingPragmasWithoutValue, first)))
        return {};
      return fmt::format("PRAGMA {}{}{}", first, second != nullptr ? " = " : "", second != nullptr ? second : "");
    case SQLITE_FUNCTION:
      return has(kFunctionsThatReachFiles, second) ? fmt::format("the function {}()", second) : std::string();
    case SQLITE_DELETE:
      return "DELETE";
    case SQLITE_INSERT:
      return "INSERT";
    case SQLITE_UPDATE:
      // Also how SQLite asks for a table-valued function's columns, which changes nothing. Statements that would
      // change this table are noticed as not read-only.
      return std::string_view(first) == "sqlite_master" ? "" : "UPDATE";
    default:
      return "a statement that does more than reading";
  }
}

int authorize(void* refused, int action, const char* first, const char* second, const char* /*database*/,
              const char* /*trigger*/) {
  std::string what = refused_action(action, first, second);
  if (what.empty()) return SQLITE_OK;
  *static_cast<std::string*>(refused) = std::move(what);
  return SQLITE_DENY;
}

/// Without the white space, comments and semicolons that it begins with.
std::string_view skip_blank(std::string_view sql) {
  while (!sql.empty()) {
    const std::string_view start = sql.substr(0, 2);
    std::size_t end = 1;
    if (start == "--" || start == "/*") {
      const std::string_view mark = start == "--" ? "\n" : "*/";
      const std::size_t found = sql.find(mark, 2);
      end = found == std::string_view::npos ? sql.size() : found + mark.size();
    } else if (std::string_view(" \t\n\r\f;").find(sql.front()) == std::string_view::npos) {
      break;
    }
    sql.remove_prefix(end);
  }
  return sql;
}

/// "DROP" of "drop table pod"
std::string first_word(std::string_view sql) {
  std::string word(sql.substr(0, sql.find_first_of(" \t\n\r\f;(")));
  for (char& letter : word) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  return word;
}

/// Refuses a statement that does more than reading, which is named by `refused`, or by its first word if that says it
/// better.
Error not_only_reading(std::string_view statement, const std::string& refused) {
  const std::string word = first_word(statement);
  const bool names_it = word == "SELECT" || word == "WITH" || word == "EXPLAIN" || word == "VALUES" || word == "PRAGMA";
  return {Code::kPermissionDenied,
          fmt::format("{} is refused, as only reading is allowed", names_it && !refused.empty() ? refused : word)};
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

Result<bool> Statement::next() {
  const int code = sqlite3_step(handle_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) {
    reset();
    return false;
  }
  const Error failure = error();
  reset();
  return failure;
}

std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(handle_.get(), column); }

std::string Statement::text(int column) const {
  const void* bytes = sqlite3_column_text(handle_.get(), column);
  if (bytes == nullptr) return {};
  return {static_cast<const char*>(bytes), static_cast<std::size_t>(sqlite3_column_bytes(handle_.get(), column))};
}

bool Statement::is_null(int column) const { return sqlite3_column_type(handle_.get(), column) == SQLITE_NULL; }

bool Statement::is_integer(int column) const { return sqlite3_column_type(handle_.get(), column) == SQLITE_INTEGER; }

bool Statement::is_text(int column) const { return sqlite3_column_type(handle_.get(), column) == SQLITE_TEXT; }

bool Statement::is_real(int column) const { return sqlite3_column_type(handle_.get(), column) == SQLITE_FLOAT; }

double Statement::real(int column) const { return sqlite3_column_double(handle_.get(), column); }

void Statement::read_columns() const {
  for (int i = 0; i < sqlite3_data_count(handle_.get()); ++i) {
    const int type = sqlite3_column_type(handle_.get(), i);
    if (type == SQLITE_TEXT || type == SQLITE_BLOB) sqlite3_column_blob(handle_.get(), i);
  }
}

std::vector<std::string> Statement::columns() const {
  std::vector<std::string> names;
  for (int i = 0; i < sqlite3_column_count(handle_.get()); ++i) {
    names.emplace_back(sqlite3_column_name(handle_.get(), i));
  }
  return names;
}

Status Statement::finish() {
  while (true) {
    const Result<bool> more = next();
    if (!more) return more.error();
    if (!*more) return {};
  }
}

Result<std::optional<std::int64_t>> Statement::fetch_first_integer() {
  const Result<bool> row = next();
  if (!row) return row.error();
  std::optional<std::int64_t> value;
  if (*row) value = integer(0);
  reset();
  return value;
}

Result<std::optional<std::string>> Statement::fetch_first_text() {
  const Result<bool> row = next();
  if (!row) return row.error();
  std::optional<std::string> value;
  if (*row) value = text(0);
  reset();
  return value;
}

void Statement::reset() { sqlite3_reset(handle_.get()); }

Error Statement::error() const { return error_of(sqlite3_db_handle(handle_.get()), purpose_); }

Status Statement::check_bound(bool bound) const {
  if (!bound) return error();
  return {};
}

bool Statement::bind_one(int position, std::int64_t value) {
  return sqlite3_bind_int64(handle_.get(), position, value) == SQLITE_OK;
}

bool Statement::bind_one(int position, std::string_view value) {
  // A null pointer would bind NULL, and an empty view may carry one.
  const char* bytes = value.empty() ? "" : value.data();
  return sqlite3_bind_text64(handle_.get(), position, bytes, value.size(), SQLITE_TRANSIENT, SQLITE_UTF8) == SQLITE_OK;
}

bool Statement::bind_null(int position) { return sqlite3_bind_null(handle_.get(), position) == SQLITE_OK; }

void Database::Close::operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }

Result<Database> Database::open(const std::filesystem::path& path, Access access) {
  if (access == Access::kImmutable) return open(immutable_uri(path), SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
  return open(path.string(), access == Access::kReadWrite ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY);
}

Result<Database> Database::open_in_memory() {
  return open(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MEMORY);
}

Result<Database> Database::open(const std::string& name, int flags) {
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(name.c_str(), &handle, flags | SQLITE_OPEN_NOMUTEX, log_vfs());
  Database database(handle);
  if (code != SQLITE_OK) {
    return Error{code_of(code), fmt::format("cannot open '{}': {}", name,
                                            handle != nullptr ? sqlite3_errmsg(handle) : sqlite3_errstr(code))};
  }
  drop_on_rollback(handle);
  sqlite3_extended_result_codes(handle, 1);
  sqlite3_busy_timeout(handle, kBusyTimeoutMs);
  return database;
}

std::string Database::path() const { return path_of(handle_.get()); }

Result<Statement> Database::prepare(std::string_view sql, std::string purpose) const {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(handle_.get(), sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (code != SQLITE_OK) return error_of(handle_.get(), purpose);
  return Statement(statement, std::move(purpose));
}

void Database::refuse_all_but_reading() {
  if (refused_ != nullptr) return;
  refused_ = std::make_unique<std::string>();
  sqlite3_set_authorizer(handle_.get(), &authorize, refused_.get());
}

Result<Statement> Database::prepare_reading(std::string_view sql, std::string purpose) {
  refuse_all_but_reading();
  refused_->clear();
  if (sql.find('\0') != std::string_view::npos)
    return Error{Code::kInvalidArgument, "the SQL has a NUL character in it"};
  const std::string_view statement = skip_blank(sql);
  if (statement.empty()) return Error{Code::kInvalidArgument, "there is no SQL statement"};
  if (statement.front() == '.') {
    return Error{Code::kPermissionDenied, fmt::format("'{}' is a command of the sqlite3 shell, not SQL",
                                                      statement.substr(0, statement.find_first_of(" \t\n\r\f;")))};
  }
  sqlite3_stmt* handle = nullptr;
  const char* tail = nullptr;
  const int code =
      sqlite3_prepare_v3(handle_.get(), statement.data(), static_cast<int>(statement.size()), 0, &handle, &tail);
  Statement prepared(handle, std::move(purpose));
  if (!refused_->empty()) return not_only_reading(statement, *refused_);
  if (code != SQLITE_OK) return Error{Code::kInvalidArgument, error_of(handle_.get(), prepared.purpose_).message};
  if (sqlite3_stmt_readonly(handle) == 0) return not_only_reading(statement, {});
  const std::string_view second = skip_blank(statement.substr(static_cast<std::size_t>(tail - statement.data())));
  if (second.empty()) return prepared;
  return Error{Code::kInvalidArgument,
               fmt::format("there is a second statement, which begins with {}; only one can be run at a time",
                           first_word(second))};
}

Status Database::execute(const std::string& sql, std::string_view purpose) {
  if (sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
    return error_of(handle_.get(), purpose);
  }
  return {};
}

Result<std::int64_t> Database::integer(std::string_view sql, std::string purpose) const {
  auto statement = prepare(sql, std::move(purpose));
  if (!statement) return statement.error();
  const auto value = statement->first_integer();
  if (!value) return value.error();
  return value->value_or(0);
}

Result<std::string> Database::text(std::string_view sql, std::string purpose) const {
  auto statement = prepare(sql, std::move(purpose));
  if (!statement) return statement.error();
  const auto value = statement->first_text();
  if (!value) return value.error();
  return value->value_or("");
}

std::int64_t Database::last_row_number() const { return sqlite3_last_insert_rowid(handle_.get()); }

std::int64_t Database::changed_rows() const { return sqlite3_changes64(handle_.get()); }

bool Database::in_transaction() const { return sqlite3_get_autocommit(handle_.get()) == 0; }

Status Database::copy_to(const std::filesystem::path& path) const {
  constexpr const char* kPurpose = "write the copy";
  auto copy = open(path, Access::kReadWrite);
  if (!copy) return copy.error();
  // Nobody else opens the copy, and a copy that fails is thrown away.
  if (Status set = copy->execute("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF",
                                 kPurpose);
      !set) {
    return set;
  }
  sqlite3* const target = copy->handle_.get();
  sqlite3_backup* const backup = sqlite3_backup_init(target, "main", handle_.get(), "main");
  if (backup == nullptr) return error_of(target, kPurpose);
  const int copied = sqlite3_backup_step(backup, -1);
  sqlite3_backup_finish(backup);  // which leaves the error of the step in `target`
  if (copied != SQLITE_DONE) return error_of(target, kPurpose);
  // The original's journal mode was copied too. With its log, the copy would be more than one file.
  const auto mode = copy->text("PRAGMA journal_mode = DELETE", kPurpose);
  if (!mode) return mode.error();
  if (*mode == "delete") return {};
  return Error{Code::kInternal,
               fmt::format("cannot {} in '{}': its journal mode stays {}", kPurpose, path.string(), *mode)};
}

void Database::on_log_written(std::function<void(int pages)> on_written) {
  on_log_written_ = std::make_unique<std::function<void(int pages)>>(std::move(on_written));
  sqlite3_wal_hook(
      handle_.get(),
      [](void* context, sqlite3*, const char*, int pages) {
        (*static_cast<std::function<void(int)>*>(context))(pages);
        return SQLITE_OK;
      },
      on_log_written_.get());
}

void Database::checkpoint() {
  sqlite3_wal_checkpoint_v2(handle_.get(), nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
}

void Database::interrupt_once(std::function<bool()> passed) {
  interrupt_once_ = std::make_unique<std::function<bool()>>(std::move(passed));
  sqlite3_progress_handler(
      handle_.get(), kStepsBetweenQuestions,
      [](void* context) { return (*static_cast<std::function<bool()>*>(context))() ? 1 : 0; }, interrupt_once_.get());
}

void Database::leave_untouched_at_close(bool on) {
  sqlite3_db_config(handle_.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, on ? 1 : 0, nullptr);
}

}  // namespace topolet::store
