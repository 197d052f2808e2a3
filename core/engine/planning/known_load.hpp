// What is known of the load: measured here, or told from outside.
#pragma once

#include <memory>

#include "core/engine/state/ledger.hpp"
#include "core/load/load.hpp"

namespace topolet::engine {

/// Returns what `source` has measured, with the capacities of nodes that somebody outside has told: these go before
/// what is measured here. Null if nothing is known.
std::shared_ptr<const load::Load> known_load(const load::Source& source, const Ledger& ledger);

/// The same, and nothing of what has been measured for too short a time to decide by.
std::shared_ptr<const load::Load> settled_load(const load::Source& source, const Ledger& ledger);

}  // namespace topolet::engine
