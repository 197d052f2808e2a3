// The inputs of a Placer. Plain values.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "core/engine/planning/rdt_classes.hpp"
#include "core/engine/state/cpu_inventory.hpp"
#include "core/load/load.hpp"
#include "core/placement/annotation_names.hpp"
#include "core/placement/decision.hpp"
#include "core/placement/placement_rules.hpp"
#include "core/placement/policy.hpp"

namespace topolet::engine {

/// The inputs that change when CPUs go off- or online.
struct Machine {
  std::shared_ptr<const topology::Topology> topology;
  std::vector<placement::Candidate> candidates;
  CpuInventory cpus;
};

struct PlacerDeps {
  std::shared_ptr<const topology::Topology> topology;
  std::vector<placement::Candidate> candidates;
  placement::PlacementRules rules;
  /// Runs decide() with the policies; see PolicyThread.
  std::function<placement::Decision(const std::shared_ptr<const placement::PolicyRequest>&,
                                    const placement::PlacementRules&)>
      decide;
  /// Returns the annotations that are read at present; empty = not known, so that no name is called misspelt.
  std::function<placement::KnownAnnotations()> annotations = {};
  std::shared_ptr<RdtClasses> rdt_classes = {};  ///< null: none
  bool any_rdt_class = false;                    ///< whatever its name
  /// Returns what can be set through the front end and the runtime, now; empty = nothing of it.
  std::function<placement::Settable()> settable = {};
  /// The wall clock, which says what of the ledger's history is of the last day. None: all of it is.
  std::function<std::chrono::milliseconds()> wall = {};
  /// Returns what is measured; empty = nothing is.
  load::Source load = {};
};

}  // namespace topolet::engine
