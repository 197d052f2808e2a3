#include "store/store.hpp"

#include <fmt/format.h>

#include <map>
#include <string_view>
#include <utility>

#include "store/backfill.hpp"
#include "store/json_maps.hpp"
#include "store/retention.hpp"
#include "store/setup_tables.hpp"
#include "store/sqlite_store.hpp"

namespace topolet::store {
namespace {

Error no_allocation_error(std::int64_t decision) {
  return {Code::kNotFound, fmt::format("decision {} has no allocation: it was never made or has ended", decision)};
}

/// NOT_FOUND from a foreign key says only that something is missing; this says what.
Status explain_missing_decision(Status status, std::int64_t decision) {
  if (status || status.error().code != Code::kNotFound) return status;
  return Error{Code::kNotFound, fmt::format("there is no decision {}: {}", decision, status.error().message)};
}

/// All columns of a row but those in `without`, by name.
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

/// The number is the first column.
Result<AllocationRow> read_allocation(const Statement& row) {
  return AllocationRow{row.integer(0), columns_of(row, "decision")};
}

Result<PodRow> read_pod(const Statement& row) { return columns_of(row, "boot"); }

/// The node is the first column.
Result<CapacityRow> read_capacity(const Statement& row) {
  if (!std::in_range<std::uint32_t>(row.integer(0)))
    return Error{Code::kDataLoss, fmt::format("told_capacity: {} is no NUMA node", row.integer(0))};
  return CapacityRow{static_cast<std::uint32_t>(row.integer(0)), columns_of(row, "node")};
}

/// By time where there is an index of that; of the others only those that were repeated.
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

std::string names_of(const Columns& columns) {
  std::string names;
  for (const auto& [name, value] : columns) names += ", " + name;
  return names;
}

/// The first parameter is the key, those of the columns follow in their order.
std::string insert_or_replace(const char* table, const char* key, const Columns& columns) {
  std::string marks;
  for (std::size_t i = 0; i < columns.size(); ++i) marks += ", ?";
  return fmt::format("INSERT OR REPLACE INTO {} ({}{}) VALUES (?{})", table, key, names_of(columns), marks);
}

std::string update(const char* table, const char* key, const Columns& columns) {
  std::string sets;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    sets += fmt::format("{}{} = ?{}", i == 0 ? "" : ", ", columns[i].first, i + 2);
  }
  return fmt::format("UPDATE {} SET {} WHERE {} = ?1", table, sets, key);
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

void SqliteStore::undo() {
  if (database_.in_transaction()) static_cast<void>(statements_.roll_back.run());
}

Status SqliteStore::begin() {
  if (detached_) return *detached_;
  if (transaction_open_) return Error{Code::kFailedPrecondition, "a transaction is open already; commit it first"};
  Status begun = statements_.begin.run();
  transaction_open_ = begun.has_value();
  return begun;
}

Status SqliteStore::commit() {
  if (!transaction_open_) return Error{Code::kFailedPrecondition, "no transaction is open; begin one first"};
  transaction_open_ = false;
  if (transaction_failure_) return *std::exchange(transaction_failure_, std::nullopt);
  Status committed = statements_.commit.run();
  if (!committed) undo();
  return committed;
}

void SqliteStore::roll_back() {
  undo();
  transaction_open_ = false;
  transaction_failure_.reset();
}

Status SqliteStore::savepoint(const std::function<Status()>& work) {
  if (!transaction_open_) {
    return Error{Code::kFailedPrecondition, "a savepoint needs an open transaction; begin one first"};
  }
  if (transaction_failure_) return *transaction_failure_;
  if (Status begun = statements_.begin_savepoint.run(); !begun) return begun;
  in_savepoint_ = true;
  Status done = work();
  in_savepoint_ = false;
  // SQLite itself has ended all of it, as it does when the disk is full.
  if (transaction_failure_) return *transaction_failure_;
  if (!done) {
    if (Status undone = statements_.roll_back_savepoint.run(); !undone) return fail_transaction(undone.error());
  }
  if (Status ended = statements_.release_savepoint.run(); !ended) return fail_transaction(ended.error());
  return done;
}

Error SqliteStore::fail_transaction(const Error& error) {
  undo();
  transaction_failure_ = error;
  return error;
}

Status SqliteStore::skip_decisions(std::int64_t last) {
  return in_transaction([&]() -> Status {
    const std::string purpose = "set the number of the next decision";
    auto update = database_.prepare("UPDATE sqlite_sequence SET seq = max(seq, ?1) WHERE name = 'decided'", purpose);
    if (!update) return update.error();
    if (Status updated = update->run(last); !updated || database_.changed_rows() > 0) return updated;
    auto insert = database_.prepare("INSERT INTO sqlite_sequence (name, seq) VALUES ('decided', ?1)", purpose);
    return insert ? insert->run(last) : Status(insert.error());
  });
}

void SqliteStore::use(OpenedDatabase opened) {
  database_ = std::move(opened.database);
  statements_ = std::move(opened.statements);
}

void SqliteStore::close_file() {
  integrity_check_.reset();
  folder_.reset();
  statements_by_columns_.clear();
  statements_ = {};
  database_ = {};
  transaction_open_ = false;
  transaction_failure_.reset();
}

Result<std::int64_t> SqliteStore::add(const DecidedRow& row) {
  return in_transaction([&]() -> Result<std::int64_t> {
    if (row.supersedes) {
      Status ended = end({*row.supersedes, row.at_ms, row.generation, "superseded"});
      if (!ended) return ended.error();
    }
    auto decision = insert(row);
    if (!decision || !row.holds) return decision;
    if (Status held = add_held_cpus(*decision, row); !held) return held.error();
    return decision;
  });
}

Result<std::int64_t> SqliteStore::insert(const DecidedRow& row) {
  const std::optional<std::int64_t> number = row.decision == 0 ? std::nullopt : std::optional(row.decision);
  Status added = statements_.add_decided.run(
      number, boot_, row.at_ms, row.generation, row.event, row.holds, row.supersedes, row.pod_uid, row.pod_namespace,
      row.pod_name, row.container, row.attempt, row.sandbox_id, row.container_id, row.runtime_handler, row.qos,
      row.cpu_request_milli, row.cpu_limit_milli, row.memory_request_bytes, row.memory_limit_bytes, row.mode,
      row.cpus.to_string(), row.within.to_string(), row.withheld.to_string(), row.mems.to_string(),
      row.kubelet_cpus.to_string(), row.nodes, row.reason, row.verdicts, row.memory_request_estimated,
      encode_map(row.hugepage_limit_bytes), encode_map(row.settings), row.kubelet_mems.to_string(), row.reason_code,
      row.caused_by, row.setup, row.phases, row.conflict, row.devices, row.cpu_request_certainty, row.oom_score_adj);
  if (!added) return added.error();
  return database_.last_row_number();
}

Status SqliteStore::add_held_cpus(std::int64_t decision, const DecidedRow& row) {
  // Shared containers follow the pool; its versions say which CPUs that is.
  if (row.mode == "exclusive" || row.mode == "reserved") {
    if (Status held = add_cpu_intervals(decision, row.mode.c_str(), row.cpus); !held) return held;
  }
  return add_cpu_intervals(decision, "withheld", row.withheld);
}

Status SqliteStore::add_cpu_intervals(std::int64_t decision, const char* kind, const CpuSet& cpus) {
  for (auto cpu = cpus.begin(); cpu != cpus.end();) {
    const std::uint32_t first = *cpu;
    std::uint32_t last = first;
    while (++cpu != cpus.end() && *cpu == last + 1) ++last;
    if (Status added = statements_.add_held_cpu.run(decision, kind, first, last); !added) return added;
  }
  return {};
}

Status SqliteStore::end(const EndedRow& row) {
  if (Status removed = statements_.remove_allocation.run(row.decision); !removed) return removed;
  if (database_.changed_rows() == 0) return no_allocation_error(row.decision);
  if (Status added = statements_.add_ended.run(row.decision, row.at_ms, row.generation, row.cause); !added)
    return added;
  const auto from = statements_.find_decided_time.first_integer(row.decision);
  if (!from) return from.error();
  const std::int64_t from_ms = from->value_or(row.at_ms);
  return statements_.add_lifetime.run(span_of(from_ms, row.at_ms), row.at_ms, row.decision, from_ms);
}

Status SqliteStore::end_other_boots(std::int64_t now_ms) {
  const auto generation = last_generation();
  if (!generation) return generation.error();
  const auto others = read_all<std::int64_t>(
      statements_.find_other_boots, [](const Statement& row) { return Result<std::int64_t>(row.integer(0)); }, boot_);
  if (!others) return others.error();
  for (const std::int64_t decision : *others) {
    if (Status ended = end({decision, now_ms, *generation + 1, "reboot"}); !ended) return ended;
  }
  report_.ended_by_reboot = static_cast<std::uint32_t>(others->size());
  if (!others->empty()) {
    if (Status noted = statements_.set_generation.run(boot_, *generation + 1); !noted) return noted;
  }
  return statements_.forget_other_pods.run(boot_);
}

Status SqliteStore::add(const EndedRow& row) {
  return in_transaction([&] { return end(row); });
}

Status SqliteStore::add(const OutcomeRow& row) {
  return in_transaction([&] {
    Status added = statements_.add_outcome.run(row.decision, row.at_ms, row.state, row.container_id, row.code,
                                               row.message, row.phases);
    return explain_missing_decision(std::move(added), row.decision);
  });
}

/// The statement that writes just these columns, prepared when they are written for the first time.
template <class MakeSql>
Result<Statement*> SqliteStore::statement_for_columns(const char* head, const Columns& columns, const char* purpose,
                                                      MakeSql make_sql) {
  std::string key = head;
  for (const auto& [name, value] : columns) key.append(1, ' ').append(name);
  const auto known = statements_by_columns_.find(key);
  if (known != statements_by_columns_.end()) return &known->second;
  auto statement = database_.prepare(make_sql(), purpose);
  if (!statement) return statement.error();
  return &statements_by_columns_.emplace(std::move(key), *std::move(statement)).first->second;
}

Status SqliteStore::put_allocation(std::int64_t decision, const Columns& columns) {
  return in_transaction([&]() -> Status {
    const auto statement = statement_for_columns("put live", columns, "record an allocation",
                                                 [&] { return insert_or_replace("allocation", "decision", columns); });
    if (!statement) return statement.error();
    return explain_missing_decision((*statement)->run_columns(decision, columns), decision);
  });
}

Status SqliteStore::update_allocation(std::int64_t decision, const Columns& columns) {
  return in_transaction([&]() -> Status {
    const auto statement = statement_for_columns("update live", columns, "change an allocation",
                                                 [&] { return update("allocation", "decision", columns); });
    if (!statement) return statement.error();
    if (Status set = (*statement)->run_columns(decision, columns); !set) return set;
    return database_.changed_rows() == 0 ? Status(no_allocation_error(decision)) : Status();
  });
}

Status SqliteStore::count_repeat(std::int64_t decision, std::int64_t at_ms) {
  return in_transaction(
      [&] { return explain_missing_decision(statements_.add_repeat.run(decision, at_ms), decision); });
}

Status SqliteStore::add(const PoolRow& row) {
  return in_transaction([&]() -> Status {
    const std::string cpus = row.pool.to_string();
    const auto known = statements_.find_pool.first_text(row.generation);
    if (!known) return known.error();
    if (!*known) {
      return statements_.add_pool.run(row.generation, boot_, row.at_ms, cpus, row.free_reserved.to_string(),
                                      row.free_isolated.to_string(), row.caused_by, row.cause);
    }
    if (**known == cpus) return {};
    return Error{Code::kAlreadyExists,
                 fmt::format("generation {} has the pool '{}' already; '{}' needs a generation of its own",
                             row.generation, **known, cpus)};
  });
}

Status SqliteStore::add(const TopologyRow& row) {
  return in_transaction([&] { return add_topology(database_, boot_, row); });
}

Status SqliteStore::add(const SetupRow& row) {
  return in_transaction([&] { return add_setup(database_, boot_, row); });
}

Status SqliteStore::set_generation(std::uint64_t generation) {
  return in_transaction([&] { return statements_.set_generation.run(boot_, generation); });
}

Status SqliteStore::put_pod(const Columns& columns) {
  return in_transaction([&]() -> Status {
    const auto statement = statement_for_columns("put pod", columns, "record a pod",
                                                 [&] { return insert_or_replace("pod", "boot", columns); });
    if (!statement) return statement.error();
    return (*statement)->run_columns(boot_, columns);
  });
}

Status SqliteStore::remove_pod(const std::string& sandbox_id) {
  return in_transaction([&] { return statements_.remove_pod.run(sandbox_id); });
}

Status SqliteStore::put_capacity(std::uint32_t node, const Columns& columns) {
  return in_transaction([&]() -> Status {
    const auto statement = statement_for_columns("put capacity", columns, "record a told capacity",
                                                 [&] { return insert_or_replace("told_capacity", "node", columns); });
    if (!statement) return statement.error();
    return (*statement)->run_columns(node, columns);
  });
}

Status SqliteStore::remove_capacity(std::uint32_t node) {
  return in_transaction([&]() -> Status {
    auto statement = database_.prepare("DELETE FROM told_capacity WHERE node = ?1", "forget a told capacity");
    return statement ? statement->run(node) : Status(statement.error());
  });
}

Result<std::vector<AllocationRow>> SqliteStore::allocations() {
  if (is_of_another_boot_) return std::vector<AllocationRow>();
  return read_all<AllocationRow>(statements_.find_allocations, read_allocation);
}

Result<std::vector<PodRow>> SqliteStore::pods() {
  if (is_of_another_boot_) return std::vector<PodRow>();
  return read_all<PodRow>(statements_.find_pods, read_pod);
}

/// A file of an older version that cannot be brought forward now, as its disk is full, has no such table.
Result<std::vector<CapacityRow>> SqliteStore::capacities() {
  constexpr const char* kPurpose = "read the told capacities";
  const auto has_table =
      database_.integer("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'told_capacity'", kPurpose);
  if (!has_table) return has_table.error();
  if (*has_table == 0) return std::vector<CapacityRow>();
  auto statement = database_.prepare("SELECT * FROM told_capacity ORDER BY node", kPurpose);
  if (!statement) return statement.error();
  return read_all<CapacityRow>(*statement, read_capacity);
}

Result<std::uint64_t> SqliteStore::last_generation() {
  const auto generation = statements_.find_last_generation.first_integer();
  if (!generation) return generation.error();
  // As if what the other boot held had ended.
  return static_cast<std::uint64_t>(generation->value_or(0)) + (is_of_another_boot_ ? 1 : 0);
}

Result<std::int64_t> SqliteStore::last_decision() {
  const auto decision = statements_.find_last_decision.first_integer();
  if (!decision) return decision.error();
  return decision->value_or(0);
}

Result<std::string> SqliteStore::last_reason_code(const std::string& event) {
  constexpr const char* kRead = "read what was told last";
  auto statement = database_.prepare(
      "SELECT reason_code FROM decided WHERE pod_uid = '' AND container = '' AND event = ?1 ORDER BY decision DESC "
      "LIMIT 1",
      kRead);
  if (!statement) return statement.error();
  const auto code = statement->first_text(event);
  if (!code) return code.error();
  return code->value_or("");
}

Result<std::vector<DenialRow>> SqliteStore::recent_denials(std::int64_t since_ms) {
  auto statement = database_.prepare(kRecentDenials, "read who was denied of late");
  if (!statement) return statement.error();
  return read_all<DenialRow>(*statement, read_denial, since_ms);
}

Result<std::int64_t> SqliteStore::last_setup() {
  const auto setup = statements_.find_last_setup.first_integer();
  if (!setup) return setup.error();
  return setup->value_or(0);
}

/// A look costs some reads of pages that are in memory.
Status SqliteStore::look_at_figures(const Moment& now) {
  constexpr std::chrono::seconds kEvery{5};
  if (!directory_ || (figures_of_ && now.steady - *figures_of_ < kEvery)) return {};
  const auto size = size_of(database_);
  if (!size) return size.error();
  auto statement = database_.prepare("SELECT at_ms FROM decided ORDER BY at_ms LIMIT 1", "read what is kept");
  if (!statement) return statement.error();
  const auto oldest = statement->first_integer();
  if (!oldest) return oldest.error();
  figures_of_ = now.steady;
  MutexLock lock(figures_mutex_);
  figures_ = StoreFigures{size->used_bytes + size->free_bytes + size->log_bytes, *oldest};
  return {};
}

// Nothing is locked where there is nothing to do.
Result<Upkeep> SqliteStore::do_upkeep(const Moment& now, std::int64_t rows) {
  if (detached_) return *detached_;
  if (const Status looked = look_at_figures(now); !looked) return looked.error();
  const auto missing = database_.integer("SELECT count(*) FROM backfill", "read what is complete");
  if (!missing) return missing.error();
  if (*missing > 0) {
    const auto more = in_transaction([&] { return backfill_slice(database_, rows); });
    if (!more) return more.error();
    return Upkeep{.has_more = true, .rows = rows};
  }
  const auto step = retention_.next_step(database_, now);
  if (!step) return step.error();
  if (!step->rows.empty()) {
    const Status written = in_transaction([&] { return Retention::write_rows(database_, *step); });
    if (!written) return written.error();
  }
  if (step->looks_again) return Upkeep{.has_more = true, .notices = step->notices};
  if (const std::int64_t mark = step->mark_ms; mark > 0) {
    const auto deleted = in_transaction([&] { return prune_slice(database_, mark, rows); });
    if (!deleted) return deleted.error();
    retention_.on_pruned(*deleted);
    return Upkeep{.has_more = true,
                  .rows = *deleted,
                  .deleted = *deleted,
                  .deleted_until_ms = *deleted > 0 ? mark : 0,
                  .notices = step->notices};
  }
  const auto shrunk = shrink_slice(database_);
  if (!shrunk) return shrunk.error();
  return Upkeep{.has_more = *shrunk, .notices = step->notices};
}

void SqliteStore::write_generation_file(std::uint64_t generation) {
  MutexLock lock(generation_file_mutex_);
  if (!directory_ || generation <= generation_in_file_) return;
  generation_in_file_ = generation;
  directory_->write_generation_file(options_.boot_id, generation);
}

}  // namespace topolet::store
