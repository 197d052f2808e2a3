#include "store/read_rows.hpp"

#include <fmt/format.h>

#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace topolet::store {
namespace {

/// Gives all columns of a row but `without`, by name.
std::map<std::string, Value> columns_of(const Statement& row, std::string_view without) {
  std::map<std::string, Value> columns;
  const std::vector<std::string> names = row.columns();
  for (std::size_t i = 0; i < names.size(); ++i) {
    const int column = static_cast<int>(i);
    if (names[i] == without) continue;
    if (row.is_integer(column)) {
      columns.emplace(names[i], row.integer(column));
    } else {
      columns.emplace(names[i], row.text(column));
    }
  }
  return columns;
}

Result<AllocationRow> read_allocation(const Statement& row) {
  return AllocationRow{row.integer(0), columns_of(row, "decision")};
}

Result<PodRow> read_pod(const Statement& row) { return columns_of(row, "boot"); }

Result<CapacityRow> read_capacity(const Statement& row) {
  if (!std::in_range<std::uint32_t>(row.integer(0)))
    return Error{Code::kDataLoss, fmt::format("reported_capacity: {} is not a NUMA node", row.integer(0))};
  return CapacityRow{static_cast<std::uint32_t>(row.integer(0)), columns_of(row, "node")};
}

Result<RecentSizeRow> read_recent_size(const Statement& row) {
  if (!std::in_range<std::uint32_t>(row.integer(0)))
    return Error{Code::kDataLoss, fmt::format("recent_size: {} is not a number of CPUs", row.integer(0))};
  return RecentSizeRow{static_cast<std::uint32_t>(row.integer(0)), row.integer(1)};
}

Result<std::int64_t> read_number(const Statement& row) { return row.integer(0); }

/// Finds denials by time, for which there is an index, and of the older ones only those that were repeated.
constexpr const char* kRecentDenials = R"sql(
WITH recent AS (
  SELECT decision, at_ms AS last_ms, 1 AS times FROM decided
  WHERE event = 'denied' AND at_ms >= ?1 AND decision NOT IN (SELECT decision FROM repeat)
  UNION ALL
  SELECT decision, last_ms, 1 + count FROM repeat WHERE last_ms >= ?1
)
SELECT d.decision, d.at_ms, r.last_ms, r.times, d.pod_uid, d.pod_namespace, d.pod_name, d.container, d.sandbox_id,
  d.reason_code, d.reason,
  NOT EXISTS (SELECT 1 FROM pod WHERE pod.sandbox_id = d.sandbox_id)
    OR EXISTS (SELECT 1 FROM decided later WHERE later.pod_uid = d.pod_uid AND later.container = d.container
               AND later.decision > d.decision AND later.event IN ('placed', 'unpinned', 'adopted'))
FROM recent r JOIN decided d USING (decision) WHERE d.event = 'denied' ORDER BY r.last_ms, d.decision)sql";

Result<DenialRow> read_denial(const Statement& row) {
  return DenialRow{.decision = row.integer(0),
                   .at_ms = row.integer(1),
                   .last_ms = row.integer(2),
                   .times = static_cast<std::uint64_t>(row.integer(3)),
                   .pod_uid = row.text(4),
                   .pod_namespace = row.text(5),
                   .pod_name = row.text(6),
                   .container = row.text(7),
                   .sandbox_id = row.text(8),
                   .reason_code = row.text(9),
                   .reason = row.text(10),
                   .is_over = row.integer(11) != 0};
}

template <class Row, class... Values>
Result<std::vector<Row>> read_all(Statement& statement, Result<Row> (*read)(const Statement&),
                                  const Values&... values) {
  std::vector<Row> rows;
  if (Status bound = statement.bind(values...); !bound) return bound.error();
  while (true) {
    const auto more = statement.next();
    if (!more) return more.error();
    if (!*more) return rows;
    auto row = read(statement);
    if (!row) {
      statement.reset();
      return row.error();
    }
    rows.push_back(*std::move(row));
  }
}

}  // namespace

Result<std::vector<AllocationRow>> read_allocations(Statement& statement) {
  return read_all<AllocationRow>(statement, read_allocation);
}

Result<std::vector<PodRow>> read_pods(Statement& statement) { return read_all<PodRow>(statement, read_pod); }

Result<std::vector<CapacityRow>> read_capacities(Statement& statement) {
  return read_all<CapacityRow>(statement, read_capacity);
}

Result<std::vector<RecentSizeRow>> read_recent_sizes(Statement& statement) {
  return read_all<RecentSizeRow>(statement, read_recent_size);
}

Result<std::vector<DenialRow>> read_denials(const Database& database, std::int64_t since_ms) {
  auto statement = database.prepare(kRecentDenials, "read who was denied of late");
  if (!statement) return statement.error();
  return read_all<DenialRow>(*statement, read_denial, since_ms);
}

Result<std::vector<std::int64_t>> read_numbers(Statement& statement, std::int64_t parameter) {
  return read_all<std::int64_t>(statement, read_number, parameter);
}

}  // namespace topolet::store
