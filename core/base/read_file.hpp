// Reading a small file whole.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "core/base/result.hpp"

namespace topolet {

/// Returns the text of a regular file. Anything else is refused at once, a device or a FIFO as well, but /dev/null is
/// empty. NOT_FOUND, PERMISSION_DENIED, DATA_LOSS, INVALID_ARGUMENT if it is not a regular file, and RESOURCE_EXHAUSTED
/// if it has more than `max_bytes`. The message does not name the file.
Result<std::string> read_file(const std::filesystem::path& file, std::size_t max_bytes);

}  // namespace topolet
