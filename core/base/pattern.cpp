#include "core/base/pattern.hpp"

#include <algorithm>
#include <cstddef>

namespace topolet {
namespace {

/// Each star takes as little as it can; where the rest then does not fit, the last star takes one character more.
bool matches(std::string_view pattern, std::string_view name) {
  constexpr std::size_t kNone = std::string_view::npos;
  std::size_t in_pattern = 0;
  std::size_t in_name = 0;
  std::size_t star = kNone;
  std::size_t taken_to = 0;
  while (in_name < name.size()) {
    if (in_pattern < pattern.size() && pattern[in_pattern] == '*') {
      star = in_pattern++;
      taken_to = in_name;
    } else if (in_pattern < pattern.size() && pattern[in_pattern] == name[in_name]) {
      ++in_pattern;
      ++in_name;
    } else if (star != kNone) {
      in_pattern = star + 1;
      in_name = ++taken_to;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', in_pattern) == kNone;
}

}  // namespace

const std::string* first_match(const std::vector<std::string>& patterns, std::string_view name) {
  const auto found = std::find_if(patterns.begin(), patterns.end(),
                                  [name](const std::string& pattern) { return matches(pattern, name); });
  return found == patterns.end() ? nullptr : &*found;
}

}  // namespace topolet
