// What plugins hear of between decisions, and what they may wish for then.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/placement/policy.hpp"
#include "core/placement/workload.hpp"
#include "core/topology/topology.hpp"

namespace topolet {

/// One thing that happened to one container.
struct Happening {
  enum class Kind : std::uint8_t { kPlaced, kStarted, kMoved, kResized, kReleased };
  Kind kind = Kind::kPlaced;
  Workload workload;    ///< its `env` is not shown
  Placement placement;  ///< of a released container: what it held
  std::shared_ptr<const Topology> topology;
};

/// What a tick sees.
struct TickView {
  std::shared_ptr<const Topology> topology;
  LedgerView ledger;
};

/// A plugin's wish that a container be placed anew.
struct ReplacementWish {
  std::string plugin;
  ContainerKey key;
  bool move_nodes = false;  ///< false: only inside the nodes it is on
  std::string reason;

  friend bool operator==(const ReplacementWish&, const ReplacementWish&) = default;
};

}  // namespace topolet
