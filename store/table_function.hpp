// Functions that one connection has in SQL.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/result.hpp"

namespace topolet::store {

class Database;

/// NULL, a whole number, or a text.
using Cell = std::variant<std::monostate, std::int64_t, std::string>;
using CellRow = std::vector<Cell>;

/// `SELECT … FROM name(argument, …)`. Arguments that are left out are NULL.
struct TableFunction {
  std::string name;
  std::vector<std::string> columns;
  std::vector<std::string> arguments;
  std::function<Result<std::vector<CellRow>>(const Database& database, const CellRow& arguments)> rows;
};

/// `SELECT name(argument, …)`, the same for the same arguments.
struct ScalarFunction {
  std::string name;
  int arguments = 0;
  std::function<Result<Cell>(const CellRow& arguments)> call;
};
Status add_scalar_function(Database& database, ScalarFunction function);

/// `database` must stay where it is for as long as statements use the function.
Status add_table_function(Database& database, TableFunction function);

}  // namespace topolet::store
