#include "core/audit/pool_record.hpp"

#include <utility>

#include "core/audit/rows.hpp"

namespace topolet::audit {
namespace {

constexpr const char* kReadPool = "read the pool";

Result<PoolRecord> pool_record_of(const store::Statement& row) {
  PoolRecord record;
  record.generation = static_cast<std::uint64_t>(row.integer(0));
  record.at_ms = row.integer(1);
  if (Status parsed = parse_into(row.text(2), record.pool); !parsed) return parsed.error();
  if (!row.is_null(3)) {
    if (Status parsed = parse_into(row.text(3), record.free_reserved.emplace()); !parsed) return parsed.error();
  }
  if (Status parsed = parse_into(row.text(4), record.free_isolated); !parsed) return parsed.error();
  if (!row.is_null(5)) record.caused_by = row.integer(5);
  record.cause = row.text(6);
  return record;
}

const std::string kColumns =
    "SELECT generation, at_ms, cpus, free_reserved, coalesce(free_isolated, ''), caused_by, cause FROM pool_version ";

template <class... Values>
Result<std::vector<PoolRecord>> records(const store::Database& database, const std::string& condition,
                                        const Values&... values) {
  std::vector<PoolRecord> all;
  Status visited = for_each_row(
      database, kColumns + condition,
      [&](const store::Statement& row) -> Status {
        auto record = pool_record_of(row);
        if (!record) return record.error();
        all.push_back(*std::move(record));
        return {};
      },
      values...);
  if (!visited) return visited.error();
  return all;
}

Result<std::optional<PoolRecord>> first_of(Result<std::vector<PoolRecord>> records) {
  if (!records) return records.error();
  return records->empty() ? std::nullopt : std::optional(std::move(records->front()));
}

/// The generation of the newest record at that time, or 0. There is no index by time: the generations grow with it.
Result<std::int64_t> generation_at(const store::Database& database, std::int64_t at_ms) {
  auto next = database.prepare(
      "SELECT generation, at_ms FROM pool_version WHERE generation >= ?1 ORDER BY generation LIMIT 1", kReadPool);
  if (!next) return next.error();
  const auto newest = database.integer("SELECT coalesce(max(generation), 0) FROM pool_version", kReadPool);
  if (!newest) return newest.error();
  std::int64_t known = 0;
  std::int64_t low = 1;
  std::int64_t high = *newest;
  while (low <= high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (Status bound = next->bind(middle); !bound) return bound.error();
    const Result<bool> found = next->next();
    if (!found) return found.error();
    const bool is_later = !*found || next->integer(1) > at_ms;
    if (is_later) {
      high = middle - 1;
    } else {
      known = next->integer(0);
      low = known + 1;
    }
    next->reset();
  }
  return known;
}

}  // namespace

Result<std::optional<PoolRecord>> pool_at(const store::Database& database, std::int64_t at_ms) {
  const auto generation = generation_at(database, at_ms);
  if (!generation) return generation.error();
  return first_of(records(database, "WHERE generation = ?1", *generation));
}

Result<std::optional<PoolRecord>> pool_before(const store::Database& database, std::int64_t generation) {
  return first_of(records(database, "WHERE generation < ?1 ORDER BY generation DESC LIMIT 1", generation));
}

Result<std::vector<PoolRecord>> pools_between(const store::Database& database, std::int64_t since_ms,
                                              std::int64_t until_ms) {
  const auto first = generation_at(database, since_ms);
  if (!first) return first.error();
  const auto last = generation_at(database, until_ms);
  if (!last) return last.error();
  return records(database, "WHERE generation > ?1 AND generation <= ?2 ORDER BY generation", *first, *last);
}

}  // namespace topolet::audit
