#include "core/cli/state_database.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/audit/table_functions.hpp"
#include "core/base/escape.hpp"
#include "core/base/file_exists.hpp"
#include "core/cli/options.hpp"
#include "store/schema.hpp"

namespace topolet::cli {
namespace {

Cell cell_of(const store::Statement& statement, int column) {
  if (statement.is_null(column)) return nullptr;
  if (statement.is_integer(column)) return statement.integer(column);
  if (statement.is_real(column)) return statement.real(column);
  return statement.text(column);
}

Row row_of(const store::Statement& statement, std::size_t columns) {
  Row row;
  row.reserve(columns);
  for (std::size_t i = 0; i < columns; ++i) row.push_back(cell_of(statement, static_cast<int>(i)));
  return row;
}

/// Checks a file that exists, or may exist as far as we may see. SQLite would only say that it cannot open it.
Status check_readable(const std::filesystem::path& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    return Error{Code::kInvalidArgument, fmt::format("{} is no regular file, and so no state database", file.string())};
  }
  if (::access(file.c_str(), R_OK) == 0 || errno != EACCES) return {};
  return Error{
      Code::kPermissionDenied,
      fmt::format("you may not read the state database {}: {}. It is for the user that topoletd runs as; run "
                  "this command as root, for example with sudo, or read a copy that `sudo topolet backup FILE` "
                  "made",
                  file.string(), std::strerror(EACCES))};
}

}  // namespace

Result<store::Database> open_read_only(const Invocation& invocation) {
  const auto file = database_file(invocation);
  if (!file) return file.error();
  if (Status readable = check_readable(*file); !readable) return readable.error();
  if (file_exists(*file)) return store::Database::open(*file, store::Database::Access::kReadOnly);
  return Error{Code::kNotFound,
               fmt::format("there is no state database {}; topoletd creates it at its first start. If it is elsewhere, "
                           "name topoletd's configuration with --config, its state directory with --state-dir, or the "
                           "file with --database",
                           file->string())};
}

Result<std::unique_ptr<StateDatabase>> StateDatabase::open(const Invocation& invocation) {
  const auto timeout = timeout_of(invocation);
  if (!timeout) return timeout.error();
  auto connection = open_read_only(invocation);
  if (!connection) return connection.error();
  std::unique_ptr<StateDatabase> database(new StateDatabase(invocation, *timeout, *std::move(connection)));
  if (Status added = audit::add_table_functions(database->connection_); !added) return added.error();
  return database;
}

Status StateDatabase::require_newest_schema() const { return store::check_newest(connection_, "this command"); }

StateDatabase::StateDatabase(const Invocation& invocation, std::chrono::seconds timeout, store::Database connection)
    : invocation_(invocation), deadline_(timeout), connection_(std::move(connection)) {
  connection_.interrupt_once([this] { return deadline_.passed(); });
}

Error StateDatabase::explained(const Error& error) const {
  return error.code == Code::kDeadlineExceeded ? deadline_.error() : error;
}

Result<Table> StateDatabase::read(store::Statement& statement) const {
  Table table{statement.columns(), {}};
  while (true) {
    const Result<bool> more = statement.next();
    if (!more) return explained(more.error());
    if (!*more) return table;
    table.rows.push_back(row_of(statement, table.columns.size()));
  }
}

Status StateDatabase::print(const std::string& nothing, store::Statement& statement) const {
  const auto format = format_of(invocation_);
  if (!format) return format.error();
  const std::vector<std::string> columns = statement.columns();
  Output output(STDOUT_FILENO, deadline_);
  const auto writer = make_row_writer(*format, columns, output);
  bool has_rows = false;
  while (true) {
    const Result<bool> more = statement.next();
    if (!more) return explained(more.error());
    if (!*more) break;
    has_rows = true;
    if (Status written = writer->write(row_of(statement, columns.size())); !written) return written;
  }
  if (!has_rows && *format == Format::kTable) return write_at_once(escaped(nothing) + '\n');
  return writer->finish();
}

Status StateDatabase::print(const std::string& nothing, const Table& table) const {
  const auto format = format_of(invocation_);
  if (!format) return format.error();
  if (table.rows.empty() && *format == Format::kTable) return write_at_once(escaped(nothing) + '\n');
  Output output(STDOUT_FILENO, deadline_);
  const auto writer = make_row_writer(*format, table.columns, output);
  for (const Row& row : table.rows) {
    if (Status written = writer->write(row); !written) return written;
  }
  return writer->finish();
}

Status StateDatabase::print_empty_line() const {
  Output output(STDOUT_FILENO, deadline_);
  if (Status written = output.write("\n"); !written) return written;
  return output.flush();
}

}  // namespace topolet::cli
