#include "store/store.hpp"

#include <fmt/format.h>

#include <utility>

#include "store/database.hpp"
#include "store/maps.hpp"
#include "store/schema.hpp"
#include "store/state_directory.hpp"
#include "store/statements.hpp"
#include "store/verdicts.hpp"

namespace topolet {
namespace {

Error holds_nothing(std::int64_t decision) {
  return {Code::kNotFound, fmt::format("decision {} holds nothing: it was never made or has ended", decision)};
}

/// NOT_FOUND from a foreign key says only that something is missing; this says what.
Status name_missing(Status status, std::int64_t decision) {
  if (status || status.error().code != Code::kNotFound) return status;
  return Error{Code::kNotFound, fmt::format("there is no decision {}: {}", decision, status.error().message)};
}

/// Reads the columns of a row from left to right; keeps the first error.
class RowReader {
 public:
  explicit RowReader(const Statement& row) : row_(row) {}

  std::int64_t integer() { return row_.integer(column_++); }
  std::string text() { return row_.text(column_++); }
  std::optional<std::int64_t> optional_integer() {
    const int column = column_++;
    if (row_.is_null(column)) return std::nullopt;
    return row_.integer(column);
  }
  template <class Set>
  Set set() {
    auto parsed = Set::parse(text());
    if (parsed) return *std::move(parsed);
    if (status_) status_ = Error{Code::kDataLoss, parsed.error().message};
    return {};
  }
  template <class Map>
  Map json() {
    const std::string written = text();
    auto map = decode_map<Map>(written);
    if (map) return *std::move(map);
    if (status_) status_ = Error{Code::kDataLoss, fmt::format("'{}' is not what was written there", written)};
    return {};
  }
  const Status& status() const { return status_; }

