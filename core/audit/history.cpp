#include "core/audit/history.hpp"

#include <fmt/format.h>

#include <set>
#include <string>
#include <utility>

#include "core/audit/rows.hpp"
#include "core/base/clock.hpp"
#include "core/base/rfc3339.hpp"
#include "core/placement/validate.hpp"
#include "store/retention.hpp"

namespace topolet::audit {
namespace {

constexpr const char* kPurpose = "read what was held";
/// Tells if a container has ended and is kept. In a database that was begun anew meanwhile, only `allocation` tells it.
constexpr const char* kIsKept = R"sql(
SELECT EXISTS (SELECT 1 FROM outcome WHERE decision = ?1 AND state IN ('crashed', 'kept') AND at_ms <= ?2)
    OR EXISTS (SELECT 1 FROM allocation
               WHERE decision = ?1 AND phase IN ('crashed', 'kept') AND phase_since_ms <= ?2))sql";
/// Lifetimes of 2^45 ms are longer than there have been computers.
constexpr int kLongestSpan = 44;

// In the order in which read() takes them.
constexpr const char* kDecision = R"sql(
SELECT d.decision, d.at_ms, d.generation, d.event, d.pod_uid, d.pod_namespace, d.pod_name, d.container, d.attempt,
       coalesce((SELECT o.container_id FROM outcome o WHERE o.decision = d.decision AND o.container_id <> ''
                 ORDER BY o.outcome DESC LIMIT 1), d.container_id),
       d.qos, d.cpu_request_milli, d.memory_request_bytes, d.mode, d.cpus, d.within, d.withheld, d.mems,
       d.kubelet_cpus <> '', coalesce(d.conflict, d.event = 'conflict'), d.nodes, d.reason,
       d.memory_request_estimated, d.memory_limit_bytes, d.oom_score_adj
FROM decided d WHERE d.decision = ?1)sql";

placement::Mode mode_from(const std::string& word) {
  for (const placement::Mode mode :
       {placement::Mode::kExclusive, placement::Mode::kReserved, placement::Mode::kForeign}) {
    if (to_string(mode) == word) return mode;
  }
  return placement::Mode::kShared;
}

Result<Record> read(const store::Statement& row) {
  Record record;
  int column = 0;
  record.decision = row.integer(column++);
  record.at_ms = row.integer(column++);
  record.generation = row.integer(column++);
  for (std::string* text :
       {&record.event, &record.pod_uid, &record.pod_namespace, &record.pod_name, &record.container}) {
    *text = row.text(column++);
  }
  record.attempt = row.integer(column++);
  record.container_id = row.text(column++);
  record.qos = row.text(column++);
  record.cpu_request_milli = row.integer(column++);
  record.memory_request_bytes = row.integer(column++);
  record.mode = mode_from(row.text(column++));
  for (CpuSet* set : {&record.cpus, &record.within, &record.withheld}) {
    if (Status parsed = parse_into(row.text(column++), *set); !parsed) return parsed.error();
  }
  if (Status parsed = parse_into(row.text(column++), record.mems); !parsed) return parsed.error();
  record.is_bounded = row.integer(column++) != 0;
  record.conflict = row.integer(column++) != 0;
  record.nodes = row.text(column++);
  record.reason = row.text(column++);
  record.memory_request_estimated = row.integer(column++) != 0;
  record.memory_limit_bytes = row.integer(column++);
  record.oom_score_adj = row.integer(column++);
  return record;
}

Result<Record> fetch(store::Statement& statement, std::int64_t decision) {
  if (Status bound = statement.bind(decision); !bound) return bound.error();
  const Result<bool> found = statement.next();
  if (!found) return found.error();
  if (!*found) return Error{Code::kNotFound, fmt::format("there is no decision {}", decision)};
  auto record = read(statement);
  statement.reset();
  return record;
}

/// Where a container that follows the pool runs in this one; empty if it does not follow it, or the pool has no CPU for
/// it: then it stays where it is.
CpuSet cpus_in(const PoolRecord& pool, const Record& record) {
  if (!record.follows_pool()) return {};
  if (record.mode == placement::Mode::kReserved && !pool.free_reserved) return {};
  return placement::shared_cpus(record.mode, record.within, pool.pool, pool.free_reserved.value_or(CpuSet()),
                                record.is_bounded);
}

}  // namespace

CpuSet State::cpus_of(const Record& record) const {
  if (!pool_) return record.cpus;
  CpuSet cpus = cpus_in(*pool_, record);
  return cpus.empty() ? record.cpus : cpus;
}

