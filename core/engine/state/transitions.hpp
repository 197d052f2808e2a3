// Ledger × event → transition, as a pure function.
#pragma once

#include <chrono>
#include <string_view>

#include "core/engine/state/events.hpp"
#include "core/engine/state/ledger.hpp"
#include "core/engine/state/transition.hpp"
#include "core/placement/placement_rules.hpp"

namespace topolet::engine {

/// What the event changes; nothing where it is about a container that holds nothing any more. Same ledger, rules, time
/// and event: same transition.
Transition compute_transition(const Ledger& ledger, const placement::PlacementRules& rules,
                              std::chrono::milliseconds now, const Event& event);

/// Whether its CPUs are kept for its next attempt when it ends. Where they are not, nobody needs to ask for its exit
/// code. One that was removed before it was started has no next attempt that would miss them.
bool keeps_cpus_at_end(const Allocation& allocation, const placement::PlacementRules& rules,
                       std::string_view cause = "exited");

}  // namespace topolet::engine