 private:
  const Statement& row_;
  int column_ = 0;
  Status status_;
};

Result<LiveRow> read_live(const Statement& row) {
  RowReader reader(row);
  LiveRow live;
  live.decision = reader.integer();
  live.state = reader.text();
  live.container_id = reader.text();
  live.pending_since_ms = reader.integer();
  live.cpus = reader.set<CpuSet>();
  DecidedRow& decided = live.decided;
  decided.at_ms = reader.integer();
  decided.generation = static_cast<std::uint64_t>(reader.integer());
  decided.event = reader.text();
  decided.supersedes = reader.optional_integer();
  decided.pod_uid = reader.text();
  decided.pod_namespace = reader.text();
  decided.pod_name = reader.text();
  decided.container = reader.text();
  decided.attempt = static_cast<std::uint32_t>(reader.integer());
  decided.sandbox_id = reader.text();
  decided.container_id = reader.text();
  decided.runtime_handler = reader.text();
  decided.qos = reader.text();
  decided.cpu_request_milli = reader.integer();
  decided.cpu_limit_milli = reader.integer();
  decided.memory_request_bytes = reader.integer();
  decided.memory_limit_bytes = reader.integer();
  decided.mode = reader.text();
  decided.cpus = reader.set<CpuSet>();
  decided.within = reader.set<CpuSet>();
  decided.withheld = reader.set<CpuSet>();
  decided.mems = reader.set<NodeSet>();
  decided.kubelet_cpus = reader.set<CpuSet>();
  decided.nodes = reader.text();
  decided.reason = reader.text();
  decided.memory_request_estimated = reader.integer() != 0;
  decided.hugepage_limit_bytes = reader.json<decltype(decided.hugepage_limit_bytes)>();
  decided.settings = reader.json<decltype(decided.settings)>();
  decided.kubelet_mems = reader.set<NodeSet>();
  if (!reader.status()) {
    return Error{Code::kDataLoss, fmt::format("decision {}: {}", live.decision, reader.status().error().message)};
  }
  return live;
}

Result<PodRow> read_pod(const Statement& row) {
  RowReader reader(row);
  PodRow pod;
  pod.sandbox_id = reader.text();
  pod.pod_uid = reader.text();
  pod.pod_namespace = reader.text();
  pod.pod_name = reader.text();
  pod.runtime_handler = reader.text();
  pod.nodes = reader.set<NodeSet>();
  if (!reader.status()) {
    return Error{Code::kDataLoss, fmt::format("pod {}: {}", pod.sandbox_id, reader.status().error().message)};
  }
  return pod;
}

template <class Row>
Result<std::vector<Row>> read_all(Statement& statement, Result<Row> (*read)(const Statement&)) {
  std::vector<Row> rows;
  statement.reset();
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
  SqliteStore(StateDirectory directory, Database database, Statements statements)
      : directory_(std::move(directory)), database_(std::move(database)), statements_(std::move(statements)) {}

  const OpenReport& report() const override { return report_; }
  void report_set_aside(std::filesystem::path path) { report_.set_aside = std::move(path); }

  Status begin_boot(const StoreOptions& options);

  Status begin() override;
  Status commit() override;
  void roll_back() override;

  Result<std::int64_t> add(const DecidedRow& row) override;
  Status add(const OutcomeRow& row) override;
  Status add(const EndedRow& row) override;
  Status set_live_cpus(std::int64_t decision, const CpuSet& cpus) override;
  Status count_repeat(std::int64_t decision, std::int64_t at_ms) override;
  Status add_pool(std::uint64_t generation, std::int64_t at_ms, const CpuSet& pool) override;
  Status put_pod(const PodRow& row) override;
  Status remove_pod(const std::string& sandbox_id) override;

  Result<std::vector<LiveRow>> live() override;
  Result<std::vector<PodRow>> pods() override;
  Result<std::uint64_t> last_generation() override;

 private:
  template <class Work>
  auto in_transaction(Work work) -> decltype(work());
  void undo();

  Status end_other_boots(std::int64_t now_ms);
  Result<std::int64_t> insert(const DecidedRow& row);
  Status hold(std::int64_t decision, const DecidedRow& row);
  Status hold_cpus(std::int64_t decision, const char* kind, const CpuSet& cpus);
  Status end(const EndedRow& row);
  Status update_live(const OutcomeRow& row);
  Status insert_pool(std::uint64_t generation, std::int64_t at_ms, const std::string& cpus);

  // The order matters: statements go before their connection, and the lock goes last.
  StateDirectory directory_;
  Database database_;
  Statements statements_;

  OpenReport report_;
  std::int64_t boot_ = 0;
  bool in_group_ = false;
  std::optional<Error> group_failure_;
};

/// Runs `work` in the open group or else in a transaction of its own. What fails is rolled back whole; SQLite itself
/// ends the transaction on some errors, so that what follows in a group must not run either.
template <class Work>
auto SqliteStore::in_transaction(Work work) -> decltype(work()) {
  if (group_failure_) return *group_failure_;
  if (!in_group_) {
    if (Status begun = statements_.begin.run(); !begun) return begun.error();
  }
  auto done = work();
  if (done && !in_group_) {
    if (Status committed = statements_.commit.run(); !committed) done = committed.error();
  }
  if (!done) {
    undo();
    if (in_group_) group_failure_ = done.error();
  }
  return done;
}

void SqliteStore::undo() {
  if (database_.in_transaction()) static_cast<void>(statements_.roll_back.run());
}

Status SqliteStore::begin() {
  if (in_group_) return Error{Code::kFailedPrecondition, "a group of writes is open already; commit it first"};
  Status begun = statements_.begin.run();
  in_group_ = begun.ok();
  return begun;
}

Status SqliteStore::commit() {
  if (!in_group_) return Error{Code::kFailedPrecondition, "no group of writes is open; begin one first"};
  in_group_ = false;
  if (group_failure_) return *std::exchange(group_failure_, std::nullopt);
  Status committed = statements_.commit.run();
  if (!committed) undo();
  return committed;
}

void SqliteStore::roll_back() {
  undo();
  in_group_ = false;
  group_failure_.reset();
}

Status SqliteStore::begin_boot(const StoreOptions& options) {
  return in_transaction([&]() -> Status {
    if (Status added = statements_.add_boot.run(options.boot_id, options.now_ms); !added) return added;
    const auto boot = statements_.find_boot.first_integer(options.boot_id);
    if (!boot) return boot.error();
    boot_ = boot->value_or(0);
    return end_other_boots(options.now_ms);
  });
}

Status SqliteStore::end_other_boots(std::int64_t now_ms) {
  const auto generation = last_generation();
  if (!generation) return generation.error();
  if (Status ended = statements_.end_other_boots.run(boot_, now_ms, *generation + 1); !ended) return ended;
  report_.ended_by_reboot = static_cast<std::uint32_t>(database_.changed_rows());
  if (Status let_go = statements_.forget_other_boots.run(boot_); !let_go) return let_go;
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
    if (Status held = hold(*decision, row); !held) return held.error();
    return decision;
  });
}

Result<std::int64_t> SqliteStore::insert(const DecidedRow& row) {
  std::optional<std::string> verdicts;
  if (row.verdicts) verdicts = encode_verdicts(*row.verdicts);
  Status added = statements_.add_decided.run(
      boot_, row.at_ms, row.generation, row.event, row.holds, row.supersedes, row.pod_uid, row.pod_namespace,
      row.pod_name, row.container, row.attempt, row.sandbox_id, row.container_id, row.runtime_handler, row.qos,
      row.cpu_request_milli, row.cpu_limit_milli, row.memory_request_bytes, row.memory_limit_bytes, row.mode,
      row.cpus.to_string(), row.within.to_string(), row.withheld.to_string(), row.mems.to_string(),
      row.kubelet_cpus.to_string(), row.nodes, row.reason, verdicts, row.memory_request_estimated,
      encode_map(row.hugepage_limit_bytes), encode_map(row.settings), row.kubelet_mems.to_string());
  if (!added) return added.error();
  return database_.last_row_number();
}

