#include "core/plugin/guard/plugin_tables.hpp"

#include <fmt/format.h>

namespace topolet::plugin {
namespace {

constexpr std::size_t kAlignment = 8;

bool is_size_of_struct(std::size_t bytes) { return bytes % kAlignment == 0 && bytes <= TOPOLET_STRUCT_MAX; }

}  // namespace

std::string fault_of_text(topolet_str text) {
  if (text.ptr == nullptr && text.len > 0) return fmt::format("is null, with a length of {}", text.len);
  if (text.len > TOPOLET_TEXT_MAX)
    return fmt::format("has {} bytes; at most {} are allowed", text.len, TOPOLET_TEXT_MAX);
  return {};
}

std::string fault_of_list(const void* items, std::size_t count) {
  if (items == nullptr && count > 0) return fmt::format("is null, with a count of {}", count);
  if (count > TOPOLET_TABLE_MAX)
    return fmt::format("has {} elements; at most {} are allowed", count, TOPOLET_TABLE_MAX);
  if (count > 0 && reinterpret_cast<std::uintptr_t>(items) % kAlignment != 0)
    return fmt::format("begins at the address {}, which is no multiple of {}", items, kAlignment);
  return {};
}

std::string fault_of_array(const void* items, std::size_t count, std::size_t stride, std::size_t least) {
  if (std::string fault = fault_of_list(items, count); !fault.empty() || count == 0) return fault;
  if (stride < least) return fmt::format("has elements of only {} bytes; {} are needed", stride, least);
  if (!is_size_of_struct(stride)) {
    return fmt::format("has elements of {} bytes, which cannot be: a stride is a multiple of 8, at most {}", stride,
                       TOPOLET_STRUCT_MAX);
  }
  return {};
}

std::string fault_of_size(std::uint32_t struct_size, std::size_t least) {
  if (struct_size < least) return fmt::format("has a struct_size of {}; it must be at least {}", struct_size, least);
  if (!is_size_of_struct(struct_size)) {
    return fmt::format("has a struct_size of {}, which cannot be: it is a multiple of 8, at most {}", struct_size,
                       TOPOLET_STRUCT_MAX);
  }
  return {};
}

std::string fault_of_reserved(std::uint32_t reserved) {
  return reserved == 0 ? "" : fmt::format("has {} in its field `reserved`, which must be 0", reserved);
}

}  // namespace topolet::plugin
