// SetCapacity of the control socket, which sets or clears the effective capacity of a NUMA node.
#pragma once

#include <chrono>

#include "core/engine/handlers/capacity_request.hpp"
#include "core/engine/handlers/handler_deps.hpp"

namespace topolet::engine {

/// Checks the request at `now` (wall clock) and commits it; `then` runs once it is durable. Errors: NOT_FOUND for a
/// node that the machine does not have, FAILED_PRECONDITION for one without CPUs, INVALID_ARGUMENT for a value that
/// cannot be.
void handle_set_capacity(const HandlerDeps& deps, const CapacityRequest& request, std::chrono::milliseconds now,
                         const OnCapacity& then);

}  // namespace topolet::engine
