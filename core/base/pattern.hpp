// Patterns of names, in which * is any text, also none, and no other character is special.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace topolet {

/// The first of `patterns` that `name` matches as a whole; null if it matches none.
const std::string* first_match(const std::vector<std::string>& patterns, std::string_view name);

}  // namespace topolet
