#include "core/base/pattern.hpp"

#include <fnmatch.h>

#include <algorithm>

namespace topolet {

const std::string* first_match(const std::vector<std::string>& patterns, std::string_view name) {
  const std::string whole(name);
  const auto found = std::find_if(patterns.begin(), patterns.end(), [&whole](const std::string& pattern) {
    return ::fnmatch(pattern.c_str(), whole.c_str(), FNM_NOESCAPE) == 0;
  });
  return found == patterns.end() ? nullptr : &*found;
}

}  // namespace topolet
