// The YAML that CDI specs are written in.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace topolet::gpu {

/// Reads block mappings and sequences, plain and quoted scalars of one line, and flow collections of one line;
/// comments; the first of several documents. All scalars but null are strings. No anchors, tags or multi-line scalars:
/// throws std::invalid_argument with the line. A whole YAML library in the daemon's process would be more than these
/// need.
nlohmann::json read_yaml(std::string_view text);

}  // namespace topolet::gpu
