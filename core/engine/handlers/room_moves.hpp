// Containers that make room for one that is created or resized, as a handler waits for them.
#pragma once

#include <functional>
#include <string>

#include "core/engine/handlers/handler_deps.hpp"

namespace topolet::engine {

/// Returns true if containers that could have stayed where they were make room for the one of `key`, and have not left
/// yet, whichever run of the daemon has moved them.
bool is_room_being_made(const Ledger& ledger, const placement::ContainerKey& key);

/// Takes back the moves of those that have not left. `newcomer`: for whom they make room. `why`: for the reason. `then`
/// runs when they are known not to be on the CPUs where they were to go, or do not answer.
void withdraw_moves_for_room(const HandlerDeps& deps, const placement::Workload& newcomer, const std::string& why,
                             std::function<void()> then);

}  // namespace topolet::engine
