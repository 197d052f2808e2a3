#include "store/store.hpp"

#include <fmt/format.h>

#include <map>
#include <string_view>
#include <utility>

#include "core/base/mutex.hpp"
#include "store/backfill.hpp"
#include "store/database.hpp"
#include "store/json_maps.hpp"
#include "store/log_folder.hpp"
#include "store/schema.hpp"
#include "store/setup_tables.hpp"
#include "store/state_directory.hpp"
#include "store/statements.hpp"

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

class SqliteStore final : public Store {
 public:
  /// `directory`: none where the database is in memory.
  SqliteStore(std::optional<StateDirectory> directory, Database database, Statements statements)
      : directory_(std::move(directory)), database_(std::move(database)), statements_(std::move(statements)) {}

  const OpenReport& report() const override { return report_; }
  void report_set_aside(std::filesystem::path path) { report_.set_aside = std::move(path); }
  void fold_log_beside() { folder_ = LogFolder::start(database_); }

  Status begin_boot(const std::string& boot_id, std::int64_t now_ms);
  void detect_lost_generations(const std::string& boot_id);

  Status begin() override;
  Status commit() override;
  void roll_back() override;
  Status savepoint(const std::function<Status()>& work) override;

  Result<std::int64_t> add(const DecidedRow& row) override;
  Status add(const OutcomeRow& row) override;
  Status add(const EndedRow& row) override;
  Status put_allocation(std::int64_t decision, const Columns& columns) override;
  Status update_allocation(std::int64_t decision, const Columns& columns) override;
  Status count_repeat(std::int64_t decision, std::int64_t at_ms) override;
  Status add(const PoolRow& row) override;
  Status add(const TopologyRow& row) override;
  Status add(const SetupRow& row) override;
  Status set_generation(std::uint64_t generation) override;
  Status put_pod(const Columns& columns) override;
  Status remove_pod(const std::string& sandbox_id) override;

  Result<std::vector<AllocationRow>> allocations() override;
  Result<std::vector<PodRow>> pods() override;
  Result<std::uint64_t> last_generation() override;
  Result<std::int64_t> last_decision() override;
  Result<std::int64_t> last_setup() override;
  Result<bool> backfill(std::int64_t rows) override;
  void write_generation_file(std::uint64_t generation) override;

 private:
  template <class Work>
  auto in_transaction(Work work) -> decltype(work());
  void undo();
  Error fail_transaction(const Error& error);

  Status end_other_boots(std::int64_t now_ms);
  Result<std::int64_t> insert(const DecidedRow& row);
  Status add_held_cpus(std::int64_t decision, const DecidedRow& row);
  Status add_cpu_intervals(std::int64_t decision, const char* kind, const CpuSet& cpus);
  Status end(const EndedRow& row);
  template <class MakeSql>
  Result<Statement*> statement_for_columns(const char* head, const Columns& columns, const char* purpose,
                                           MakeSql make_sql);

  // The order matters: statements go before their connection, which folds what is left of the log as the last one, and
  // the lock goes last.
  std::optional<StateDirectory> directory_;
  Database database_;
  std::unique_ptr<LogFolder> folder_;
  Statements statements_;

  OpenReport report_;
  std::int64_t boot_ = 0;
  /// By what they do and the columns that they write.
  std::map<std::string, Statement> statements_by_columns_;
  std::string boot_id_;
  Mutex generation_file_mutex_;
  std::uint64_t generation_in_file_ TOPOLET_GUARDED_BY(generation_file_mutex_) = 0;
  bool transaction_open_ = false;
  bool in_savepoint_ = false;
  std::optional<Error> transaction_failure_;
};

/// Runs `work` in the open transaction or else in a transaction of its own. What fails is rolled back whole; SQLite
/// itself ends the transaction on some errors, so that what follows in an open one must not run either.
template <class Work>
auto SqliteStore::in_transaction(Work work) -> decltype(work()) {
  if (transaction_failure_) return *transaction_failure_;
  if (!transaction_open_) {
    if (Status begun = statements_.begin.run(); !begun) return begun.error();
  }
  auto done = work();
  if (done && !transaction_open_) {
    if (Status committed = statements_.commit.run(); !committed) done = committed.error();
  }
  // What fails in a savepoint is undone with it, if its transaction is still there.
  if (!done && !(in_savepoint_ && database_.in_transaction())) {
    undo();
    if (transaction_open_) transaction_failure_ = done.error();
  }
  return done;
}

void SqliteStore::undo() {
  if (database_.in_transaction()) static_cast<void>(statements_.roll_back.run());
}

