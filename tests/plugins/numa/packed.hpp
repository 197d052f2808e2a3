// Options of the plugin for tests that say where packed CPUs are taken.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace topolet::numa {

/// The options with strategy = packed, unless they have another.
inline std::vector<std::pair<std::string, std::string>> packed(
    std::vector<std::pair<std::string, std::string>> options = {}) {
  const bool has_one =
      std::any_of(options.begin(), options.end(), [](const auto& option) { return option.first == "strategy"; });
  if (!has_one) options.emplace_back("strategy", "packed");
  return options;
}

}  // namespace topolet::numa
