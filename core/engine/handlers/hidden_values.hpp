#pragma once

#include <string>
#include <utility>
#include <vector>

namespace topolet::engine {

/// Returns the runtime's words on a create, without the values of the container's variables, which a runtime may quote
/// ("device error: VALUE: unknown device"): in place of each value, and of each item of a list, the variable's name.
/// Values shorter than four bytes stay, as they are in any text.
std::string without_values(std::string text, const std::vector<std::pair<std::string, std::string>>& env);

}  // namespace topolet::engine