Status SqliteStore::hold(std::int64_t decision, const DecidedRow& row) {
  // Shared containers follow the pool; its versions say which CPUs that is.
  if (row.mode == "exclusive" || row.mode == "reserved") {
    if (Status held = hold_cpus(decision, row.mode.c_str(), row.cpus); !held) return held;
  }
  if (Status held = hold_cpus(decision, "withheld", row.withheld); !held) return held;
  return statements_.add_live.run(decision, row.container_id, row.cpus.to_string(), row.at_ms);
}

Status SqliteStore::hold_cpus(std::int64_t decision, const char* kind, const CpuSet& cpus) {
  for (auto cpu = cpus.begin(); cpu != cpus.end();) {
    const std::uint32_t first = *cpu;
    std::uint32_t last = first;
    while (++cpu != cpus.end() && *cpu == last + 1) ++last;
    if (Status added = statements_.add_held_cpu.run(decision, kind, first, last); !added) return added;
  }
  return {};
}

Status SqliteStore::end(const EndedRow& row) {
  if (Status removed = statements_.remove_live.run(row.decision); !removed) return removed;
  if (database_.changed_rows() == 0) return holds_nothing(row.decision);
  return statements_.add_ended.run(row.decision, row.at_ms, row.generation, row.cause);
}

Status SqliteStore::add(const EndedRow& row) {
  return in_transaction([&] { return end(row); });
}

Status SqliteStore::add(const OutcomeRow& row) {
  return in_transaction([&]() -> Status {
    Status added =
        statements_.add_outcome.run(row.decision, row.at_ms, row.state, row.container_id, row.code, row.message);
    if (!added) return name_missing(std::move(added), row.decision);
    return update_live(row);
  });
}

Status SqliteStore::update_live(const OutcomeRow& row) {
  if (row.state == "bound") return statements_.set_live_bound.run(row.decision, row.state, row.container_id);
  if (row.state == "in_doubt" || row.state == "crashed")
    return statements_.set_live_pending.run(row.decision, row.state, row.at_ms);
  return statements_.set_live_state.run(row.decision, row.state);
}

Status SqliteStore::set_live_cpus(std::int64_t decision, const CpuSet& cpus) {
  return in_transaction([&]() -> Status {
    if (Status set = statements_.set_live_cpus.run(decision, cpus.to_string()); !set) return set;
    return database_.changed_rows() == 0 ? Status(holds_nothing(decision)) : Status();
  });
}

Status SqliteStore::count_repeat(std::int64_t decision, std::int64_t at_ms) {
  return in_transaction([&] { return name_missing(statements_.add_repeat.run(decision, at_ms), decision); });
}

Status SqliteStore::add_pool(std::uint64_t generation, std::int64_t at_ms, const CpuSet& pool) {
  return in_transaction([&] { return insert_pool(generation, at_ms, pool.to_string()); });
}

Status SqliteStore::insert_pool(std::uint64_t generation, std::int64_t at_ms, const std::string& cpus) {
  const auto known = statements_.find_pool.first_text(generation);
  if (!known) return known.error();
  if (!*known) return statements_.add_pool.run(generation, boot_, at_ms, cpus);
  if (**known == cpus) return {};
  return Error{Code::kAlreadyExists,
               fmt::format("generation {} has the pool '{}' already; '{}' needs a generation of its own", generation,
                           **known, cpus)};
}

Status SqliteStore::put_pod(const PodRow& row) {
  return in_transaction([&] {
    return statements_.put_pod.run(row.sandbox_id, boot_, row.pod_uid, row.pod_namespace, row.pod_name,
                                   row.runtime_handler, row.nodes.to_string());
  });
}

Status SqliteStore::remove_pod(const std::string& sandbox_id) {
  return in_transaction([&] { return statements_.remove_pod.run(sandbox_id); });
}

Result<std::vector<LiveRow>> SqliteStore::live() { return read_all<LiveRow>(statements_.find_live, read_live); }

Result<std::vector<PodRow>> SqliteStore::pods() { return read_all<PodRow>(statements_.find_pods, read_pod); }

Result<std::uint64_t> SqliteStore::last_generation() {
  const auto generation = statements_.find_last_generation.first_integer();
  if (!generation) return generation.error();
  return static_cast<std::uint64_t>(generation->value_or(0));
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
  return database.execute("PRAGMA foreign_keys = ON; PRAGMA synchronous = " + synchronous, "set the pragmas");
}

Result<Statements> prepare_statements(const Database& database) {
  auto statements = Statements::prepare(database);
  if (statements || statements.error().code != Code::kInternal) return statements;
  return Error{Code::kDataLoss, "tables are missing: " + statements.error().message};
}

struct Opened {
  Database database;
  Statements statements;
};

Result<Opened> open_database(const StateDirectory& directory, Durability durability) {
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
  static_cast<void>(database->execute("PRAGMA wal_checkpoint(PASSIVE)", "fold the log into the file"));
  return Opened{*std::move(database), *std::move(statements)};
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
  if (Status begun = store->begin_boot(options); !begun) return begun.error();
  return std::unique_ptr<Store>(std::move(store));
}

}  // namespace topolet
