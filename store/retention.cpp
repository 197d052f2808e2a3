#include "store/retention.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "store/prunable.hpp"

namespace topolet::store {
namespace {

constexpr const char* kPrune = "delete what is older than it is kept";
constexpr const char* kLook = "read how old the history is";

/// How many decisions more are deleted each time the mark moves because of the size.
constexpr std::int64_t kDecisionsPerMark = 200;
/// Free pages that a file keeps: a part of all pages, but not fewer than this.
constexpr std::int64_t kFreePartKept = 16;
constexpr std::int64_t kFreePagesKept = 256;

/// A part of all decisions, and one for a few decisions, of which there may not be many more.
constexpr std::int64_t kPartAtOnce = 10;
constexpr std::int64_t kFew = 3;
constexpr std::int64_t kPartOfFew = 3;

/// The decisions that hold nothing, such as denials: they end when they were repeated last. A denial that a pod's next
/// ones are counted on is not over.
constexpr const char* kHeldNothing = R"sql(
FROM decided d LEFT JOIN repeat r USING (decision)
WHERE d.at_ms < ?1 AND d.holds = 0 AND coalesce(r.last_ms, d.at_ms) < ?1
  AND d.decision NOT IN (SELECT json_extract(n.value, '$.decision') FROM pod p JOIN json_each(p.denied) n
                         WHERE json_valid(p.denied)))sql";

Result<std::vector<std::int64_t>> numbers(const Database& database, const std::string& sql, std::int64_t mark_ms,
                                          std::int64_t limit) {
  auto statement = database.prepare(sql, kLook);
  if (!statement) return statement.error();
  if (Status bound = statement->bind(mark_ms, limit); !bound) return bound.error();
  std::vector<std::int64_t> found;
  while (true) {
    const auto more = statement->next();
    if (!more) return more.error();
    if (!*more) return found;
    found.push_back(statement->integer(0));
  }
}

template <class... Values>
Result<std::int64_t> run(Database& database, const char* sql, const Values&... values) {
  auto statement = database.prepare(sql, kPrune);
  if (!statement) return statement.error();
  if (Status done = statement->run(values...); !done) return done.error();
  return database.changed_rows();
}

template <class... Values>
Result<std::optional<std::int64_t>> integer(const Database& database, const std::string& sql, const Values&... values) {
  auto statement = database.prepare(sql, kLook);
  if (!statement) return statement.error();
  return statement->first_integer(values...);
}

Result<std::int64_t> prune_decisions(Database& database, std::int64_t mark_ms, std::int64_t limit) {
  auto over = numbers(database, "SELECT decision FROM ended WHERE at_ms < ?1 ORDER BY at_ms LIMIT ?2", mark_ms, limit);
  if (over && over->empty()) {
    over = numbers(database, std::string("SELECT d.decision ") + kHeldNothing + " LIMIT ?2", mark_ms, limit);
  }
  if (!over) return over.error();
  if (over->empty()) return 0;
  // Who reads looks up to which moment the history may have gaps.
  const auto marked = run(database, "UPDATE retention SET mark = max(mark, ?1) WHERE subject = 'ended_ms'", mark_ms);
  if (!marked) return marked.error();
  auto remove = database.prepare("DELETE FROM decided WHERE decision = ?1", kPrune);
  if (!remove) return remove.error();
  for (const std::int64_t decision : *over) {
    if (Status removed = remove->run(decision); !removed) return removed.error();
  }
  return static_cast<std::int64_t>(over->size());
}

struct PoolVersion {
  std::int64_t generation = 0;
  CpuSet cpus;
  CpuSet free_reserved;
};

Result<std::optional<PoolVersion>> pool_version(const Database& database, const std::string& condition,
                                                std::int64_t value) {
  auto statement = database.prepare(
      "SELECT generation, cpus, coalesce(free_reserved, '') FROM pool_version WHERE " + condition, kLook);
  if (!statement) return statement.error();
  if (Status bound = statement->bind(value); !bound) return bound.error();
  const auto found = statement->next();
  if (!found) return found.error();
  if (!*found) return std::optional<PoolVersion>();
  auto cpus = CpuSet::parse(statement->text(1));
  auto free_reserved = CpuSet::parse(statement->text(2));
  if (!cpus) return cpus.error();
  if (!free_reserved) return free_reserved.error();
  return std::optional(PoolVersion{statement->integer(0), *std::move(cpus), *std::move(free_reserved)});
}

/// The pool at the mark. The generations grow with the time, as far as the clock is not set back.
Result<std::optional<PoolVersion>> pool_at(const Database& database, std::int64_t mark_ms) {
  const auto later = integer(database, "SELECT min(generation) FROM pool_version WHERE at_ms > ?1", mark_ms);
  if (!later) return later.error();
  const std::int64_t before = *later && **later > 0 ? **later : std::int64_t{1} << 62;
  return pool_version(database, "generation < ?1 ORDER BY generation DESC LIMIT 1", before);
}

/// An allocation at the mark that follows the pool.
struct Follower {
  std::int64_t generation = 0;
  bool is_reserved = false;
  bool is_bounded = false;  ///< never leaves `within`
  CpuSet within;