Status SqliteStore::begin() {
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

Status SqliteStore::begin_boot(const std::string& boot_id, std::int64_t now_ms) {
  return in_transaction([&]() -> Status {
    if (Status added = statements_.add_boot.run(boot_id, now_ms); !added) return added;
    const auto boot = statements_.find_boot.first_integer(boot_id);
    if (!boot) return boot.error();
    boot_ = boot->value_or(0);
    boot_id_ = boot_id;
    return end_other_boots(now_ms);
  });
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
      row.caused_by, row.setup, row.phases, row.conflict);
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

Result<std::vector<AllocationRow>> SqliteStore::allocations() {
  return read_all<AllocationRow>(statements_.find_allocations, read_allocation);
}

Result<std::vector<PodRow>> SqliteStore::pods() { return read_all<PodRow>(statements_.find_pods, read_pod); }

Result<std::uint64_t> SqliteStore::last_generation() {
  const auto generation = statements_.find_last_generation.first_integer();
  if (!generation) return generation.error();
  return static_cast<std::uint64_t>(generation->value_or(0));
}

Result<std::int64_t> SqliteStore::last_decision() {
  const auto decision = statements_.find_last_decision.first_integer();
  if (!decision) return decision.error();
  return decision->value_or(0);
}

Result<std::int64_t> SqliteStore::last_setup() {
  const auto setup = statements_.find_last_setup.first_integer();
  if (!setup) return setup.error();
  return setup->value_or(0);
}

Result<bool> SqliteStore::backfill(std::int64_t rows) {
  // Nothing is locked where there is nothing to do.
  const auto missing = database_.integer("SELECT count(*) FROM backfill", "read what is complete");
  if (!missing) return missing.error();
  if (*missing == 0) return false;
  return in_transaction([&] { return backfill_slice(database_, rows); });
}

void SqliteStore::write_generation_file(std::uint64_t generation) {
  if (!directory_) return;
  MutexLock lock(generation_file_mutex_);
  if (generation <= generation_in_file_) return;
  generation_in_file_ = generation;
  directory_->write_generation_file(boot_id_, generation);
}

/// After a power cut the newest writes may be missing with good reason: only the same boot tells.
void SqliteStore::detect_lost_generations(const std::string& boot_id) {
  const auto written = directory_->read_generation_file(boot_id);
  const auto there = last_generation();
  if (written && there && *written > *there) report_.newest_lost_generation = *written;
}

Status set_up(Database& database, Durability durability) {
  const std::string synchronous = durability == Durability::kFull ? "FULL" : "NORMAL";
  const auto journal = database.text("PRAGMA journal_mode = WAL", "switch to a write-ahead log");
  if (!journal) return journal.error();
  if (*journal != "wal") {
    return Error{Code::kUnavailable, fmt::format("'{}' cannot have a write-ahead log, as SQLite needs shared memory "
                                                 "beside it; put state-dir on a local file system",
                                                 database.path())};
  }
  // What a savepoint may have to undo would otherwise go to a file of its own when it is large. A log that grew long
  // once is cut when it begins anew.
  constexpr int kLogBytesKept = 8 << 20;
  return database.execute(
      fmt::format("PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY; PRAGMA journal_size_limit = "
                  "{}; PRAGMA synchronous = {}",
                  kLogBytesKept, synchronous),
      "set the pragmas");
}

Result<Statements> prepare_statements(const Database& database) {
  auto statements = Statements::prepare(database);
  if (statements || statements.error().code != Code::kInternal) return statements;
  return Error{Code::kDataLoss, "tables are missing: " + statements.error().message};
}

struct OpenedDatabase {
  Database database;
  Statements statements;
};

Result<OpenedDatabase> open_database(const StateDirectory& directory, Durability durability) {
  if (Status prepared = directory.prepare_database(); !prepared) return prepared.error();
  auto database = Database::open(directory.database(), Database::Access::kReadWrite);
  if (!database) return database.error();
  // A file that is refused or set aside stays as it was found.
  database->leave_untouched_at_close(true);
  if (Status writable = check_writable(*database); !writable) return writable.error();
  if (Status set = set_up(*database, durability); !set) return set.error();
  if (Status migrated = migrate(*database); !migrated) return migrated.error();
  auto statements = prepare_statements(*database);
  if (!statements) return statements.error();
  database->leave_untouched_at_close(false);
  // Lets `immutable` readers, who never look into the log, see what there is. Failing costs nothing.
  database->fold_log();
  return OpenedDatabase{*std::move(database), *std::move(statements)};
}

}  // namespace

Result<std::unique_ptr<Store>> Store::open(const StoreOptions& options) {
  auto directory = StateDirectory::claim(options.directory);
  if (!directory) return directory.error();
  std::filesystem::path set_aside;
  auto opened = open_database(*directory, options.durability);
  if (!opened && opened.error().code == Code::kDataLoss) {
    auto moved = directory->set_database_aside(options.now_ms);
    if (!moved) return moved.error();
    set_aside = *std::move(moved);
    opened = open_database(*directory, options.durability);
  }
  if (!opened) return opened.error();
  auto store =
      std::make_unique<SqliteStore>(*std::move(directory), std::move(opened->database), std::move(opened->statements));
  store->report_set_aside(std::move(set_aside));
  store->detect_lost_generations(options.boot_id);
  store->fold_log_beside();
  if (Status begun = store->begin_boot(options.boot_id, options.now_ms); !begun) return begun.error();
  return std::unique_ptr<Store>(std::move(store));
}

Result<std::unique_ptr<Store>> Store::open_in_memory(const std::string& boot_id, std::int64_t now_ms) {
  auto database = Database::open_in_memory();
  if (!database) return database.error();
  if (Status set = database->execute("PRAGMA foreign_keys = ON", "set the pragmas"); !set) return set.error();
  if (Status migrated = migrate(*database); !migrated) return migrated.error();
  auto statements = prepare_statements(*database);
  if (!statements) return statements.error();
  auto store = std::make_unique<SqliteStore>(std::nullopt, *std::move(database), *std::move(statements));
  if (Status begun = store->begin_boot(boot_id, now_ms); !begun) return begun.error();
  return std::unique_ptr<Store>(std::move(store));
}

}  // namespace topolet::store
