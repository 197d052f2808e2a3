// The control socket: what the operator asks of a running topoletd.
//
// The room core/control, namespace topolet::control: reads and answers the calls of control.proto, with what the daemon
// tells it. The proxy carries them, apart from those of the kubelet. The room may include core/base, core/cri/call.hpp
// and core/cri/socket, whose OwnServer it uses, and nothing else of the core.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "core/base/log_fwd.hpp"
#include "core/base/result.hpp"
#include "core/control/control.pb.h"
#include "core/cri/socket/listener.hpp"
#include "core/cri/socket/own_server.hpp"

namespace topolet::control {

/// The functions that answer the calls. `status`, `list_plugins` and `load` are called on one thread, the others on
/// another: a call for topoletd's status does not wait for a reload.
struct ControlHandlers {
  std::function<Status(control::v1::StatusResponse&)> status;
  std::function<Status(control::v1::ListPluginsResponse&)> list_plugins;
  std::function<Status(const std::string& id)> reset_plugin;
  std::function<Status(control::v1::ReloadResponse&)> reload;
  std::function<Status(control::v1::RestartResponse&)> restart;
  std::function<Status(const control::v1::SetCapacityRequest&, control::v1::SetCapacityResponse&)> set_capacity;
  std::function<Status(const control::v1::HealRequest&, control::v1::HealResponse&)> heal;
  std::function<Status(const control::v1::LoadRequest&, control::v1::LoadResponse&)> load;
  std::function<Status(const control::v1::ReleaseRequest&, control::v1::ReleaseResponse&)> release;
};

struct ControlOptions {
  std::string path;
  // As the listener's.
  std::size_t max_memory_bytes = 0;
  std::shared_ptr<cri::MemoryClaims> memory_claims = nullptr;
};

/// The server of the control socket, with mode 0600; as cri::OwnServer::open().
Result<std::unique_ptr<cri::OwnServer>> open_server(ControlOptions options, cri::Listener::Sockets sockets,
                                                    ControlHandlers handlers, Log& log);

}  // namespace topolet::control
