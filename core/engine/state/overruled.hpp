// What it is to a container that another hand than topolet's sets its CPUs: when it begins, and when it is over. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "core/engine/state/events.hpp"

namespace topolet::engine {

/// Makes the allocation what it is after that was seen. Returns what the audit says of it, if anything.
std::optional<AuditEntry> note_seen(Allocation& allocation, const event::SeenInKernel& seen,
                                    std::chrono::milliseconds now);

/// What the audit says of one that is overruled and is not from now on.
AuditEntry overruled_ended(const Allocation& allocation, std::string_view why, std::chrono::milliseconds now);

}  // namespace topolet::engine
