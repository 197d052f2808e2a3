// What it is to a container that it does not leave CPUs: when it begins, and when it is over. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "core/engine/state/events.hpp"

namespace topolet::engine {

/// Makes the allocation what it is after that. Returns what the audit says of it: only what is new.
std::optional<AuditEntry> note_stuck(Allocation& allocation, const event::FoundStuck& found,
                                     std::chrono::milliseconds now);

/// What the audit says of one that is stuck and is not from now on.
AuditEntry stuck_ended(const Allocation& allocation, std::string_view why, std::chrono::milliseconds now);

}  // namespace topolet::engine
