// Starts the topoletd that is installed again, as this process was started.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "core/base/log_fwd.hpp"
#include "core/base/result.hpp"
#include "core/daemon/take_over.hpp"

namespace topolet::daemon {

/// Made before the program's file, or a link to it, can be replaced by an upgrade: it remembers the path.
class Respawn {
 public:
  /// `arguments`: those of this process, without its name.
  explicit Respawn(const std::vector<std::string>& arguments);

  /// Starts a process beside this one that is to take its place. It is nobody's child, so that the service manager may
  /// watch it. Returns its number; UNAVAILABLE if it cannot be started.
  Result<pid_t> start_successor() const;

  /// This process becomes a new one, which starts with these sockets. Does not return.
  int run(const config::DaemonOptions& options, HandedOver sockets, Log& log) const;

 private:
  std::vector<std::string> arguments_of_successor() const;

  std::string program_;
  std::vector<std::string> arguments_;
};

/// Takes the sockets that run() left to this process. To be called once.
std::optional<HandedOver> inherited_sockets();

}  // namespace topolet::daemon
