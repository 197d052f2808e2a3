#pragma once

#include <cstddef>

namespace topolet {

/// Returns the memory that the process has in RAM (VmRSS of proc(5)); 0 if that cannot be read.
std::size_t resident_bytes();

}  // namespace topolet
