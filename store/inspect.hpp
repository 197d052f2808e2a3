// Finds out if a store could be opened, without opening one.
#pragma once

#include <filesystem>

#include "core/base/result.hpp"
#include "store/schema.hpp"

namespace topolet::store {

/// Returns the error that Store::open() would return for the directory, as far as it can be found without reading all
/// that is held. Changes nothing. DATA_LOSS: the database is damaged, kTooOld: its schema is too old; open() would
/// begin a new one. True if a topoletd runs with the directory, which is fine.
Result<bool> inspect_state_directory(const std::filesystem::path& directory);

/// True of an error of Store::open() that somebody has configured: the state directory is another program's, another
/// topoletd's, or open to others. Any other error, as of a full disk, may pass by itself.
inline bool is_misconfigured(const Error& error) {
  return error.code == Code::kFailedPrecondition || error.code == Code::kInvalidArgument;
}

}  // namespace topolet::store