  bool has_cpus_in(const PoolVersion& version) const {
    const CpuSet& open = is_reserved ? version.cpus | version.free_reserved : version.cpus;
    return is_bounded ? open.intersects(within) : !open.empty();
  }
};

Result<std::vector<Follower>> followers_at(const Database& database, std::int64_t mark_ms) {
  auto statement = database.prepare(
      "SELECT generation, mode = 'reserved', kubelet_cpus <> '', within FROM decided "
      "WHERE at_ms <= ?1 AND holds = 1 AND mode IN ('shared', 'reserved')",
      kLook);
  if (!statement) return statement.error();
  if (Status bound = statement->bind(mark_ms); !bound) return bound.error();
  std::vector<Follower> followers;
  while (true) {
    const auto more = statement->next();
    if (!more) return more.error();
    if (!*more) return followers;
    auto within = CpuSet::parse(statement->text(3));
    if (!within) return within.error();
    followers.push_back(
        {statement->integer(0), statement->integer(1) != 0, statement->integer(2) != 0, *std::move(within)});
  }
}

/// The oldest version that tells where somebody is at the mark: one for whom the pool has nothing stays where it was in
/// the newest version that had something.
Result<std::int64_t> oldest_version_needed(const Database& database, std::int64_t mark_ms) {
  auto version = pool_at(database, mark_ms);
  if (!version) return version.error();
  if (!*version) return 0;
  auto waiting = followers_at(database, mark_ms);
  if (!waiting) return waiting.error();
  std::int64_t oldest = (*version)->generation;
  while (true) {
    std::erase_if(*waiting, [&](const Follower& follower) {
      return follower.generation >= (*version)->generation || follower.has_cpus_in(**version);
    });
    oldest = (*version)->generation;
    if (waiting->empty()) return oldest;
    auto before = pool_version(database, "generation < ?1 ORDER BY generation DESC LIMIT 1", oldest);
    if (!before) return before.error();
    if (!*before) return oldest;
    version = std::move(before);
  }
}

Result<std::int64_t> prune_pool_versions(Database& database, std::int64_t mark_ms, std::int64_t limit) {
  const auto oldest = oldest_version_needed(database, mark_ms);
  if (!oldest) return oldest.error();
  const auto there = integer(
      database, "SELECT generation FROM pool_version WHERE generation < ?1 ORDER BY generation LIMIT 1", *oldest);
  if (!there) return there.error();
  if (!*there) return 0;
  const auto marked = run(database, "UPDATE retention SET mark = max(mark, ?1) WHERE subject = 'pool'", *oldest - 1);
  if (!marked) return marked.error();
  return run(database,
             "DELETE FROM pool_version WHERE generation IN "
             "(SELECT generation FROM pool_version WHERE generation < ?1 ORDER BY generation LIMIT ?2)",
             *oldest, limit);
}

/// Few, and small beside the decisions.
Status prune_machines_and_setups(Database& database, std::int64_t mark_ms) {
  const auto topology = integer(database, "SELECT max(topology) FROM topology WHERE at_ms <= ?1", mark_ms);
  if (!topology) return topology.error();
  // A decision that names no setup was made with the one of its time.
  const auto setup = integer(database,
                             "SELECT min(setup) FROM ("
                             "SELECT coalesce(d.setup, (SELECT max(setup) FROM setup WHERE at_ms <= d.at_ms)) AS setup "
                             "FROM decided d WHERE d.at_ms <= ?1 "
                             "UNION ALL SELECT max(setup) FROM setup WHERE at_ms <= ?1)",
                             mark_ms);
  if (!setup) return setup.error();
  const auto remove = [&](const char* sql, const std::optional<std::int64_t>& first_kept) -> Status {
    if (!first_kept) return {};
    const auto done = run(database, sql, *first_kept);
    return done ? Status() : Status(done.error());
  };
  for (const char* sql :
       {"DELETE FROM topology_cpu WHERE topology < ?1", "DELETE FROM topology_node WHERE topology < ?1",
        "DELETE FROM topology_device WHERE topology < ?1", "DELETE FROM topology WHERE topology < ?1"}) {
    if (Status done = remove(sql, *topology); !done) return done;
  }
  if (Status done = remove("DELETE FROM setup WHERE setup < ?1", *setup); !done) return done;
  return remove("DELETE FROM config WHERE ?1 > 0 AND digest NOT IN (SELECT config FROM setup)", *setup);
}

}  // namespace

