// When what of the history is deleted, whatever the wall clock says.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/rfc3339.hpp"
#include "store/prunable.hpp"
#include "store/retention.hpp"

namespace topolet::store {
namespace {

/// Once the database is too large, until it is smaller than this part of the limit.
constexpr std::int64_t kShrinkToPercent = 95;
/// The most that the log counts, as a part of the limit: deleting does not make it smaller, and it grows without end
/// while somebody reads.
constexpr std::int64_t kLargestLogPart = 4;

constexpr std::int64_t kMinuteMs = 60'000;
constexpr std::int64_t kHourMs = 60 * kMinuteMs;
constexpr std::int64_t kDayMs = 24 * kHourMs;
/// A run that begins so long after the newest decision may have begun with a clock that is ahead.
constexpr std::int64_t kLongPauseMs = 2 * kDayMs;
constexpr std::chrono::hours kDay{24};

// Rows of the table `retention`.
constexpr const char* kEnded = "ended_ms";
constexpr const char* kKeep = "keep_ms";
constexpr const char* kLoweredFrom = "lowered_from_ms";
constexpr const char* kLoweredTo = "lowered_to_ms";
constexpr const char* kWaited = "waited_ms";
constexpr const char* kWaitMark = "wait_mark_ms";

std::int64_t to_ms(std::chrono::steady_clock::duration time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
}

Result<std::optional<std::int64_t>> read_row(const Database& database, const char* subject) {
  auto statement =
      database.prepare("SELECT mark FROM retention WHERE subject = ?1", "read how long the history is kept");
  if (!statement) return statement.error();
  return statement->first_integer(std::string_view(subject));
}

std::string time_text(std::int64_t at_ms) { return rfc3339(std::chrono::milliseconds(at_ms)); }

std::string days_text(std::int64_t duration_ms) {
  return duration_ms == 0 ? "for ever" : fmt::format("{:.1f} days", static_cast<double>(duration_ms) / kDayMs);
}

}  // namespace

Status Retention::write_rows(Database& database, const RetentionStep& step) {
  constexpr const char* kWrite = "note how long the history is kept";
  for (const auto& [subject, mark] : step.rows) {
    auto statement =
        database.prepare(mark ? "INSERT INTO retention VALUES (?1, ?2) ON CONFLICT DO UPDATE SET mark = excluded.mark"
                              : "DELETE FROM retention WHERE subject = ?1",
                         kWrite);
    if (!statement) return statement.error();
    Status written = mark ? statement->run(subject, *mark) : statement->run(subject);
    if (!written) return written;
  }
  return {};
}

Status Retention::begin(const Database& database, const Moment& now) {
  if (began_) return {};
  for (const auto& [subject, value] : std::initializer_list<std::pair<const char*, std::optional<std::int64_t>*>>{
           {kKeep, &former_keep_ms_}, {kLoweredFrom, &lowered_from_ms_}}) {
    const auto row = read_row(database, subject);
    if (!row) return row.error();
    *value = *row;
  }
  const auto lowered_to = read_row(database, kLoweredTo);
  const auto waited = read_row(database, kWaited);
  const auto wait_mark = read_row(database, kWaitMark);
  if (!lowered_to || !waited || !wait_mark) return (!lowered_to ? lowered_to : !waited ? waited : wait_mark).error();
  lowered_to_ms_ = lowered_to->value_or(0);
  if (*waited && *wait_mark) wait_ = Wait{**waited, **wait_mark, **waited};
  // Whoever deleted decisions last may not have come to what only those needed. Decisions that are left are looked at
  // anew: the mark may be one that was lowered.
  const auto former = pruned_until(database);
  if (!former) return former.error();
  const auto has_decisions = has_prunable(database, *former);
  if (!has_decisions) return has_decisions.error();
  if (*former <= now.wall_ms && !*has_decisions) mark_ms_ = *former;
  first_look_ = last_look_ = now.steady;
  began_ = now;
  return {};
}

/// The database's own mark, which readers see: in the future it cannot be right by this clock, and a lowered one was
/// right if the clock comes to it although nothing was deleted meanwhile as it is when time passes.
bool Retention::moves_mark(std::int64_t mark_ms, std::int64_t now_ms, RetentionStep& step) const {
  if (mark_ms > now_ms) {
    step.rows = {
        {kEnded, now_ms}, {kLoweredFrom, std::max(mark_ms, lowered_from_ms_.value_or(mark_ms))}, {kLoweredTo, now_ms}};
    step.notices.push_back(
        fmt::format("the history said to have gaps until {}, which is still to come: a clock was ahead, or this one is "
                    "behind; now it says until {}",
                    time_text(mark_ms), time_text(now_ms)));
  } else if (lowered_from_ms_ && *lowered_from_ms_ <= now_ms) {
    step.rows = {{kLoweredFrom, std::nullopt}, {kLoweredTo, std::nullopt}};
    const bool has_moved_on = mark_ms - lowered_to_ms_ >= (*lowered_from_ms_ - lowered_to_ms_) / 2;
    if (mark_ms < *lowered_from_ms_ && !has_moved_on) {
      step.rows[kEnded] = *lowered_from_ms_;
      step.notices.push_back(fmt::format("the clock was behind: the history may have gaps until {}, as it said before",
                                         time_text(*lowered_from_ms_)));
    }
  }
  return !step.rows.empty();
}

/// Follows the wall clock by as much as it has been ahead of the time that has passed, for a whole day.
void Retention::follow_clock(const Moment& now) {
  const std::int64_t ahead_ms = now.wall_ms - began_->wall_ms - to_ms(now.steady - began_->steady);
  if (ahead_ms < kMinuteMs) return leap_.reset();
  if (!leap_ || ahead_ms < leap_->by_ms - kMinuteMs) leap_ = Leap{now.steady, ahead_ms};
  leap_->by_ms = std::min(leap_->by_ms, ahead_ms);
  if (now.steady - leap_->since < kDay) return;
  began_->wall_ms += leap_->by_ms;
  leap_.reset();
}

std::int64_t Retention::mark_by_age(const Moment& now) const {
  const std::int64_t passed_ms = to_ms(now.steady - began_->steady);
  return std::min(now.wall_ms, began_->wall_ms + passed_ms) - limits_.keep.count();
}

/// Tells if this run seems to have begun days after the newest decision.
Result<bool> Retention::may_be_ahead(const Database& database) const {
  // Decisions may have been made before the first look.
  const auto newest = newest_before(database, began_->wall_ms - kHourMs);
  if (!newest) return newest.error();
  return *newest != 0 && began_->wall_ms - *newest > kLongPauseMs;
}

/// Tells if so much goes because `keep` is shorter than before, and not because of the clock.
Result<bool> Retention::was_shortened(const Database& database, std::int64_t mark_ms) const {
  const std::int64_t keep_ms = limits_.keep.count();
  const bool is_shorter = former_keep_ms_ && (*former_keep_ms_ == 0 || *former_keep_ms_ > keep_ms);
  if (!is_shorter) return false;
  const auto ahead = may_be_ahead(database);
  if (!ahead || *ahead) return ahead ? Result<bool>(false) : ahead;
  // Nothing would go of a history that was kept for ever.
  if (*former_keep_ms_ == 0) return true;
  const auto without = ended_before(database, mark_ms - (*former_keep_ms_ - keep_ms));
  if (!without) return without.error();
  return !without->is_much();
}

void Retention::forget_wait(RetentionStep& step) {
  if (wait_ && wait_->written_ms >= 0) step.rows[kWaited] = step.rows[kWaitMark] = std::nullopt;
  wait_.reset();
}

/// Returns the mark before which decisions may be deleted by now, which is `mark_ms` or earlier; 0: none may.
Result<std::int64_t> Retention::wait(const Database& database, std::int64_t mark_ms, std::chrono::milliseconds passed,
                                     const std::string& what, RetentionStep& step) {
  if (!wait_) {
    wait_ = Wait{0, mark_ms, -1};
    step.notices.push_back(fmt::format(
        "{} are older than daemon.keep: so many at once, or after such a pause, may be the fault of a clock "
        "that is ahead, so they are kept for another day of running; `topolet prune` deletes them now",
        what));
  } else {
    wait_->waited_ms += passed.count();
  }
  wait_->mark_ms = std::min(wait_->mark_ms, mark_ms - wait_->waited_ms);
  const std::int64_t until_ms = wait_->mark_ms + wait_->waited_ms;
  if (wait_->written_ms < 0 || wait_->waited_ms - wait_->written_ms >= kMinuteMs) {
    step.rows[kWaited] = wait_->written_ms = wait_->waited_ms;
    step.rows[kWaitMark] = wait_->mark_ms;
  }
  if (wait_->waited_ms < kDayMs) return 0;
  const auto deletes = has_prunable(database, until_ms);
  if (!deletes) return deletes.error();
  has_waited_ = *deletes;
  // Decisions that are that old only since the clock was set have to wait for themselves.
  if (!*deletes) forget_wait(step);
  return *deletes ? until_ms : 0;
}

Result<std::int64_t> Retention::find_mark_by_age(const Database& database, const Moment& now, RetentionStep& step) {
  const auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(now.steady - last_look_);
  const std::int64_t mark_ms = mark_by_age(now);
  const auto ended = ended_before(database, mark_ms);
  if (!ended) return ended.error();
  if (ended->decisions == 0) return forget_wait(step), 0;
  const auto ahead = may_be_ahead(database);
  if (!ahead) return ahead.error();
  if (!ended->is_much() && (!*ahead || now.steady - first_look_ >= kDay)) return forget_wait(step), mark_ms;
  const auto shortened = was_shortened(database, mark_ms);
  if (!shortened) return shortened.error();
  const std::string what = fmt::format("{} decisions that had ended before {}", ended->decisions, time_text(mark_ms));
  if (!*shortened) return wait(database, mark_ms, passed, what, step);
  step.notices.push_back(fmt::format("daemon.keep was {} and is {} now: {} are deleted", days_text(*former_keep_ms_),
                                     days_text(limits_.keep.count()), what));
  forget_wait(step);
  return mark_ms;
}

Result<std::int64_t> Retention::find_mark_by_size(const Database& database) {
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
  if (moves_mark(*mark_ms, now.wall_ms, step)) {
    const auto lowered_from = step.rows.find(kLoweredFrom);
    lowered_from_ms_ = lowered_from->second;
    lowered_to_ms_ = now.wall_ms;
    step.looks_again = true;
    return step;
  }
  follow_clock(now);
  if (mark_ms_ == 0) {
    if (std::exchange(has_waited_, false)) forget_wait(step);
    auto found = limits_.keep.count() > 0 ? find_mark_by_age(database, now, step) : Result<std::int64_t>(0);
    if (found && *found == 0) found = find_mark_by_size(database);
    if (!found) return found.error();
    mark_ms_ = *found;
  }
  last_look_ = now.steady;
  step.mark_ms = mark_ms_;
  // A deletion because `keep` is shorter goes on after a stop.
  if (mark_ms_ == 0 && !wait_ && former_keep_ms_ != limits_.keep.count()) {
    former_keep_ms_ = limits_.keep.count();
    step.rows[kKeep] = former_keep_ms_;
  }
  return step;
}

void Retention::on_pruned(std::int64_t deleted) {
  if (deleted == 0) mark_ms_ = 0;
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

}  // namespace topolet::store
