#include "store/column_statements.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <utility>

namespace topolet::store {
namespace {

/// The first parameter is the key, those of the columns follow in their order.
std::string insert_or_replace(const ColumnStatements::Target& target, const Columns& columns) {
  std::string names;
  std::string marks;
  for (const auto& [name, value] : columns) {
    names += ", " + target.name_of(name);
    marks += ", ?";
  }
  return fmt::format("INSERT OR REPLACE INTO {} ({}{}) VALUES (?{})", target.table, target.key, names, marks);
}

std::string update_columns(const ColumnStatements::Target& target, const Columns& columns) {
  std::string sets;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    sets += fmt::format("{}{} = ?{}", i == 0 ? "" : ", ", target.name_of(columns[i].first), i + 2);
  }
  return fmt::format("UPDATE {} SET {} WHERE {} = ?1", target.table, sets, target.key);
}

}  // namespace

template <class MakeSql>
Result<Statement*> ColumnStatements::find_or_prepare(const Database& database, const char* verb, const Target& target,
                                                     const Columns& columns, MakeSql make_sql) {
  std::string name = fmt::format("{} {}", verb, target.table);
  for (const auto& [column, value] : columns) name.append(1, ' ').append(column);
  const auto known = statements_.find(name);
  if (known != statements_.end()) return &known->second;
  auto statement = database.prepare(make_sql(target, columns), target.purpose);
  if (!statement) return statement.error();
  return &statements_.emplace(std::move(name), *std::move(statement)).first->second;
}

Status ColumnStatements::put(const Database& database, const Target& target, std::int64_t key, const Columns& columns) {
  const auto statement = find_or_prepare(database, "put", target, columns, insert_or_replace);
  if (!statement) return statement.error();
  return (*statement)->run_columns(key, columns);
}

Status ColumnStatements::update(const Database& database, const Target& target, std::int64_t key,
                                const Columns& columns) {
  const auto statement = find_or_prepare(database, "update", target, columns, update_columns);
  if (!statement) return statement.error();
  return (*statement)->run_columns(key, columns);
}

}  // namespace topolet::store
