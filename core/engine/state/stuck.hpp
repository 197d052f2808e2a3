// Decides when a container that does not leave CPUs becomes stuck, and when that is over. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "core/engine/state/events.hpp"

namespace topolet::engine {

/// Makes the allocation what it is after that. Returns what the audit says of it: only what is new.
std::optional<AuditEntry> note_stuck(Allocation& allocation, const event::FoundStuck& found,
                                     std::chrono::milliseconds now);

/// Returns the audit entry of a container that stops to be stuck.
AuditEntry stuck_ended(const Allocation& allocation, std::string_view why, std::chrono::milliseconds now);

}  // namespace topolet::engine
