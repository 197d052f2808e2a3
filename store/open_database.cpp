#include "store/open_database.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "store/schema.hpp"

namespace topolet::store {
namespace {

Status set_up(Database& database, Durability durability) {
  const std::string synchronous = durability == Durability::kFull ? "FULL" : "NORMAL";
  // Before anything is written: a file that has tables stays as it was made.
  if (Status set = database.execute("PRAGMA auto_vacuum = INCREMENTAL", "let the file shrink"); !set) return set;
  const auto journal = database.text("PRAGMA journal_mode = WAL", "switch to a write-ahead log");
  if (!journal) return journal.error();
  if (*journal != "wal") {
    return Error{Code::kUnavailable, fmt::format("'{}' cannot have a write-ahead log, as SQLite needs shared memory "
                                                 "beside it; put state-dir on a local file system",
                                                 database.path())};
  }
  // The pages that a savepoint may have to undo would otherwise go to a file of their own when they are many. A log
  // that grew long once is cut when it begins anew.
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

Result<OpenedDatabase> try_to_read(const std::filesystem::path& file, Database::Access access) {
  auto database = Database::open(file, access);
  if (!database) return database.error();
  if (Status usable = check_writable(*database); !usable) return usable.error();
  if (Status newest = check_newest(*database, "reading what is held"); !newest) return newest.error();
  auto statements = prepare_statements(*database);
  if (!statements) return statements.error();
  return OpenedDatabase{*std::move(database), *std::move(statements)};
}

}  // namespace

Result<OpenedDatabase> open_database(const StateDirectory& directory, Durability durability) {
  if (const auto why = directory.damage_mark()) return Error{Code::kDataLoss, *why};
  if (Status prepared = directory.prepare_database(); !prepared) return prepared.error();
  if (Status whole = directory.check_size(); !whole) return whole.error();
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
  database->checkpoint();
  return OpenedDatabase{*std::move(database), *std::move(statements)};
}

Result<OpenedDatabase> open_database_to_read(const std::filesystem::path& file) {
  Error failure;
  // SQLite has to write beside a file that has a log. Without one, all there is is in the file itself.
  for (const auto access : {Database::Access::kReadOnly, Database::Access::kImmutable}) {
    std::error_code no_log;
    const auto log = std::filesystem::file_size(file.string() + "-wal", no_log);
    if (access == Database::Access::kImmutable && !no_log && log > 0) break;
    auto opened = try_to_read(file, access);
    if (opened) return opened;
    failure = opened.error();
  }
  return failure;
}

Result<OpenedDatabase> open_database_in_memory() {
  auto database = Database::open_in_memory();
  if (!database) return database.error();
  if (Status set = database->execute("PRAGMA foreign_keys = ON", "set the pragmas"); !set) return set.error();
  if (Status migrated = migrate(*database); !migrated) return migrated.error();
  auto statements = prepare_statements(*database);
  if (!statements) return statements.error();
  return OpenedDatabase{*std::move(database), *std::move(statements)};
}

}  // namespace topolet::store
