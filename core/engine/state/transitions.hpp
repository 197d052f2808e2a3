// Ledger × event → transition, as a pure function.
#pragma once

#include <chrono>

#include "core/engine/state/events.hpp"
#include "core/engine/state/ledger.hpp"
#include "core/engine/state/transition.hpp"
#include "core/placement/placement_rules.hpp"

namespace topolet::engine {

/// Returns the changes of the event; nothing if it is about a container that holds nothing any more. Same ledger,
/// rules, time and event: same transition.
Transition compute_transition(const Ledger& ledger, const placement::PlacementRules& rules,
                              std::chrono::milliseconds now, const Event& event);

}  // namespace topolet::engine
