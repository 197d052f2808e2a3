// Suggestions of names that somebody who wrote an unknown one may have meant.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace topolet {

/// Returns the number of letters to add, remove, change or swap with the next one to turn one text into the other.
std::size_t edit_distance(std::string_view from, std::string_view to);

/// Returns true if texts of that distance are near: they differ in at most a third of their letters, or in one, and
/// have something in common.
bool is_near(std::size_t distance, std::string_view wanted, std::string_view name);

/// The distance of two texts that are near.
std::optional<std::size_t> near_distance(std::string_view wanted, std::string_view name);

/// The one of `known` with the least distance; null if `distance_of`, which is nothing for a name that is not near,
/// knows none.
template <class DistanceOf>
const std::string* nearest_of(const std::vector<std::string>& known, const DistanceOf& distance_of) {
  const std::string* found = nullptr;
  std::size_t least = 0;
  for (const std::string& name : known) {
    const std::optional<std::size_t> distance = distance_of(name);
    if (!distance || (found != nullptr && *distance >= least)) continue;
    found = &name;
    least = *distance;
  }
  return found;
}

/// "; did you mean X?" for the closest of `known` that is near; empty if there is none. `prefix` is written before X.
std::string suggestion(std::string_view wanted, const std::vector<std::string>& known, const std::string& prefix = "");

}  // namespace topolet
