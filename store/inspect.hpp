// Whether a store could be opened, found without opening one.
#pragma once

#include <filesystem>

#include "core/base/result.hpp"

namespace topolet::store {

/// What Store::open() would return for the directory, but for what only reading all that is held shows. Changes
/// nothing. DATA_LOSS: the database is damaged, and open() would begin a new one. True if a topoletd runs with the
/// directory, which is fine.
Result<bool> inspect_state_directory(const std::filesystem::path& directory);

/// True of an error of Store::open() that somebody has configured: the state directory is another program's, another
/// topoletd's, or open to others. Any other error, as of a full disk, may pass by itself.
inline bool is_misconfigured(const Error& error) {
  return error.code == Code::kFailedPrecondition || error.code == Code::kInvalidArgument;
}

}  // namespace topolet::store
