// The line of `systemctl status topoletd`.
#pragma once

#include <string>

#include "core/engine/engine.hpp"

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

}  // namespace topolet::daemon
