#pragma once

#include <iterator>
#include <string>

namespace topolet {

/// Finds in a map of full ids the one that `id` is, or is an unambiguous beginning of, as container runtimes do.
/// end() if there is none or more than one.
template <class Map>
typename Map::const_iterator find_by_prefix(const Map& map, const std::string& id) {
  const auto first = map.lower_bound(id);
  if (id.empty() || first == map.end() || first->first.compare(0, id.size(), id) != 0) return map.end();
  if (first->first == id) return first;
  const auto second = std::next(first);
  const bool ambiguous = second != map.end() && second->first.compare(0, id.size(), id) == 0;
  return ambiguous ? map.end() : first;
}

}  // namespace topolet
