#include "store/inspect.hpp"

#include <system_error>

#include "store/database.hpp"
#include "store/schema.hpp"
#include "store/state_directory.hpp"

namespace topolet::store {

Result<bool> inspect_state_directory(const std::filesystem::path& directory) {
  const auto use = StateDirectory::inspect(directory);
  if (!use) return use.error();
  if (*use != StateDirectory::Use::kHasDatabase) return *use == StateDirectory::Use::kLocked;
  const std::filesystem::path file = directory / "state.db";
  // Nothing is written beside the file. The contents of a log are not seen either: the rest may not fit together.
  const auto database = Database::open(file, Database::Access::kImmutable);
  const Status writable = database ? check_writable(*database) : Status(database.error());
  std::error_code no_log;
  const auto log = std::filesystem::file_size(file.string() + "-wal", no_log);
  const bool has_log = !no_log && log > 0;
  const bool may_be_in_log =
      has_log && !writable && (writable.error().code == Code::kDataLoss || writable.error().code == kTooOld);
  if (writable || may_be_in_log) return false;
  return writable.error();
}

}  // namespace topolet::store
