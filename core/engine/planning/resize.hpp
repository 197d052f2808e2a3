// Plans the resize of a container.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <variant>

#include "core/engine/planning/placer.hpp"
#include "core/engine/state/events.hpp"
#include "core/engine/state/ledger.hpp"

namespace topolet::engine {

/// Returns true if it is to have another number of CPUs of its own than it has. `cpus`: as many as it would get as a
/// new one.
bool changes_cpu_count(const Allocation& before, const placement::Workload& requested, std::uint32_t cpus);

/// The time by the wall clock if others may be moved for a better place; nothing: they may not.
using MakesRoom = std::optional<std::chrono::milliseconds>;

/// Returns the event to be committed, or the decision that denies it. `requested`: the workload as it is to be, with
/// the nodes of its pod; its CPUs from the kubelet are those of before.
///
/// It keeps its mode, unless an exclusive container no longer requests whole CPUs. One that has CPUs of its own keeps
/// these, and gets more beside them.
std::variant<Event, placement::Decision> plan_resize(const Placer& placer, const Ledger& ledger,
                                                     const Allocation& before, const placement::Workload& requested,
                                                     MakesRoom makes_room = {});

}  // namespace topolet::engine
