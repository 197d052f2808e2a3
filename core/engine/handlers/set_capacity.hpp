// SetCapacity of the control socket, which sets or clears the effective capacity of a NUMA node.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "core/engine/handlers/capacity_request.hpp"
#include "core/engine/handlers/handler_deps.hpp"

namespace topolet::engine {

/// Checks the request at `now` (wall clock) and commits it; `then` runs once it is durable. Errors: NOT_FOUND for a
/// node that the machine does not have, FAILED_PRECONDITION for one without CPUs, INVALID_ARGUMENT for a value that
/// cannot be.
void handle_set_capacity(const HandlerDeps& deps, const CapacityRequest& request, std::chrono::milliseconds now,
                         const OnCapacity& then);

/// Commits what was measured of a node (no `milli`: nominal again), unless somebody outside tells another capacity. It
/// counts for kMeasuredStays.
void handle_measured_capacity(const HandlerDeps& deps, std::uint32_t node, std::optional<std::int64_t> milli,
                              std::chrono::milliseconds now);

}  // namespace topolet::engine
