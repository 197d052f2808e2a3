// What becomes of a container that is resized while it exists.
#pragma once

#include <cstdint>
#include <variant>

#include "core/engine/planning/placer.hpp"
#include "core/engine/state/events.hpp"
#include "core/engine/state/ledger.hpp"

namespace topolet::engine {

/// Whether it is to have another number of CPUs of its own than it has. `cpus`: as many as it would get as a new one.
bool changes_cpu_count(const Allocation& before, const placement::Workload& requested, std::uint32_t cpus);

/// What is to be committed, or the decision that denies it. `requested`: as it is to be, with the nodes of its pod; the
/// kubelet says of its CPUs what it has said before.
///
/// It keeps its mode, unless an exclusive container no longer requests whole CPUs. One that has CPUs of its own keeps
/// these, and gets more beside them.
std::variant<Event, placement::Decision> plan_resize(const Placer& placer, const Ledger& ledger,
                                                     const Allocation& before, const placement::Workload& requested);

}  // namespace topolet::engine
