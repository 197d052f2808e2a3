// How the daemon is, for people: the line of `systemctl status topoletd`, and the answer to `topolet status`.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "core/control/control.pb.h"
#include "core/daemon/illness.hpp"
#include "core/engine/engine.hpp"
#include "core/fronts/nri/session.hpp"

namespace topolet::daemon {

/// The facts in the line, besides the engine's.
struct StatusFacts {
  std::string listen;        ///< the path of the socket
  std::string runtime;       ///< of the runtime's
  std::string store_damage;  ///< empty if the state database is sound
  std::string reload_error;  ///< why the configuration could not be read again the last time; empty if it could
  bool runtime_connected = false;
};

/// One line: first whether pods can start, then what is placed, then what somebody should look at.
std::string describe_status(const StatusFacts& facts, const engine::EngineSummary& engine);

/// How it is with the runtime's NRI.
struct NriFacts {
  bool refuses = false;  ///< nri.guard = deny
  nri::SessionState state;
  bool is_front = false;                  ///< daemon.front = nri; otherwise it only guards
  std::vector<std::string> plugins = {};  ///< that the runtime asks besides; a front is told with the first create
};

/// The answer to `topolet status` is made of these, and of the engine.
struct DaemonFacts {
  std::string version;
  pid_t process = 0;
  std::chrono::seconds uptime{};
  std::string listen;   ///< the path of the socket; empty with daemon.front = nri
  std::string runtime;  ///< of the runtime's
  bool runtime_connected = false;
  std::string state_dir;
  std::string store_damage;  ///< empty if the state database is sound
  std::vector<Illness> illnesses;
  std::optional<NriFacts> nri;  ///< none: nri.guard = off
};

void describe_status(const DaemonFacts& facts, const engine::EngineSummary& engine,
                     control::v1::StatusResponse& response);

}  // namespace topolet::daemon
