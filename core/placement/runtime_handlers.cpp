#include "core/placement/runtime_handlers.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>

namespace topolet::placement {

std::string handler_name(std::string_view handler) { return std::string(handler.empty() ? kDefaultHandler : handler); }

std::string RuntimeHandlers::obstacle(std::string_view handler) const {
  const std::string name = handler_name(handler);
  if (only) {
    const bool is_listed = std::find(only->begin(), only->end(), name) != only->end();
    return is_listed ? "" : "placement.handlers does not list it";
  }
  const auto pattern = std::find_if(foreign.begin(), foreign.end(), [&name](const std::string& each) {
    return ::fnmatch(each.c_str(), name.c_str(), FNM_NOESCAPE) == 0;
  });
  return pattern == foreign.end() ? "" : fmt::format("placement.foreign-handlers = {}", *pattern);
}

}  // namespace topolet::placement
