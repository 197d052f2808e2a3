#include "store/schema.hpp"

#include <fmt/format.h>

namespace topolet::store {
namespace {

Result<std::int64_t> version_of(const Database& database) {
  return database.integer("PRAGMA user_version", "read the schema version");
}

Status check_application_id(const Database& database, std::int64_t version) {
  const auto application = database.integer("PRAGMA application_id", "read the application id");
  if (!application) return application.error();
  if (*application == kApplicationId) return {};
  const auto objects = database.integer("SELECT count(*) FROM sqlite_schema", "read the schema");
  if (!objects) return objects.error();
  if (*application == 0 && version == 0 && *objects == 0) return {};
  const auto own_tables = database.integer(
      "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('decided', 'outcome', 'ended', 'held_cpu', "
      "'pool_version', 'boot', 'retention')",
      "read the schema");
  if (!own_tables) return own_tables.error();
  if (*own_tables == 7) {
    return Error{Code::kDataLoss,
                 fmt::format("'{}' is damaged: it has topolet's tables, but not its application id", database.path())};
  }
  return Error{
      Code::kFailedPrecondition,
      fmt::format("'{}' is a database of another program; move it away, or set another state-dir", database.path())};
}

Status check_version(const Database& database, std::int64_t version, const std::vector<Migration>& steps) {
  const std::int64_t oldest = steps.front().version;
  const std::int64_t newest = steps.back().version;
  if (version == 0 || (version >= oldest && version <= newest)) return {};
  if (version > 0 && version < oldest) {
    return Error{kTooOld, fmt::format("'{}' has schema version {}, and this topoletd reads versions from {} on",
                                      database.path(), version, oldest)};
  }
  constexpr std::int64_t kNoTopoletHas = 10'000;
  if (version < 0 || version > kNoTopoletHas) {
    return Error{Code::kDataLoss, fmt::format("'{}' is damaged: its schema version is {}", database.path(), version)};
  }
  return Error{Code::kFailedPrecondition,
               fmt::format("'{}' has schema version {}, but this topoletd knows only versions up to {}; run the "
                           "topoletd that wrote it or a later one, or move the file away to begin a new one",
                           database.path(), version, newest)};
}

Status quick_check(const Database& database, const std::string& what) {
  const auto answer = database.text("PRAGMA quick_check" + what, "check the pages");
  if (!answer) return answer.error();
  if (*answer == "ok") return {};
  return Error{Code::kDataLoss, fmt::format("'{}' is damaged: {}", database.path(), *answer)};
}

/// To read all of a large file takes many seconds: of that only what a start needs is checked, which is never large.
/// IntegrityCheck reads the rest.
Status check_pages(const Database& database) {
  constexpr std::int64_t kCheckedWholePages = 1024;
  const auto pages = database.integer("PRAGMA page_count", "read its size");
  if (!pages) return pages.error();
  if (*pages <= kCheckedWholePages) return quick_check(database, "(1)");
  auto tables = database.prepare(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name IN ('allocation', 'allocation_row', 'whole_pool', "
      "'pod', 'told_capacity', 'reported_capacity', 'recent_size', 'boot', 'retention', 'sqlite_sequence')",
      "read the schema");
  if (!tables) return tables.error();
  while (true) {
    const auto more = tables->next();
    if (!more) return more.error();
    if (!*more) return {};
    if (Status checked = quick_check(database, fmt::format("('{}')", tables->text(0))); !checked) return checked;
  }
}

Status apply_migration(Database& database, const Migration& step) {
  const std::string purpose = fmt::format("bring the schema to version {}", step.version);
  const std::string sql = fmt::format("BEGIN IMMEDIATE; {}; PRAGMA user_version = {}; COMMIT;", step.sql, step.version);
  Status taken = database.execute(sql, purpose);
  if (!taken && database.in_transaction()) static_cast<void>(database.execute("ROLLBACK", purpose));
  // The steps suit every database of the version before: this one is not what its version says.
  const bool never_fits =
      !taken && (taken.error().code == Code::kInternal || taken.error().code == Code::kFailedPrecondition);
  if (never_fits) return Error{Code::kDataLoss, "damaged: " + taken.error().message};
  return taken;
}

}  // namespace

Status check_writable(const Database& database, const std::vector<Migration>& steps) {
  const auto version = version_of(database);
  if (!version) return version.error();
  if (Status owner = check_application_id(database, *version); !owner) return owner;
  if (Status known = check_version(database, *version, steps); !known) return known;
  return check_pages(database);
}

Status check_newest(const Database& database, const std::string& purpose) {
  const auto version = version_of(database);
  if (!version) return version.error();
  const std::int64_t newest = migrations().back().version;
  if (*version >= newest) return {};
  return Error{Code::kFailedPrecondition,
               fmt::format("'{}' has schema version {}, and {} needs {}; start this version of topoletd once with it",
                           database.path(), *version, purpose, newest)};
}

Status migrate(Database& database, const std::vector<Migration>& steps) {
  const auto version = version_of(database);
  if (!version) return version.error();
  for (const Migration& step : steps) {
    if (step.version <= *version) continue;
    if (Status taken = apply_migration(database, step); !taken) return taken;
  }
  return {};
}

}  // namespace topolet::store
