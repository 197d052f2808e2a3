// The events that plugins receive between decisions, and the requests that they may make then.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/placement/policy.hpp"
#include "core/placement/workload.hpp"
#include "core/topology/topology.hpp"

namespace topolet::plugin {

/// One thing that happened to one container.
struct ContainerEvent {
  enum class Kind : std::uint8_t { kPlaced, kStarted, kMoved, kResized, kReleased };
  Kind kind = Kind::kPlaced;
  placement::Workload workload;    ///< its `env` is not shown
  placement::Placement placement;  ///< of a released container: what it held
  std::shared_ptr<const topology::Topology> topology;
};

/// The state that a tick sees.
struct TickSnapshot {
  std::shared_ptr<const topology::Topology> topology;
  placement::LedgerSnapshot ledger;
};

/// A plugin's request to place a container anew.
struct MoveRequest {
  std::string plugin;
  placement::ContainerKey key;
  bool move_nodes = false;  ///< false: only inside the nodes it is on
  std::string reason;

  friend bool operator==(const MoveRequest&, const MoveRequest&) = default;
};

}  // namespace topolet::plugin
