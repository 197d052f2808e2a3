// The symbols that a shared object exports, read from its dynamic symbol table without loading it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/result.hpp"

namespace topolet::plugin_checker {

/// Returns the names of the symbols that others can link to, sorted. INVALID_ARGUMENT if the file is not a whole ELF
/// file of this machine's word size.
Result<std::vector<std::string>> exported_symbols(const std::filesystem::path& file);

}  // namespace topolet::plugin_checker
