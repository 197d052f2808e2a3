#include "core/audit/pool_record.hpp"

#include <utility>

namespace topolet::audit {
namespace {

constexpr const char* kPurpose = "read the pool";

Result<PoolRecord> read(const store::Statement& row) {
  PoolRecord record;
  record.generation = static_cast<std::uint64_t>(row.integer(0));
  record.at_ms = row.integer(1);
  auto pool = CpuSet::parse(row.text(2));
  if (!pool) return pool.error();
  record.pool = *std::move(pool);
  if (!row.is_null(3)) {
    auto reserved = CpuSet::parse(row.text(3));
    if (!reserved) return reserved.error();
    record.free_reserved = *std::move(reserved);
  }
  auto isolated = CpuSet::parse(row.text(4));
  if (!isolated) return isolated.error();
  record.free_isolated = *std::move(isolated);
  if (!row.is_null(5)) record.caused_by = row.integer(5);
  record.cause = row.text(6);
  return record;
}

constexpr const char* kColumns =
    "SELECT generation, at_ms, cpus, free_reserved, coalesce(free_isolated, ''), caused_by, cause FROM pool_version ";

Result<std::optional<PoolRecord>> first_row(store::Statement& statement) {
  const Result<bool> found = statement.next();
  if (!found) return found.error();
  if (!*found) return std::optional<PoolRecord>();
  auto record = read(statement);
  statement.reset();
  if (!record) return record.error();
  return std::optional(*std::move(record));
}

/// The generation of the newest record at that time, or 0. There is no index by time: the generations grow with it.
Result<std::int64_t> generation_at(const store::Database& database, std::int64_t at_ms) {
  auto next = database.prepare(
      "SELECT generation, at_ms FROM pool_version WHERE generation >= ?1 ORDER BY generation LIMIT 1", kPurpose);
  if (!next) return next.error();
  const auto newest = database.integer("SELECT coalesce(max(generation), 0) FROM pool_version", kPurpose);
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
  auto row = database.prepare(std::string(kColumns) + "WHERE generation = ?1", kPurpose);
  if (!row) return row.error();
  if (Status bound = row->bind(*generation); !bound) return bound.error();
  return first_row(*row);
}

Result<std::optional<PoolRecord>> pool_before(const store::Database& database, std::int64_t generation) {
  auto row =
      database.prepare(std::string(kColumns) + "WHERE generation < ?1 ORDER BY generation DESC LIMIT 1", kPurpose);
  if (!row) return row.error();
  if (Status bound = row->bind(generation); !bound) return bound.error();
  return first_row(*row);
}

Result<std::vector<PoolRecord>> pools_between(const store::Database& database, std::int64_t since_ms,
                                              std::int64_t until_ms) {
  const auto first = generation_at(database, since_ms);
  if (!first) return first.error();
  const auto last = generation_at(database, until_ms);
  if (!last) return last.error();
  auto rows = database.prepare(std::string(kColumns) + "WHERE generation > ?1 AND generation <= ?2 ORDER BY generation",
                               kPurpose);
  if (!rows) return rows.error();
  if (Status bound = rows->bind(*first, *last); !bound) return bound.error();
  std::vector<PoolRecord> records;
  while (true) {
    const Result<bool> more = rows->next();
    if (!more) return more.error();
    if (!*more) return records;
    auto record = read(*rows);
    if (!record) return record.error();
    records.push_back(*std::move(record));
  }
}

}  // namespace topolet::audit
