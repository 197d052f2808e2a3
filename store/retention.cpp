#include "store/retention.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

namespace topolet::store {
namespace {

constexpr const char* kPrune = "delete what is older than it is kept";
constexpr const char* kLook = "read how old the history is";

/// Once the database is too large, until it is smaller than this part of the limit.
constexpr std::int64_t kShrinkToPercent = 95;
/// How many decisions more are deleted each time the mark moves because of the size.
constexpr std::int64_t kDecisionsPerMark = 200;
/// What the log counts at most, as a part of the limit: deleting does not make it smaller, and it grows without end
/// while somebody reads.
constexpr std::int64_t kLargestLogPart = 4;
/// Free pages that a file keeps: a part of all pages, but not fewer than this.
constexpr std::int64_t kFreePartKept = 16;
constexpr std::int64_t kFreePagesKept = 256;

constexpr std::int64_t kDayMs = 86'400'000;
/// What goes at once because of its age, without waiting for kWaitBeforeMuch: a part of all decisions, which ended
/// within so much time.
constexpr std::int64_t kPartAtOnce = 10;
constexpr std::int64_t kMostAtOnceMs = 2 * kDayMs;
constexpr std::chrono::hours kWaitBeforeMuch{24};

/// What holds nothing, as a denial, ends when it was told last. One that a pod's next denials are counted on is not
/// over.
constexpr const char* kWhatHeldNothing = R"sql(
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

/// Moments before which some of the oldest decisions had ended, the earliest first.
Result<std::vector<std::int64_t>> marks_by_size(const Database& database) {
  auto statement = database.prepare(
      "SELECT max(at_ms) + 1 FROM (SELECT at_ms FROM ended ORDER BY at_ms LIMIT ?1) "
      "UNION SELECT max(at_ms) + 1 FROM (SELECT at_ms, holds FROM decided ORDER BY at_ms "
      "LIMIT 5 * ?1 + (SELECT count(*) FROM allocation)) WHERE holds = 0 ORDER BY 1",
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

/// Whether a decision is to be deleted.
Result<bool> has_prunable(const Database& database, std::int64_t mark_ms) {
  const auto found = integer(
      database,
      std::string("SELECT EXISTS (SELECT 1 FROM ended WHERE at_ms < ?1) OR EXISTS (SELECT 1 ") + kWhatHeldNothing + ")",
      mark_ms);
  if (!found) return found.error();
  return found->value_or(0) != 0;
}

Result<std::int64_t> prune_decisions(Database& database, std::int64_t mark_ms, std::int64_t limit) {
  auto over = numbers(database, "SELECT decision FROM ended WHERE at_ms < ?1 ORDER BY at_ms LIMIT ?2", mark_ms, limit);
  if (over && over->empty()) {
    over = numbers(database, std::string("SELECT d.decision ") + kWhatHeldNothing + " LIMIT ?2", mark_ms, limit);
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

/// What is held at the mark and follows the pool.
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

/// What has ended before a mark.
struct Ended {
  std::int64_t decisions = 0;
  std::int64_t first_ms = 0;
  std::int64_t last_ms = 0;
  bool is_more_than_a_tenth = false;

  bool is_much() const { return is_more_than_a_tenth || last_ms - first_ms > kMostAtOnceMs; }
};

Result<Ended> ended_before(const Database& database, std::int64_t mark_ms) {
  auto statement = database.prepare(
      std::string("SELECT count(*), min(at_ms), max(at_ms) FROM (SELECT at_ms FROM ended WHERE at_ms < ?1 "
                  "UNION ALL SELECT coalesce(r.last_ms, d.at_ms) ") +
          kWhatHeldNothing + ")",
      kLook);
  if (!statement) return statement.error();
  if (Status bound = statement->bind(mark_ms); !bound) return bound.error();
  if (const auto there = statement->next(); !there) return there.error();
  Ended ended{statement->integer(0), statement->integer(1), statement->integer(2), false};
  const std::int64_t enough = kPartAtOnce * ended.decisions;
  const auto others = integer(database, "SELECT count(*) FROM (SELECT 1 FROM decided LIMIT ?1)", enough);
  if (!others) return others.error();
  ended.is_more_than_a_tenth = others->value_or(0) < enough;
  return ended;
}

std::string time_text(std::int64_t at_ms) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(at_ms / 1000)));
}

std::string days_text(std::int64_t duration_ms) {
  return duration_ms == 0 ? "for ever" : fmt::format("{:.1f} days", static_cast<double>(duration_ms) / kDayMs);
}

}  // namespace

Result<std::int64_t> prune_slice(Database& database, std::int64_t mark_ms, std::int64_t decisions) {
  // What belongs to a decision goes with it only then.
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

Result<PruneForecast> forecast_prune(const Database& database, std::int64_t mark_ms) {
  PruneForecast forecast;
  for (const std::string& sql : {std::string("SELECT count(*) FROM ended WHERE at_ms < ?1"),
                                 std::string("SELECT count(*) ") + kWhatHeldNothing}) {
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

Status Retention::lower_mark(Database& database, std::int64_t now_ms) {
  const auto lowered = run(database, "UPDATE retention SET mark = min(mark, ?1) WHERE subject = 'ended_ms'", now_ms);
  return lowered ? Status() : Status(lowered.error());
}

Status Retention::remember_keep(Database& database) {
  const std::int64_t keep_ms = limits_.keep.count();
  const auto written = run(
      database, "INSERT INTO retention VALUES ('keep_ms', ?1) ON CONFLICT DO UPDATE SET mark = excluded.mark", keep_ms);
  if (!written) return written.error();
  former_keep_ms_ = keep_ms;
  return {};
}

Status Retention::begin(const Database& database, const Moment& now) {
  if (began_) return {};
  const auto keep = integer(database, "SELECT mark FROM retention WHERE subject = 'keep_ms'");
  if (!keep) return keep.error();
  // Whoever deleted decisions last may not have come to what only those needed. Decisions that are left are looked at
  // anew: the mark may be one that was lowered.
  const auto former = pruned_until(database);
  if (!former) return former.error();
  const auto has_decisions = has_prunable(database, *former);
  if (!has_decisions) return has_decisions.error();
  if (*former <= now.wall_ms && !*has_decisions) mark_ms_ = *former;
  former_keep_ms_ = *keep;
  began_ = now;
  return {};
}

std::int64_t Retention::mark_by_age(const Moment& now) const {
  const auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(now.steady - began_->steady);
  return std::min(now.wall_ms, began_->wall_ms + passed.count()) - limits_.keep.count();
}

/// Whether so much goes because `keep` is shorter than before, and not because of the clock.
Result<bool> Retention::was_shortened(const Database& database, std::int64_t mark_ms) const {
  const std::int64_t keep_ms = limits_.keep.count();
  if (!former_keep_ms_) return false;
  if (*former_keep_ms_ == 0) return true;
  if (*former_keep_ms_ <= keep_ms) return false;
  const auto without = ended_before(database, mark_ms - (*former_keep_ms_ - keep_ms));
  if (!without) return without.error();
  return !without->is_much();
}

Result<bool> Retention::may_delete_by_age(const Database& database, const Moment& now, std::int64_t mark_ms,
                                          RetentionStep& step) {
  const auto ended = ended_before(database, mark_ms);
  if (!ended) return ended.error();
  if (!ended->is_much()) {
    waits_since_.reset();
    return true;
  }
  const auto shortened = was_shortened(database, mark_ms);
  if (!shortened) return shortened.error();
  const std::string what = fmt::format("{} decisions that had ended before {}", ended->decisions, time_text(mark_ms));
  if (*shortened) {
    step.notices.push_back(fmt::format("daemon.keep was {} and is {} now: {} are deleted", days_text(*former_keep_ms_),
                                       days_text(limits_.keep.count()), what));
    return true;
  }
  if (!waits_since_) {
    waits_since_ = now.steady;
    step.notices.push_back(
        fmt::format("{} are older than daemon.keep: so many at once may be the fault of a clock that is ahead, so they "
                    "are kept for "
                    "another day of running; `topolet prune` deletes them now",
                    what));
  }
  return now.steady - *waits_since_ >= kWaitBeforeMuch;
}

Result<std::int64_t> Retention::find_mark(const Database& database, const Moment& now, RetentionStep& step) {
  if (limits_.keep.count() > 0) {
    const std::int64_t mark_ms = mark_by_age(now);
    const auto deletes = has_prunable(database, mark_ms);
    if (!deletes) return deletes.error();
    if (!*deletes) waits_since_.reset();
    if (*deletes) {
      const auto may = may_delete_by_age(database, now, mark_ms, step);
      if (!may) return may.error();
      if (*may) return mark_ms;
    }
  }
  const auto too_large = is_too_large(database);
  if (!too_large) return too_large.error();
  if (!*too_large) return 0;
  const auto marks = marks_by_size(database);
  if (!marks) return marks.error();
  for (const std::int64_t mark_ms : *marks) {
    const auto deletes = has_prunable(database, mark_ms);
    if (!deletes) return deletes.error();
    if (*deletes) return mark_ms;
  }
  return 0;
}

Result<RetentionStep> Retention::next_step(const Database& database, const Moment& now) {
  RetentionStep step;
  if (Status begun = begin(database, now); !begun) return begun.error();
  const auto mark_ms = pruned_until(database);
  if (!mark_ms) return mark_ms.error();
  if (*mark_ms > now.wall_ms) {
    step.lowers_mark = true;
    step.notices.push_back(
        fmt::format("the history said to have gaps until {}, which is still to come: a clock was ahead; now it says "
                    "until {}",
                    time_text(*mark_ms), time_text(now.wall_ms)));
    return step;
  }
  if (mark_ms_ == 0) {
    const auto found = find_mark(database, now, step);
    if (!found) return found.error();
    mark_ms_ = *found;
  }
  step.mark_ms = mark_ms_;
  // What is deleted because it is shorter goes on after a stop.
  step.remembers_keep = mark_ms_ == 0 && !waits_since_ && former_keep_ms_ != limits_.keep.count();
  return step;
}

void Retention::on_pruned(std::int64_t deleted) {
  if (deleted > 0) return;
  mark_ms_ = 0;
  waits_since_.reset();
}

Result<bool> Retention::is_too_large(const Database& database) {
  if (limits_.keep_bytes == 0) return false;
  const auto size = size_of(database);
  if (!size) return size.error();
  const std::int64_t bytes = size->used_bytes + std::min(size->log_bytes, limits_.keep_bytes / kLargestLogPart);
  if (bytes > limits_.keep_bytes) is_too_large_ = true;
  if (bytes <= limits_.keep_bytes / 100 * kShrinkToPercent) is_too_large_ = false;
  return is_too_large_;
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
