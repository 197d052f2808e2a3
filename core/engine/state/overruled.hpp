// Decides when a container whose CPUs something else than topolet sets becomes overruled, and when that is over. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "core/engine/state/events.hpp"

namespace topolet::engine {

/// Makes the allocation what it is after that was seen. Returns what the audit says of it, if anything.
std::optional<AuditEntry> note_seen(Allocation& allocation, const event::SeenInKernel& seen,
                                    std::chrono::milliseconds now);

/// Returns the audit entry of a container that stops to be overruled.
AuditEntry overruled_ended(const Allocation& allocation, std::string_view why, std::chrono::milliseconds now);

}  // namespace topolet::engine
