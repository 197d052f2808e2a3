// Reads the lines that `topolet simulate --json` prints.
#pragma once

#include <string>

#include "core/base/result.hpp"
#include "core/simulate/simulation.hpp"

namespace topolet::moves {

/// The fields that the judge looks at. INVALID_ARGUMENT for a line that is not such an object.
Result<simulate::OperationResult> parse_answer(const std::string& line);

}  // namespace topolet::moves
