// A transition as rows of the store: of the audit, and of the ledger.
#pragma once

#include "core/base/result.hpp"
#include "core/engine/state/transition.hpp"
#include "store/store.hpp"

namespace topolet::engine {

/// Writes a transition's rows: all or, with an error, none if `store` is in a savepoint of its own.
Status write(store::Store& store, const Transition& transition);

}  // namespace topolet::engine
