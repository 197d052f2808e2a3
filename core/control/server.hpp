// The control socket: what the operator asks of a running topoletd. It has a server of its own, apart from the CRI
// socket.
//
// The room core/control, namespace topolet::control: carries the calls of control.proto; the daemon answers them. It
// may include core/base and core/cri/socket, whose listener it uses, and nothing else of the core.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/base/log.hpp"
#include "core/base/result.hpp"
#include "core/control/control.pb.h"

namespace topolet::control {

/// Who answers. Called on the server's threads, several at a time.
struct ControlHandlers {
  std::function<Status(control::v1::StatusResponse&)> status;
  std::function<Status(control::v1::ListPluginsResponse&)> list_plugins;
  std::function<Status(const std::string& id)> reset_plugin;
  std::function<Status(control::v1::ReloadResponse&)> reload;
};

/// Serves from open() to stop(). Not for use by several threads.
class ControlServer {
 public:
  /// Binds `path` with mode 0600. FAILED_PRECONDITION if another topoletd, or any live process, serves it; a file left
  /// over by a dead one is replaced. The directory must exist. Clients wait until start().
  static Result<std::unique_ptr<ControlServer>> open(const std::string& path, ControlHandlers handlers, Log& log);

  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  void start();
  /// Ends serving; waits for the answers that are being made.
  void stop();

 private:
  ControlServer();

  class Service;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace topolet::control
