// The verdicts of a decision as the column decided.verdicts keeps them; store/README.md gives the shape.
#pragma once

#include <string>

#include "core/base/result.hpp"
#include "core/placement/verdicts.hpp"

namespace topolet::engine {

/// Compact JSON. Bytes that are not UTF-8, as a plugin's reason may have, become U+FFFD.
std::string encode_verdicts(const placement::Verdicts& verdicts);

/// DATA_LOSS if `text` is nothing that encode_verdicts() writes.
Result<placement::Verdicts> decode_verdicts(const std::string& text);

}  // namespace topolet::engine
