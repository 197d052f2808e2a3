#include "core/placement/runtime_handlers.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/pattern.hpp"

namespace topolet::placement {

std::string handler_name(std::string_view handler) { return std::string(handler.empty() ? kDefaultHandler : handler); }

std::string RuntimeHandlers::obstacle(std::string_view handler) const {
  const std::string name = handler_name(handler);
  if (only) {
    const bool is_listed = std::find(only->begin(), only->end(), name) != only->end();
    return is_listed ? "" : "placement.handlers does not list it";
  }
  const std::string* const pattern = first_match(foreign, name);
  return pattern == nullptr ? "" : fmt::format("placement.foreign-handlers = {}", *pattern);
}

}  // namespace topolet::placement
