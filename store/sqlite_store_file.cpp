// How a SqliteStore comes by its file: opens it, replaces one that cannot be used, and follows one that was taken away.
#include <fmt/format.h>

#include <limits>
#include <utility>

#include "store/sqlite_store.hpp"

namespace topolet::store {

Status SqliteStore::open() {
  if (Status claimed = claim_directory(); !claimed) return claimed;
  return open_file(nullptr, options_.now_ms);
}

/// Who removes the directory of a topoletd that runs, such as the purge of its package, finds it removed afterwards.
Status SqliteStore::claim_directory() {
  using IfAbsent = StateDirectory::IfAbsent;
  auto directory = StateDirectory::claim(options_.directory, may_make_directory_ ? IfAbsent::kMake : IfAbsent::kRefuse);
  if (!directory) return directory.error();
  may_make_directory_ = false;
  MutexLock lock(generation_file_mutex_);
  directory_ = *std::move(directory);
  generation_in_file_ = 0;
  return {};
}

Status SqliteStore::open_in_memory() {
  auto opened = open_database_in_memory();
  if (!opened) return opened.error();
  use(*std::move(opened));
  return begin_boot(options_.now_ms);
}

/// Opens the file that the directory has, or else a new one in the place of one that is damaged, has too old a schema,
/// or knows greater numbers than `last`.
Status SqliteStore::open_file(const LastNumbers* last, std::int64_t now_ms) {
  Status opened = try_file(last, now_ms);
  if (opened) return opened;
  const Error why = opened.error();
  const char* const kind = why.code == Code::kDataLoss     ? "damaged"
                           : why.code == Code::kOutOfRange ? "replaced"
                           : why.code == kTooOld           ? "too-old"
                                                           : nullptr;
  if (kind == nullptr) return opened;
  report_.was_too_old = why.code == kTooOld;
  if (report_.was_too_old) keep_open(directory_->database());
  Status moved = set_aside(kind, why.message, now_ms);
  return moved ? try_file(last, now_ms) : moved;
}

/// Another process may have the file open, such as a tool of the older version. The last connection to a database that
/// is closed removes the log by its name, which belongs to the new file by then. So the last one is ours, which does
/// not.
void SqliteStore::keep_open(const std::filesystem::path& file) {
  auto kept = Database::open(file, Database::Access::kReadOnly);
  if (!kept) return;
  kept->leave_untouched_at_close(true);
  // A connection takes its lock with its first read.
  static_cast<void>(kept->integer("SELECT count(*) FROM sqlite_schema", "keep it open"));
  too_old_ = *std::move(kept);
}

Status SqliteStore::set_aside(const char* kind, const std::string& why, std::int64_t now_ms) {
  auto moved = directory_->set_database_aside(kind, now_ms);
  if (!moved) return moved.error();
  report_.set_aside = *std::move(moved);
  report_.set_aside_because = why;
  return {};
}

Status SqliteStore::try_file(const LastNumbers* last, std::int64_t now_ms) {
  auto opened = open_database(*directory_, options_.durability);
  if (!opened) return opened.error();
  use(*std::move(opened));
  // The writes that follow are meant for this file.
  const std::optional<Error> detached = std::exchange(detached_, std::nullopt);
  Status begun;
  if (last == nullptr) {
    detect_lost_generations();
  } else {
    begun = check_numbers(*last);
  }
  if (begun) begun = begin_boot(now_ms);
  if (begun && last == nullptr && options_.check_rows) begun = options_.check_rows(*this);
  if (begun) {
    checkpointer_ = Checkpointer::start(database_);
    watch_.emplace(directory_->database());
  } else {
    database_.leave_untouched_at_close(true);
    close_file();
    detached_ = detached;
  }
  return begun;
}

Status SqliteStore::check_numbers(const LastNumbers& last) {
  const auto decision = last_decision();
  if (!decision) return decision.error();
  const auto generation = last_generation();
  if (!generation) return generation.error();
  if (*decision <= last.decision && *generation <= last.generation) return {};
  return Error{Code::kOutOfRange, fmt::format("'{}' has decisions that topoletd does not know of", database_.path())};
}

/// Reads what is held from a file that cannot be written to, if it can be read; otherwise it is as if there were none.
Status SqliteStore::open_detached(const Error& why) {
  detached_ = why;
  std::error_code ignored;
  if (std::filesystem::is_directory(options_.directory, ignored)) may_make_directory_ = false;
  if (auto readable = open_database_to_read(options_.directory / "state.db")) {
    use(*std::move(readable));
    const auto boot = statements_.find_boot.first_integer(options_.boot_id);
    is_of_another_boot_ = boot && !*boot;
    if (boot && (!options_.check_rows || options_.check_rows(*this))) return {};
    close_file();
  }
  auto opened = open_database_in_memory();
  if (!opened) return opened.error();
  use(*std::move(opened));
  return {};
}

std::optional<FileLoss> SqliteStore::find_file_loss() {
  if (detached_) return FileLoss{detached_->message, Leftover::kKept};
  if (!watch_) return std::nullopt;
  return watch_->look([this]() -> std::int64_t {
    database_.checkpoint();
    const auto bytes = database_.integer("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
                                         "read the size of the database");
    return bytes ? *bytes : std::numeric_limits<std::int64_t>::max();
  });
}

/// The directory may be another one by now.
Status SqliteStore::claim_again() {
  if (directory_ && directory_->is_current()) return {};
  {
    MutexLock lock(generation_file_mutex_);
    directory_.reset();
  }
  return claim_directory();
}

Result<std::filesystem::path> SqliteStore::reopen(const FileLoss& loss, const LastNumbers& last, std::int64_t now_ms) {
  // The contents of a log that has no name any more can still be read here, and goes into its file.
  if (!detached_ && loss.leftover == Leftover::kKept) database_.checkpoint();
  if (!detached_ && loss.leftover != Leftover::kKept) database_.leave_untouched_at_close(true);
  detached_ = Error{Code::kUnavailable, loss.what};
  is_of_another_boot_ = false;
  watch_.reset();
  close_file();
  report_.set_aside.clear();
  report_.was_too_old = false;
  if (Status claimed = claim_again(); !claimed) return claimed.error();
  if (loss.leftover != Leftover::kKept) {
    const char* kind = loss.leftover == Leftover::kDamaged ? "damaged" : "replaced";
    if (Status moved = set_aside(kind, loss.what, now_ms); !moved) return moved.error();
  }
  if (Status opened = open_file(&last, now_ms); !opened) return opened.error();
  if (report_integrity_) start_integrity_check();
  if (on_reopened_) on_reopened_();
  return report_.set_aside;
}

Status SqliteStore::begin_boot(std::int64_t now_ms) {
  return in_transaction([&]() -> Status {
    if (Status added = statements_.add_boot.run(options_.boot_id, now_ms); !added) return added;
    const auto boot = statements_.find_boot.first_integer(options_.boot_id);
    if (!boot) return boot.error();
    boot_ = boot->value_or(0);
    return end_other_boots(now_ms);
  });
}

/// After a power cut the newest writes may be missing with good reason: only the same boot tells.
void SqliteStore::detect_lost_generations() {
  const auto written = directory_->read_generation_file(options_.boot_id);
  const auto there = last_generation();
  if (written && there && *written > *there) report_.newest_lost_generation = *written;
}

void SqliteStore::check_integrity(std::function<void(const IntegrityReport&)> report) {
  report_integrity_ = std::move(report);
  if (watch_) start_integrity_check();
}

void SqliteStore::start_integrity_check() {
  integrity_check_ =
      IntegrityCheck::start(directory_->database(), options_.integrity_check_pace, [this](IntegrityReport found) {
        if (!found.damage.empty()) {
          const Status marked = directory_->mark_damaged(found.damage);
          if (!marked) found.damage += fmt::format("; it could not be marked as damaged: {}", marked.error().message);
        }
        report_integrity_(found);
      });
}

void SqliteStore::use(OpenedDatabase opened) {
  database_ = std::move(opened.database);
  statements_ = std::move(opened.statements);
}

void SqliteStore::close_file() {
  integrity_check_.reset();
  checkpointer_.reset();
  column_statements_.clear();
  statements_ = {};
  database_ = {};
  transactions_.forget();
}

void SqliteStore::write_generation_file(std::uint64_t generation) {
  MutexLock lock(generation_file_mutex_);
  if (!directory_ || generation <= generation_in_file_) return;
  generation_in_file_ = generation;
  directory_->write_generation_file(options_.boot_id, generation);
}

}  // namespace topolet::store
