// Reading a small file.
#pragma once

#include <string>

#include "core/base/result.hpp"

namespace topolet::api {

/// The whole of a file of at most 4 MiB. The error, NOT_FOUND, PERMISSION_DENIED or INVALID_ARGUMENT, names the file.
Result<std::string> read_text_file(const std::string& path);

}  // namespace topolet::api
