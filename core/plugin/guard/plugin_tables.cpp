#include "core/plugin/guard/plugin_tables.hpp"

#include <fmt/format.h>

namespace topolet::plugin {

std::string fault_of_text(topolet_str text) {
  if (text.ptr == nullptr && text.len > 0) return fmt::format("is null, with a length of {}", text.len);
  if (text.len > kSaneTextBytes) return fmt::format("has {} bytes; at most {} are allowed", text.len, kSaneTextBytes);
  return {};
}

std::string fault_of_list(const void* items, std::size_t count) {
  if (items == nullptr && count > 0) return fmt::format("is null, with a count of {}", count);
  if (count > kSaneCount) return fmt::format("has {} elements; at most {} are allowed", count, kSaneCount);
  return {};
}

std::string fault_of_array(const void* items, std::size_t count, std::size_t stride, std::size_t least) {
  if (std::string fault = fault_of_list(items, count); !fault.empty() || count == 0) return fault;
  if (stride < least) return fmt::format("has elements of only {} bytes; {} are needed", stride, least);
  if (stride > kSaneStructBytes || stride % alignof(void*) != 0)
    return fmt::format("has elements of {} bytes, which cannot be", stride);
  return {};
}

std::string fault_of_size(std::uint32_t struct_size, std::size_t least) {
  if (struct_size < least) return fmt::format("has a struct_size of {}; it must be at least {}", struct_size, least);
  if (struct_size > kSaneStructBytes) return fmt::format("has a struct_size of {}, which cannot be", struct_size);
  return {};
}

}  // namespace topolet::plugin
