// The events that plugins receive between decisions, and the requests that they may make then.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/load/load.hpp"
#include "core/placement/policy.hpp"
#include "core/placement/workload.hpp"
#include "core/topology/topology.hpp"

namespace topolet::plugin {

/// One thing that happened to one container, or to one pod.
struct ContainerEvent {
  enum class Kind : std::uint8_t {
    kPlaced,
    kStarted,
    kMoved,
    kResized,
    kReleased,
    kExited,
    kPodRemoved,  ///< the sandbox of a pod is gone
    kDenied,      ///< a create was denied
    kUnpinned,    ///< a container is there without a placement of topolet's
  };
  Kind kind = Kind::kPlaced;
  placement::Workload workload;    ///< its `env` is not shown; of a pod: nothing but the pod's names
  placement::Placement placement;  ///< of a container that was released or has ended: what it held
  std::shared_ptr<const topology::Topology> topology;
  std::uint64_t sequence = 0;                  ///< grows by one with each event of a daemon's life, from 1
  std::string container_id = {};               ///< the runtime's; empty where there is none
  std::string reason = {};                     ///< of a denial
  std::optional<std::int32_t> exit_code = {};  ///< of one that has exited; nothing: it is unknown
  bool adopted = false;                        ///< it was found, such as after a restart
};

/// The state that a tick sees.
struct TickSnapshot {
  std::shared_ptr<const topology::Topology> topology;
  placement::LedgerSnapshot ledger;
  std::shared_ptr<const load::Load> load = {};  ///< what is measured; null: nothing
};

/// When it is, as it is told to plugins.
struct TickTime {
  std::chrono::milliseconds steady{};  ///< of a clock that never runs backwards
  std::chrono::milliseconds wall{};    ///< since 1970
};

/// A plugin's request to place a container anew.
struct MoveRequest {
  std::string plugin;
  placement::ContainerKey key;
  bool move_nodes = false;  ///< false: only inside the nodes it is on
  std::string reason;
  bool now = false;  ///< also while it has not been seen on the CPUs of an earlier change

  friend bool operator==(const MoveRequest&, const MoveRequest&) = default;
};

/// What a plugin says in a tick.
struct TickAnswer {
  std::vector<MoveRequest> moves;
  std::string refused;  ///< why the first of its wrong requests was refused; empty: there was none
};

}  // namespace topolet::plugin
