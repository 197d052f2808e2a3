#pragma once

#include <string>
#include <string_view>

#include "core/base/result.hpp"
#include "store/database.hpp"

namespace topolet::audit {

/// Shows each row of a query with its parameters to `visit`, which returns a Status. Ends with the first error.
template <class Visit, class... Values>
Status for_each_row(const store::Database& database, std::string_view sql, Visit visit, const Values&... values) {
  auto rows = database.prepare(sql, "read the history");
  if (!rows) return rows.error();
  if (Status bound = rows->bind(values...); !bound) return bound;
  while (true) {
    const Result<bool> more = rows->next();
    if (!more) return more.error();
    if (!*more) return {};
    if (Status visited = visit(*rows); !visited) return visited;
  }
}

/// Reads a list of CPUs or nodes.
template <class Set>
Status parse_into(const std::string& list, Set& set) {
  auto parsed = Set::parse(list);
  if (!parsed) return parsed.error();
  set = *std::move(parsed);
  return {};
}

}  // namespace topolet::audit