Result<std::int64_t> prune_slice(Database& database, std::int64_t mark_ms, std::int64_t decisions) {
  // Only then do the rows that belong to a decision go with it.
  const auto cascades = database.integer("PRAGMA foreign_keys", kLook);
  if (!cascades) return cascades.error();
  if (*cascades == 0) return Error{Code::kFailedPrecondition, "pruning needs a connection with foreign_keys = ON"};
  const auto pruned = prune_decisions(database, mark_ms, decisions);
  if (!pruned || *pruned > 0) return pruned;
  const auto versions = prune_pool_versions(database, mark_ms, decisions);
  if (!versions || *versions > 0) return versions;
  if (Status done = prune_machines_and_setups(database, mark_ms); !done) return done.error();
  return 0;
}

Result<std::vector<std::int64_t>> marks_by_size(const Database& database) {
  auto statement = database.prepare(
      "SELECT max(at_ms) + 1 FROM (SELECT at_ms FROM ended ORDER BY at_ms LIMIT ?1) "
      "UNION SELECT max(at_ms) + 1 FROM (SELECT at_ms, holds FROM decided ORDER BY at_ms "
      "LIMIT 5 * ?1 + (SELECT count(*) FROM allocation_row)) WHERE holds = 0 ORDER BY 1",
      kLook);
  if (!statement) return statement.error();
  if (Status bound = statement->bind(kDecisionsPerMark); !bound) return bound.error();
  std::vector<std::int64_t> marks;
  while (true) {
    const auto more = statement->next();
    if (!more) return more.error();
    if (!*more) return marks;
    if (!statement->is_null(0)) marks.push_back(statement->integer(0));
  }
}

Result<bool> has_prunable(const Database& database, std::int64_t mark_ms) {
  const auto found = integer(
      database,
      std::string("SELECT EXISTS (SELECT 1 FROM ended WHERE at_ms < ?1) OR EXISTS (SELECT 1 ") + kHeldNothing + ")",
      mark_ms);
  if (!found) return found.error();
  return found->value_or(0) != 0;
}

