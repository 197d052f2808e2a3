// Checks that a plugin's tables can be read at all: their pointers, sizes and counts are the plugin's own.
#pragma once

#include <topolet/abi.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace topolet::plugin {

/// Returns the fault as the end of a sentence whose subject is the text: "is null, with a length of 3". Empty if it can
/// be read.
std::string fault_of_text(topolet_str text);
std::string fault_of_list(const void* items, std::size_t count);
/// Returns the fault of an array whose elements are `stride` apart and have at least `least` bytes.
std::string fault_of_array(const void* items, std::size_t count, std::size_t stride, std::size_t least);
/// Returns the fault of the size that a struct says it has.
std::string fault_of_size(std::uint32_t struct_size, std::size_t least);
/// Returns the fault of a field that is kept for later versions.
std::string fault_of_reserved(std::uint32_t reserved);

}  // namespace topolet::plugin
