// The parts that every handler is built from.
//
// The room core/engine/handlers, namespace topolet::engine: one object for each operation, which plans, commits, admits
// and commits the outcome. It may include every other room of the engine; none of
// them may include it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/log_fwd.hpp"
#include "core/engine/converge/cpuset_writer.hpp"
#include "core/engine/converge/exits.hpp"
#include "core/engine/converge/mover.hpp"
#include "core/engine/converge/placed_handlers.hpp"
#include "core/engine/converge/rebalancer.hpp"
#include "core/engine/converge/reconciler.hpp"
#include "core/engine/handlers/awaited_outcomes.hpp"
#include "core/engine/handlers/kubelet_static.hpp"
#include "core/engine/loop.hpp"
#include "core/engine/planning/placer.hpp"
#include "core/engine/state/committer.hpp"
#include "core/operations/operation.hpp"

namespace topolet::engine {

/// The parts of the engine that handlers work with. All of it lives on the loop's thread and outlives them.
struct HandlerDeps {
  Loop& loop;
  Committer& committer;
  const Placer& placer;
  CpusetWriter& cpusets;
  Mover& mover;
  Exits& exits;
  Rebalancer& rebalancer;
  Reconciler& reconciler;
  PlacedHandlers& placed_handlers;
  KubeletStatic& kubelet_static;
  AwaitedOutcomes& awaited_outcomes;
  const operations::DemandRules& demand_rules;
  Log& log;

  const Ledger& ledger() const { return committer.ledger(); }
};

/// Returns the function that a front is given with an admission: `then` gets the outcome on the loop, or that none came
/// in time.
operations::OnOutcome on_loop(const HandlerDeps& deps, operations::OnOutcome then);

/// Returns the full id of a container that is known; the id as it came for any other.
std::string full_container_id(const Ledger& ledger, const std::string& container_id);
std::string full_sandbox_id(const Ledger& ledger, const std::string& sandbox_id);

}  // namespace topolet::engine
