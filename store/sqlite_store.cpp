#include "store/sqlite_store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "store/json_maps.hpp"
#include "store/read_rows.hpp"
#include "store/schema.hpp"
#include "store/setup_tables.hpp"

namespace topolet::store {
namespace {

/// The power of two below the length of a lifetime in milliseconds: the column `span` of `lifetime`.
std::int64_t span_of(std::int64_t from_ms, std::int64_t until_ms) {
  return std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(1, until_ms - from_ms))) - 1;
}

/// The name in the table `allocation_row` of a column of the view `allocation`, which may show the row `whole_pool` in
/// its place.
std::string own_name(const std::string& column) {
  const bool may_be_shared = column == "cpus" || column == "vacating" || column == "generation";
  return may_be_shared ? "own_" + column : column;
}

Error no_allocation_error(std::int64_t decision) {
  return {Code::kNotFound, fmt::format("decision {} has no allocation: it was never made or has ended", decision)};
}

/// NOT_FOUND from a foreign key says only that something is missing; this says what.
Status explain_missing_decision(Status status, std::int64_t decision) {
  if (status || status.error().code != Code::kNotFound) return status;
  return Error{Code::kNotFound, fmt::format("there is no decision {}: {}", decision, status.error().message)};
}

}  // namespace

Status SqliteStore::begin() { return detached_ ? Status(*detached_) : transactions_.begin(); }

Status SqliteStore::commit() { return transactions_.commit(); }

void SqliteStore::roll_back() { transactions_.roll_back(); }

Status SqliteStore::savepoint(const std::function<Status()>& work) { return transactions_.savepoint(work); }

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