void State::set_pool(PoolRecord pool) {
  for (auto& [decision, record] : held_) {
    if (record.follows_pool()) record.cpus = cpus_of(record);
  }
  pool_ = std::move(pool);
}

CpuSet State::withheld_of(const Record& record) const {
  CpuSet withheld = record.withheld;
  if (withheld.empty() || !pool_) return withheld;
  withheld -= pool_->all();
  for (const auto& [decision, other] : held_) {
    if (decision > record.decision && other.mode == placement::Mode::kExclusive) withheld -= other.cpus;
  }
  return withheld;
}

void State::add(Record record) {
  const std::int64_t decision = record.decision;
  held_.insert_or_assign(decision, std::move(record));
}

Result<std::vector<std::int64_t>> History::held_at(std::int64_t at_ms) const {
  std::set<std::int64_t> numbers;
  const auto add = [&](const store::Statement& row) -> Status {
    numbers.insert(row.integer(0));
    return {};
  };
  Status read = for_each_row(
      database_, "SELECT decision FROM allocation CROSS JOIN decided USING (decision) WHERE decided.at_ms <= ?1", add,
      at_ms);
  if (!read) return read.error();
  // A lifetime of span n is shorter than 2^(n+1) ms: what was held then has ended within that.
  read = for_each_row(database_,
                      "WITH RECURSIVE spans(span) AS (SELECT 0 UNION ALL SELECT span + 1 FROM spans WHERE span < ?2) "
                      "SELECT decision FROM spans CROSS JOIN lifetime USING (span) "
                      "WHERE until_ms > ?1 AND until_ms <= ?1 + (2 << span) AND from_ms <= ?1",
                      add, at_ms, kLongestSpan);
  if (!read) return read.error();
  return std::vector<std::int64_t>(numbers.begin(), numbers.end());
}

Result<Record> History::decision(std::int64_t number) const {
  if (!find_decision_) {
    auto statement = database_.prepare(kDecision, kPurpose);
    if (!statement) return statement.error();
    find_decision_ = *std::move(statement);
  }
  return fetch(*find_decision_, number);
}

/// Where it was while the pool had CPUs for it, which is in the newest of the pools before `generation` that has.
Status History::find_last_cpus(std::int64_t generation, Record& record) const {
  while (true) {
    const auto pool = pool_before(database_, generation);
    if (!pool) return pool.error();
    if (!*pool || static_cast<std::int64_t>((*pool)->generation) <= record.generation) return {};
    CpuSet cpus = cpus_in(**pool, record);
    if (!cpus.empty()) {
      record.cpus = std::move(cpus);
      return {};
    }
    generation = static_cast<std::int64_t>((*pool)->generation);
  }
}

/// Shared containers keep nothing.
Status History::note_kept(std::int64_t at_ms, std::map<std::int64_t, Record>& held) const {
  auto find_kept = database_.prepare(kIsKept, kPurpose);
  if (!find_kept) return find_kept.error();
  for (auto& [decision, record] : held) {
    if (record.mode != placement::Mode::kExclusive) continue;
    if (Status bound = find_kept->bind(decision, at_ms); !bound) return bound;
    const Result<bool> found = find_kept->next();
    if (!found) return found.error();
    record.is_kept = *found && find_kept->integer(0) != 0;
    find_kept->reset();
  }
  return {};
}

Result<State> History::at(std::int64_t at_ms) const {
  const auto first = store::believable_pruned_until(database_, Clock().wall().count());
  if (!first) return first.error();
  if (at_ms < *first) {
    return Error{
        Code::kOutOfRange,
        fmt::format("what was held at {} is not known any more: what had ended before {} was deleted "
                    "(daemon.keep, daemon.keep-mib, topolet prune); ask for a later time",
                    rfc3339_ms(std::chrono::milliseconds(at_ms)), rfc3339_ms(std::chrono::milliseconds(*first)))};
  }
  const auto numbers = held_at(at_ms);
  if (!numbers) return numbers.error();
  auto pool = pool_at(database_, at_ms);
  if (!pool) return pool.error();
  std::map<std::int64_t, Record> held;
  for (const std::int64_t number : *numbers) {
    auto record = decision(number);
    if (!record) return record.error();
    if (*pool && record->follows_pool() && cpus_in(**pool, *record).empty()) {
      if (Status found = find_last_cpus(static_cast<std::int64_t>((*pool)->generation), *record); !found)
        return found.error();
    }
    held.emplace(number, *std::move(record));
  }
  if (Status noted = note_kept(at_ms, held); !noted) return noted.error();
  return State(std::move(held), *std::move(pool));
}

}  // namespace topolet::audit
