// Computes what is taken back at a release: a part of compute_transition().
#pragma once

#include "core/engine/state/draft.hpp"
#include "core/engine/state/events.hpp"
#include "core/engine/state/ledger.hpp"

namespace topolet::engine {

/// Writes down in the draft that nobody's memory is bound any more, that BestEffort containers are not narrowed, and,
/// if the event says so, that everybody runs on all CPUs of the pool, which then are all that are not reserved. A
/// container whose CPUs the kubelet has named keeps them.
void release(const Ledger& ledger, const event::Released& event, Draft& draft);

}  // namespace topolet::engine
