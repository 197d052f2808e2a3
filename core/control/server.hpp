// The control socket: what the operator asks of a running topoletd.
//
// The room core/control, namespace topolet::control: reads and answers the calls of control.proto, with what the daemon
// tells it. The proxy carries them, apart from those of the kubelet. The room may include core/base, core/cri/call.hpp
// and core/cri/socket, whose listener it uses, and nothing else of the core.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "core/base/log_fwd.hpp"
#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"
#include "core/control/control.pb.h"
#include "core/cri/call.hpp"
#include "core/cri/socket/listener.hpp"

namespace topolet::control {

/// The functions that answer the calls. `status` and `list_plugins` are called on one thread, the others on another: a
/// call for topoletd's status does not wait for a reload.
struct ControlHandlers {
  std::function<Status(control::v1::StatusResponse&)> status;
  std::function<Status(control::v1::ListPluginsResponse&)> list_plugins;
  std::function<Status(const std::string& id)> reset_plugin;
  std::function<Status(control::v1::ReloadResponse&)> reload;
  std::function<Status(control::v1::RestartResponse&)> restart;
  std::function<Status(const control::v1::SetCapacityRequest&, control::v1::SetCapacityResponse&)> set_capacity;
};

/// Listens from open() to stop(). Not for use by several threads, but for on_call().
class ControlServer {
 public:
  struct Options {
    std::string path;
    // As the listener's.
    std::size_t max_memory_bytes = 0;
    std::shared_ptr<cri::MemoryClaims> memory_claims = nullptr;
  };
  /// Binds the path with mode 0600. FAILED_PRECONDITION if another topoletd, or any live process, serves it; a file
  /// left over by a dead one is replaced. The directory must exist. Clients wait until start(). Where there are
  /// `sockets`, of another topoletd that hands them over, they are used instead.
  static Result<std::unique_ptr<ControlServer>> open(Options options, cri::Listener::Sockets sockets,
                                                     ControlHandlers handlers, Log& log);

  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  /// `on_connection` gets each client's socket, on the listener's thread, and brings its calls to on_call().
  void start(cri::Listener::OnConnection on_connection);
  /// Has the call answered. Does not block. Any thread.
  void on_call(std::shared_ptr<cri::OwnCall> call);
  /// As the listener's.
  cri::Listener::Sockets duplicate_sockets() const;
  void disown_file();
  /// Ends listening, and waits for the answers that are being made. Later calls are answered UNAVAILABLE.
  void stop();

 private:
  ControlServer();

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace topolet::control
