// What every handler is built from.
//
// The room core/engine/handlers, namespace topolet::engine: one object for each intercepted CRI call, which reads the
// request, plans, commits, forwards and commits the outcome. It may include every other room of the engine; none of
// them may include it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/log_fwd.hpp"
#include "core/cri/call.hpp"
#include "core/cri/messages/requests.hpp"
#include "core/engine/converge/cpuset_writer.hpp"
#include "core/engine/converge/exits.hpp"
#include "core/engine/converge/mover.hpp"
#include "core/engine/converge/placed_handlers.hpp"
#include "core/engine/converge/rebalancer.hpp"
#include "core/engine/converge/reconciler.hpp"
#include "core/engine/handlers/kubelet_static.hpp"
#include "core/engine/loop.hpp"
#include "core/engine/planning/placer.hpp"
#include "core/engine/state/committer.hpp"

namespace topolet::engine {

/// What the handlers of CRI calls work with. All of it lives on the loop's thread and outlives them.
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
  const cri::DemandRules& demand_rules;
  Log& log;

  const Ledger& ledger() const { return committer.ledger(); }
};

/// True for the codes that leave open whether the runtime did what it was asked to.
bool leaves_doubt(Code code);

/// Forwards the call with `patch` behind its bytes; `then` gets the answer on the loop, and must see to finish().
void forward(const HandlerDeps& deps, const std::shared_ptr<cri::Call>& call, std::string patch,
             std::function<void(const cri::RuntimeResponse&)> then);

/// Forwards a call that is none of topolet's business, untouched, and answers it.
void pass_through(const std::shared_ptr<cri::Call>& call);

/// The full id of a container that is known; the id as it came for any other.
std::string full_container_id(const Ledger& ledger, const std::string& container_id);
std::string full_sandbox_id(const Ledger& ledger, const std::string& sandbox_id);

}  // namespace topolet::engine
