#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "core/audit/time_text.hpp"
#include "core/base/clock.hpp"
#include "core/base/file_exists.hpp"
#include "core/base/rfc3339.hpp"
#include "core/cli/command.hpp"
#include "core/cli/options.hpp"
#include "core/cli/state_database.hpp"
#include "store/retention.hpp"
#include "store/retention_pace.hpp"
#include "store/schema.hpp"
#include "store/state_directory.hpp"

namespace topolet::cli {
namespace {

namespace fs = std::filesystem;

Result<std::int64_t> mark_of(const Invocation& invocation) {
  const std::int64_t now_ms = Clock().wall().count();
  if (invocation.has("older-than")) {
    const auto age = audit::parse_duration(invocation.text("older-than"));
    if (!age) return Error{Code::kInvalidArgument, "--older-than: " + age.error().message};
    return now_ms - *age;
  }
  const auto options = configuration(invocation);
  if (!options) return options.error();
  const auto keep = options->daemon.retention.keep;
  if (keep.count() > 0) return now_ms - keep.count();
  return Error{Code::kInvalidArgument,
               "daemon.keep of the configuration is 0: say what to delete, as in --older-than 7d"};
}

Result<store::Database> open_to_write(const Invocation& invocation, const fs::path& file) {
  // A missing file is reported as by every other command.
  if (const auto readable = open_read_only(invocation); !readable) return readable.error();
  auto database = store::Database::open(file, store::Database::Access::kReadWrite);
  if (!database) return database.error();
  if (Status usable = store::check_writable(*database); !usable) return usable.error();
  if (Status newest = store::check_newest(*database, "pruning"); !newest) return newest.error();
  if (Status set = database->execute("PRAGMA foreign_keys = ON", "prune"); !set) return set.error();
  return database;
}

Result<std::int64_t> prune_in_transaction(store::Database& database, std::int64_t mark_ms, std::int64_t decisions) {
  if (Status begun = database.execute("BEGIN IMMEDIATE", "prune"); !begun) return begun.error();
  auto deleted = store::prune_slice(database, mark_ms, decisions);
  const Status ended = database.execute(deleted ? "COMMIT" : "ROLLBACK", "prune");
  if (deleted && !ended) return ended.error();
  return deleted;
}

/// As topoletd does it, which may be writing.
Status prune(store::Database& database, std::int64_t mark_ms) {
  store::RetentionPace pace;
  while (true) {
    const auto began = std::chrono::steady_clock::now();
    const auto deleted = prune_in_transaction(database, mark_ms, pace.rows());
    if (!deleted) return deleted.error();
    if (*deleted == 0) return {};
    pace.note({.has_more = true, .rows = *deleted, .deleted = *deleted}, std::chrono::steady_clock::now() - began);
    std::this_thread::sleep_for(store::RetentionPace::kPause);
  }
}

std::string mebibytes(std::int64_t bytes) { return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20)); }

std::string decisions(std::int64_t count) { return fmt::format("{} decision{}", count, count == 1 ? "" : "s"); }

/// Writes the file anew without its free pages.
Status compact(store::Database& database) {
  Status done = database.execute("PRAGMA auto_vacuum = INCREMENTAL; VACUUM", "compact the database");
  if (done) database.checkpoint();
  return done;
}

}  // namespace

void declare_prune(Options& options) {
  declare_database_file(options);
  options.add_options()("older-than", boost::program_options::value<std::string>()->value_name("DURATION"),
                        "Delete decisions that ended longer ago than this, as in 7d or 12h; daemon.keep of topoletd's "
                        "configuration unless given.")("dry-run", "Only say what would be deleted.")(
      "compact", "Then write the file anew, without the pages that became free. Not while topoletd runs.");
}

Status prune(const Invocation& invocation) {
  const auto mark = mark_of(invocation);
  if (!mark) return mark.error();
  const auto file = database_file(invocation);
  if (!file) return file.error();
  auto database = open_to_write(invocation, *file);
  if (!database) return database.error();
  // Held until the end: a topoletd that started meanwhile would wait for the whole of it.
  std::optional<store::StateDirectory> directory;
  const bool compacts = invocation.has("compact") && !invocation.has("dry-run");
  if (compacts && file->filename() == "state.db") {
    auto claimed = store::StateDirectory::claim(file->has_parent_path() ? file->parent_path() : fs::path("."),
                                                store::StateDirectory::IfAbsent::kRefuse);
    if (!claimed) return Error{claimed.error().code, "cannot compact: " + claimed.error().message};
    directory.emplace(*std::move(claimed));
  }
  const auto forecast = store::forecast_prune(*database, *mark);
  if (!forecast) return forecast.error();
  const std::string what = fmt::format("{} that had ended before {}", decisions(forecast->decisions),
                                       rfc3339_ms(std::chrono::milliseconds(*mark)));
  if (invocation.has("dry-run")) {
    fmt::print("would delete {}, and keep {}\n", what, forecast->decisions_left);
    return {};
  }
  if (Status pruned = prune(*database, *mark); !pruned) return pruned;
  fmt::print("deleted {}, and kept {}\n", what, forecast->decisions_left);
  if (compacts) {
    if (Status done = compact(*database); !done) return done;
  }
  const auto size = store::size_of(*database);
  if (!size) return size.error();
  fmt::print("the database has {} in use and {} free\n", mebibytes(size->used_bytes), mebibytes(size->free_bytes));
  return {};
}

}  // namespace topolet::cli
