// Which decision says why a container is where it is.
#pragma once

#include <cstdint>
#include <optional>

#include "core/base/result.hpp"
#include "store/database.hpp"

namespace topolet::audit {

/// The decision whose candidates and verdicts put a container where `decision` has it: that one itself, or the newest
/// before it that judged candidates. A container that returned to where it had been, or whose move was undone, is there
/// because of the decision that had put it there, not because of the move. Nothing if none judged any.
Result<std::optional<std::int64_t>> judged_in(const store::Database& database, std::int64_t decision);

}  // namespace topolet::audit