Result<std::int64_t> SqliteStore::add(const DecidedRow& row) {
  return in_transaction([&]() -> Result<std::int64_t> {
    if (row.supersedes) {
      Status ended = end({*row.supersedes, row.at_ms, row.generation, "superseded"});
      if (!ended) return ended.error();
    }
    auto decision = insert(row);
    if (!decision) return decision;
    if (Status added = add_load(*decision, row); !added) return added.error();
    if (!row.holds) return decision;
    for (const HeldCpus& held : row.held_cpus) {
      if (Status added = add_held_cpus(*decision, held); !added) return added.error();
    }
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
      row.caused_by, row.setup, row.phases, row.conflict, row.devices, row.cpu_request_certainty, row.oom_score_adj,
      encode_map(row.tags), row.memory_cost);
  if (!added) return added.error();
  return database_.last_row_number();
}

/// Decisions that follow each other may be made by the same measurements.
Status SqliteStore::add_load(std::int64_t decision, const DecidedRow& row) {
  if (row.load.empty()) return {};
  if (Status added = statements_.add_load_sample.run(row.at_ms, row.load); !added) return added;
  return statements_.add_decided_load.run(decision);
}

/// Adds a row for each interval of the CPUs.
Status SqliteStore::add_held_cpus(std::int64_t decision, const HeldCpus& held) {
  const CpuSet& cpus = held.cpus;
  for (auto cpu = cpus.begin(); cpu != cpus.end();) {
    const std::uint32_t first = *cpu;
    std::uint32_t last = first;
    while (++cpu != cpus.end() && *cpu == last + 1) ++last;
    if (Status added = statements_.add_held_cpu.run(decision, held.kind, first, last); !added) return added;
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
  const auto others = read_numbers(statements_.find_other_boots, boot_);
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

Status SqliteStore::put_allocation(std::int64_t decision, const Columns& columns) {
  constexpr ColumnStatements::Target kTarget{"allocation_row", "decision", "record an allocation", &own_name};
  return in_transaction([&] {
    return explain_missing_decision(column_statements_.put(database_, kTarget, decision, columns), decision);
  });
}

Status SqliteStore::update_allocation(std::int64_t decision, const Columns& columns) {
  constexpr ColumnStatements::Target kTarget{"allocation_row", "decision", "change an allocation", &own_name};
  return in_transaction([&]() -> Status {
    if (Status set = column_statements_.update(database_, kTarget, decision, columns); !set) return set;
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

Status SqliteStore::put_whole_pool(const WholePoolRow& row) {
  return in_transaction(
      [&] { return statements_.set_whole_pool.run(row.cpus.to_string(), row.vacating.to_string(), row.generation); });
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
  constexpr ColumnStatements::Target kTarget{"pod", "boot", "record a pod"};
  return in_transaction([&] { return column_statements_.put(database_, kTarget, boot_, columns); });
}

Status SqliteStore::remove_pod(const std::string& sandbox_id) {
  return in_transaction([&] { return statements_.remove_pod.run(sandbox_id); });
}

Status SqliteStore::put_capacity(std::uint32_t node, const Columns& columns) {
  constexpr ColumnStatements::Target kTarget{"reported_capacity", "node", "record a reported capacity"};
  return in_transaction([&] { return column_statements_.put(database_, kTarget, node, columns); });
}

Status SqliteStore::remove_capacity(std::uint32_t node) {
  return in_transaction([&] { return statements_.remove_capacity.run(node); });
}

Status SqliteStore::put_recent_sizes(const std::vector<RecentSizeRow>& rows) {
  return in_transaction([&]() -> Status {
    if (Status removed = statements_.remove_recent_sizes.run(); !removed) return removed;
    for (const RecentSizeRow& row : rows) {
      if (Status added = statements_.add_recent_size.run(row.cpus, row.counted_ms); !added) return added;
    }
    return {};
  });
}

Result<std::vector<AllocationRow>> SqliteStore::allocations() {
  if (is_of_another_boot_) return std::vector<AllocationRow>();
  return read_allocations(statements_.find_allocations);
}

Result<std::vector<PodRow>> SqliteStore::pods() {
  if (is_of_another_boot_) return std::vector<PodRow>();
  return read_pods(statements_.find_pods);
}

Result<std::vector<CapacityRow>> SqliteStore::capacities() { return read_capacities(statements_.find_capacities); }

Result<std::vector<RecentSizeRow>> SqliteStore::recent_sizes() {
  return read_recent_sizes(statements_.find_recent_sizes);
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

Result<std::optional<CpuSet>> SqliteStore::last_allowed() {
  if (is_of_another_boot_) return std::optional<CpuSet>();
  constexpr const char* kRead = "read which CPUs there were";
  auto statement =
      database_.prepare("SELECT allowed FROM topology WHERE boot = ?1 ORDER BY topology DESC LIMIT 1", kRead);
  if (!statement) return statement.error();
  const auto list = statement->first_text(boot_);
  if (!list) return list.error();
  if (!*list) return std::optional<CpuSet>();
  const auto cpus = CpuSet::parse(**list);
  if (!cpus) return Error{Code::kDataLoss, fmt::format("topology: allowed: {}", cpus.error().message)};
  return std::optional<CpuSet>(*cpus);
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
  return read_denials(database_, since_ms);
}

Result<std::int64_t> SqliteStore::last_setup() {
  const auto setup = statements_.find_last_setup.first_integer();
  if (!setup) return setup.error();
  return setup->value_or(0);
}

/// Refreshes the figures, which costs some reads of pages that are in memory.
Status SqliteStore::refresh_figures(const Moment& now) {
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
Result<RetentionPass> SqliteStore::run_retention_pass(const Moment& now, std::int64_t rows) {
  if (detached_) return *detached_;
  if (const Status refreshed = refresh_figures(now); !refreshed) return refreshed.error();
  const auto step = retention_.next_step(database_, now);
  if (!step) return step.error();
  if (!step->rows.empty()) {
    const Status written = in_transaction([&] { return Retention::write_rows(database_, *step); });
    if (!written) return written.error();
  }
  if (step->looks_again) return RetentionPass{.has_more = true, .notices = step->notices};
  if (const std::int64_t mark = step->mark_ms; mark > 0) {
    const auto deleted = in_transaction([&] { return prune_slice(database_, mark, rows); });
    if (!deleted) return deleted.error();
    retention_.on_pruned(*deleted);
    return RetentionPass{.has_more = true,
                         .rows = *deleted,
                         .deleted = *deleted,
                         .deleted_until_ms = *deleted > 0 ? mark : 0,
                         .notices = step->notices};
  }
  const auto shrunk = shrink_slice(database_);
  if (!shrunk) return shrunk.error();
  return RetentionPass{.has_more = *shrunk, .notices = step->notices};
}

}  // namespace topolet::store
