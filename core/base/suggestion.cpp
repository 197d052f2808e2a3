#include "core/base/suggestion.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace topolet {

std::size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> before(to.size() + 1);
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::vector<std::size_t> next(to.size() + 1, i + 1);
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::size_t changed = row[j] + (from[i] == to[j] ? 0 : 1);
      next[j + 1] = std::min({changed, row[j + 1] + 1, next[j] + 1});
      const bool is_swapped = i > 0 && j > 0 && from[i] == to[j - 1] && from[i - 1] == to[j];
      if (is_swapped) next[j + 1] = std::min(next[j + 1], before[j - 1] + 1);
    }
    before = std::exchange(row, std::move(next));
  }
  return row.back();
}

bool is_near(std::size_t distance, std::string_view wanted, std::string_view name) {
  return distance <= std::max<std::size_t>(1, std::max(wanted.size(), name.size()) / 3) &&
         distance < std::min(wanted.size(), name.size());
}

std::optional<std::size_t> near_distance(std::string_view wanted, std::string_view name) {
  // Names from outside may be long, and so would the comparison be.
  const std::size_t least = std::max(wanted.size(), name.size()) - std::min(wanted.size(), name.size());
  if (!is_near(least, wanted, name)) return std::nullopt;
  const std::size_t distance = edit_distance(wanted, name);
  return is_near(distance, wanted, name) ? std::optional(distance) : std::nullopt;
}

std::string suggestion(std::string_view wanted, const std::vector<std::string>& known, const std::string& prefix) {
  const std::string* const found =
      nearest_of(known, [wanted](const std::string& name) { return near_distance(wanted, name); });
  return found != nullptr ? "; did you mean " + prefix + *found + "?" : std::string();
}

}  // namespace topolet