Result<Ended> ended_before(const Database& database, std::int64_t mark_ms) {
  auto statement = database.prepare(
      std::string("SELECT count(*), min(at_ms), max(at_ms) FROM (SELECT at_ms FROM ended WHERE at_ms < ?1 "
                  "UNION ALL SELECT coalesce(r.last_ms, d.at_ms) ") +
          kHeldNothing + ")",
      kLook);
  if (!statement) return statement.error();
  if (Status bound = statement->bind(mark_ms); !bound) return bound.error();
  if (const auto there = statement->next(); !there) return there.error();
  Ended ended{statement->integer(0), statement->integer(1), statement->integer(2), false};
  const std::int64_t enough = ended.decisions * (ended.decisions <= kFew ? kPartOfFew : kPartAtOnce);
  const auto others = integer(database, "SELECT count(*) FROM (SELECT 1 FROM decided LIMIT ?1)", enough);
  if (!others) return others.error();
  ended.is_more_than_a_tenth = others->value_or(0) < enough;
  return ended;
}

Result<std::int64_t> newest_before(const Database& database, std::int64_t moment_ms) {
  const auto newest = integer(database, "SELECT max(at_ms) FROM decided WHERE at_ms < ?1", moment_ms);
  if (!newest) return newest.error();
  return newest->value_or(0);
}

Result<PruneForecast> forecast_prune(const Database& database, std::int64_t mark_ms) {
  PruneForecast forecast;
  for (const std::string& sql :
       {std::string("SELECT count(*) FROM ended WHERE at_ms < ?1"), std::string("SELECT count(*) ") + kHeldNothing}) {
    const auto count = integer(database, sql, mark_ms);
    if (!count) return count.error();
    forecast.decisions += count->value_or(0);
  }
  const auto all = integer(database, "SELECT count(*) FROM decided");
  if (!all) return all.error();
  forecast.decisions_left = all->value_or(0) - forecast.decisions;
  return forecast;
}

Result<std::int64_t> pruned_until(const Database& database) {
  const auto mark = integer(database, "SELECT mark FROM retention WHERE subject = 'ended_ms'");
  if (!mark) return mark.error();
  return mark->value_or(0);
}

Result<DatabaseSize> size_of(const Database& database) {
  auto statement = database.prepare(
      "SELECT (page_count - freelist_count) * page_size, freelist_count * page_size "
      "FROM pragma_page_count, pragma_freelist_count, pragma_page_size",
      "read the size of the database");
  if (!statement) return statement.error();
  if (const auto there = statement->next(); !there) return there.error();
  DatabaseSize size{statement->integer(0), statement->integer(1), 0};
  std::error_code none;
  const auto log = std::filesystem::file_size(database.path() + "-wal", none);
  if (!none) size.log_bytes = static_cast<std::int64_t>(log);
  return size;
}

Result<std::int64_t> believable_pruned_until(const Database& database, std::int64_t now_ms) {
  constexpr std::int64_t kMinuteMs = 60'000;
  const auto mark = pruned_until(database);
  if (!mark || *mark <= now_ms) return mark;
  return now_ms - kMinuteMs;
}

Result<bool> shrink_slice(Database& database) {
  const auto shrinks = database.integer("PRAGMA auto_vacuum", kLook);
  if (!shrinks) return shrinks.error();
  constexpr std::int64_t kIncremental = 2;
  if (*shrinks != kIncremental) return false;
  const auto pages = database.integer("PRAGMA page_count", kLook);
  if (!pages) return pages.error();
  const auto free = database.integer("PRAGMA freelist_count", kLook);
  if (!free) return free.error();
  if (*free <= std::max(kFreePagesKept, *pages / kFreePartKept)) return false;
  if (Status done = database.execute("PRAGMA incremental_vacuum(32)", "shrink the file"); !done) return done.error();
  return true;
}

}  // namespace topolet::store
