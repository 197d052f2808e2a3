#include "store/table_function.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <memory>
#include <utility>

#include "store/database.hpp"

namespace topolet::store {
namespace {

struct Registration {
  Database& database;
  TableFunction function;
};

struct Table : sqlite3_vtab {
  Registration* registration = nullptr;
};

struct Cursor : sqlite3_vtab_cursor {
  std::vector<CellRow> rows;
  CellRow arguments;
  std::size_t row = 0;
};

/// SQLite frees it.
char* copy_of(const std::string& message) { return sqlite3_mprintf("%s", message.c_str()); }

std::string declaration_of(const TableFunction& function) {
  std::string columns;
  for (const std::string& column : function.columns)
    columns += fmt::format("{}\"{}\"", columns.empty() ? "" : ", ", column);
  for (const std::string& argument : function.arguments) columns += fmt::format(", \"{}\" HIDDEN", argument);
  return "CREATE TABLE x (" + columns + ")";
}

int connect(sqlite3* handle, void* context, int, const char* const*, sqlite3_vtab** table, char**) {
  auto* const registration = static_cast<Registration*>(context);
  const int declared = sqlite3_declare_vtab(handle, declaration_of(registration->function).c_str());
  if (declared != SQLITE_OK) return declared;
  auto made = std::make_unique<Table>();
  made->registration = registration;
  *table = made.release();
  return SQLITE_OK;
}

int disconnect(sqlite3_vtab* table) {
  const std::unique_ptr<Table> owned(static_cast<Table*>(table));
  return SQLITE_OK;
}

/// The bits of idxNum say which arguments are given; they come in their order.
int choose_plan(sqlite3_vtab* table, sqlite3_index_info* info) {
  const TableFunction& function = static_cast<Table*>(table)->registration->function;
  const int first = static_cast<int>(function.columns.size());
  int given = 0;
  int position = 0;
  for (int argument = 0; argument < static_cast<int>(function.arguments.size()); ++argument) {
    for (int i = 0; i < info->nConstraint; ++i) {
      const auto& constraint = info->aConstraint[i];
      if (constraint.iColumn != first + argument || constraint.op != SQLITE_INDEX_CONSTRAINT_EQ) continue;
      // Its value is not known in this plan: another one has it.
      if (constraint.usable == 0) return SQLITE_CONSTRAINT;
      info->aConstraintUsage[i].argvIndex = ++position;
      info->aConstraintUsage[i].omit = 1;
      given |= 1 << argument;
      break;
    }
  }
  info->idxNum = given;
  info->estimatedCost = 1000;
  return SQLITE_OK;
}

int open(sqlite3_vtab*, sqlite3_vtab_cursor** cursor) {
  *cursor = std::make_unique<Cursor>().release();
  return SQLITE_OK;
}

int close(sqlite3_vtab_cursor* cursor) {
  const std::unique_ptr<Cursor> owned(static_cast<Cursor*>(cursor));
  return SQLITE_OK;
}

Cell cell_of(sqlite3_value* value) {
  switch (sqlite3_value_type(value)) {
    case SQLITE_NULL:
      return {};
    case SQLITE_INTEGER:
      return std::int64_t{sqlite3_value_int64(value)};
    default:
      return std::string(reinterpret_cast<const char*>(sqlite3_value_text(value)),
                         static_cast<std::size_t>(sqlite3_value_bytes(value)));
  }
}

int filter(sqlite3_vtab_cursor* base, int given, const char*, int, sqlite3_value** values) {
  auto* const cursor = static_cast<Cursor*>(base);
  const Registration& registration = *static_cast<Table*>(base->pVtab)->registration;
  cursor->arguments.assign(registration.function.arguments.size(), {});
  for (std::size_t argument = 0; argument < cursor->arguments.size(); ++argument) {
    if ((given & (1 << argument)) != 0) cursor->arguments[argument] = cell_of(*values++);
  }
  auto rows = registration.function.rows(registration.database, cursor->arguments);
  if (!rows) {
    sqlite3_free(base->pVtab->zErrMsg);
    base->pVtab->zErrMsg = copy_of(rows.error().message);
    return rows.error().code == Code::kDeadlineExceeded ? SQLITE_INTERRUPT : SQLITE_ERROR;
  }
  cursor->rows = *std::move(rows);
  cursor->row = 0;
  return SQLITE_OK;
}

int next(sqlite3_vtab_cursor* cursor) {
  ++static_cast<Cursor*>(cursor)->row;
  return SQLITE_OK;
}

int is_at_end(sqlite3_vtab_cursor* base) {
  const auto* const cursor = static_cast<Cursor*>(base);
  return cursor->row >= cursor->rows.size() ? 1 : 0;
}

void set_result(sqlite3_context* context, const Cell& cell) {
  if (const auto* const number = std::get_if<std::int64_t>(&cell)) {
    sqlite3_result_int64(context, *number);
  } else if (const auto* const text = std::get_if<std::string>(&cell)) {
    sqlite3_result_text64(context, text->data(), text->size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  } else {
    sqlite3_result_null(context);
  }
}

int column(sqlite3_vtab_cursor* base, sqlite3_context* context, int position) {
  const auto* const cursor = static_cast<Cursor*>(base);
  const CellRow& row = cursor->rows[cursor->row];
  const auto index = static_cast<std::size_t>(position);
  const Cell& cell = index < row.size() ? row[index] : cursor->arguments[index - row.size()];
  set_result(context, cell);
  return SQLITE_OK;
}

int row_number(sqlite3_vtab_cursor* cursor, sqlite3_int64* number) {
  *number = static_cast<sqlite3_int64>(static_cast<Cursor*>(cursor)->row);
  return SQLITE_OK;
}

/// Without xCreate the function is there without a CREATE VIRTUAL TABLE, and only so.
const sqlite3_module* module_of_functions() {
  static const sqlite3_module kModule = [] {
    sqlite3_module module{};
    module.xConnect = connect;
    module.xBestIndex = choose_plan;
    module.xDisconnect = disconnect;
    module.xOpen = open;
    module.xClose = close;
    module.xFilter = filter;
    module.xNext = next;
    module.xEof = is_at_end;
    module.xColumn = column;
    module.xRowid = row_number;
    return module;
  }();
  return &kModule;
}

void call_scalar(sqlite3_context* context, int count, sqlite3_value** values) {
  const auto* const function = static_cast<const ScalarFunction*>(sqlite3_user_data(context));
  CellRow arguments;
  for (int i = 0; i < count; ++i) arguments.push_back(cell_of(values[i]));
  const Result<Cell> answer = function->call(arguments);
  if (!answer) return sqlite3_result_error(context, answer.error().message.c_str(), -1);
  set_result(context, *answer);
}

}  // namespace

Status add_scalar_function(Database& database, ScalarFunction function) {
  const std::string name = function.name;
  const int arguments = function.arguments;
  auto registration = std::make_unique<ScalarFunction>(std::move(function));
  // SQLite destroys it, also if this fails.
  const int code = sqlite3_create_function_v2(
      database.handle(), name.c_str(), arguments, SQLITE_UTF8 | SQLITE_DETERMINISTIC, registration.release(),
      call_scalar, nullptr, nullptr,
      [](void* context) { const std::unique_ptr<ScalarFunction> owned(static_cast<ScalarFunction*>(context)); });
  if (code == SQLITE_OK) return {};
  return Error{Code::kInternal, fmt::format("cannot add the SQL function {}: {}", name, sqlite3_errstr(code))};
}

Status add_table_function(Database& database, TableFunction function) {
  const std::string name = function.name;
  auto registration = std::make_unique<Registration>(Registration{database, std::move(function)});
  // SQLite destroys it, also if this fails.
  const int code = sqlite3_create_module_v2(
      database.handle(), name.c_str(), module_of_functions(), registration.release(),
      [](void* context) { const std::unique_ptr<Registration> owned(static_cast<Registration*>(context)); });
  if (code == SQLITE_OK) return {};
  return Error{Code::kInternal, fmt::format("cannot add the SQL function {}: {}", name, sqlite3_errstr(code))};
}

}  // namespace topolet::store
