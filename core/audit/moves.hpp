// Who ran somewhere else than before, and because of whom.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/audit/history.hpp"
#include "core/audit/move_effects.hpp"
#include "core/audit/record.hpp"

namespace topolet::audit {

struct Moved {
  std::int64_t at_ms = 0;
  Record record;  ///< as it is from then on
  CpuSet from;
  CpuSet to;
  bool with_pool = false;  ///< it follows the pool, which changed; otherwise it was decided
  std::string kind;        ///< as in core/placement/move_kind.hpp
  std::string cause;       ///< of the pool's change, as in `pool_version`; of a decision: its event
  std::optional<std::int64_t>
      caused_by;  ///< the decision that was made, changed or ended; none where no decision did it
  MoveEffects effects = {};
};

/// After `since_ms` and up to `until_ms`, in their order; from when the history is kept, if that is later. Reads as
/// much as was decided in that time.
Result<std::vector<Moved>> moves_between(const History& history, std::int64_t since_ms, std::int64_t until_ms);

}  // namespace topolet::audit
