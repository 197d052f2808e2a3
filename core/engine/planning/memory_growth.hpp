// A running container asks for more memory or more huge pages, or for another number of CPUs, while its memory stays on
// the nodes where it is.
#pragma once

#include <optional>
#include <vector>

#include "core/engine/planning/placer.hpp"
#include "core/engine/state/ledger.hpp"
#include "core/placement/decision.hpp"

namespace topolet::engine {

/// Returns true if the policies are asked about the memory of a container that has asked for something else: its memory
/// is bound by them, and it needs more than before. Nobody else can be refused memory that it may take from any node.
bool needs_memory_decision(const Allocation& before, const placement::Demand& requested);

struct MemoryDecision {
  placement::Decision decision;
  std::vector<placement::ContainerKey> yielding = {};  ///< failed containers that give up what is kept for them
};

/// Decides as if the container were new and could only have the CPUs that it has. The memory nodes of the decision
/// include those that a running container has already, because it only gains nodes. Denied if no candidate has its
/// CPUs, its present memory nodes and room for what it requests, or if policies reject all that do. Nothing if it has
/// no CPU that may be used at present.
std::optional<MemoryDecision> decide_on_memory(const Placer& placer, const Ledger& ledger, const Allocation& before,
                                               const placement::Workload& requested);

/// Plans as many CPUs of its own as it requests now, or that it shares. The nodes of its memory, which it keeps, count:
/// together with those that it would gain they must be a candidate that policies accept, or it is denied.
Plan plan_other_size(const Placer& placer, const Ledger& ledger, const Allocation& before,
                     const placement::Workload& requested, Placer::Constraints constraints);

}  // namespace topolet::engine
