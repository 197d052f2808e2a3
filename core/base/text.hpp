// Small pieces of the texts that people read.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace topolet {

/// Without the white space around it.
std::string_view trimmed(std::string_view text);

/// Returns a text from others, fit for a message: every byte that is not printable ASCII becomes '?', and the part
/// beyond `longest` bytes becomes "...".
std::string printable(std::string_view text, std::size_t longest);

/// "CPU" for one, "CPUs" for any other number.
std::string plural(std::string_view noun, std::size_t count);

/// "1 CPU", "2 CPUs".
std::string counted(std::size_t count, std::string_view noun);

/// "CPU 3", "CPUs 0-3": what an index set has, by name.
template <class Set>
std::string named(std::string_view noun, const Set& set) {
  return plural(noun, set.size()) + ' ' + set.to_string();
}

/// "a", "a or b", "a, b or c".
std::string or_list(const std::vector<std::string>& words);

}  // namespace topolet
