// Reads the YAML in which CDI specs may be written, through libyaml.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace topolet::gpu {

/// Returns the first document of `text` (UTF-8) as JSON; null if there is none. Every scalar is a string but for an
/// unquoted null, '~' or nothing at all; of a key that occurs twice the last value counts. Throws std::invalid_argument
/// with the line for text that is not YAML, for anchors, aliases and tags, for keys that are not scalars, and for
/// documents nested more than 64 levels deep or of more than a million values.
nlohmann::json read_yaml(std::string_view text);

}  // namespace topolet::gpu
