#include "core/control/server.hpp"

#include <utility>

#include "core/control/answer.hpp"
#include "core/cri/call.hpp"

namespace topolet::control {
namespace {

constexpr std::size_t kMaxConnections = 32;

/// On which thread a method is answered.
enum Queue : std::size_t { kQuestions, kChanges };

template <class Request, class Response, class Handle>
cri::OwnServer::Method method(Queue queue, Handle handle) {
  return {queue, [handle = std::move(handle)](cri::OwnCall& call, const cri::OwnServer::IsWanted&) {
            answer<Request, Response>(call, handle);
          }};
}

Status check_named(const v1::ResetPluginRequest& request) {
  if (!request.id().empty()) return {};
  return Error{Code::kInvalidArgument, "ResetPlugin needs the id of a plugin; ListPlugins lists them"};
}

cri::OwnServer::Service service_of(ControlHandlers handlers) {
  const auto shared = std::make_shared<const ControlHandlers>(std::move(handlers));
  cri::OwnServer::Service service{.path = "/topolet.control.v1.Control/",
                                  .methods = {},
                                  .socket = "the control socket",
                                  .what_else = "the runtime's are on the socket that the kubelet uses (daemon.listen)"};
  auto& methods = service.methods;
  methods["Status"] = method<v1::StatusRequest, v1::StatusResponse>(
      kQuestions, [shared](const auto&, auto& response) { return shared->status(response); });
  methods["ListPlugins"] = method<v1::ListPluginsRequest, v1::ListPluginsResponse>(
      kQuestions, [shared](const auto&, auto& response) { return shared->list_plugins(response); });
  methods["ResetPlugin"] = method<v1::ResetPluginRequest, v1::ResetPluginResponse>(
      kChanges, [shared](const auto& request, const auto&) -> Status {
        if (const Status named = check_named(request); !named) return named;
        return shared->reset_plugin(request.id());
      });
  methods["Reload"] = method<v1::ReloadRequest, v1::ReloadResponse>(
      kChanges, [shared](const auto&, auto& response) { return shared->reload(response); });
  methods["Restart"] = method<v1::RestartRequest, v1::RestartResponse>(
      kChanges, [shared](const auto&, auto& response) { return shared->restart(response); });
  methods["SetCapacity"] = method<v1::SetCapacityRequest, v1::SetCapacityResponse>(
      kChanges, [shared](const auto& request, auto& response) { return shared->set_capacity(request, response); });
  methods["Heal"] = method<v1::HealRequest, v1::HealResponse>(
      kChanges, [shared](const auto& request, auto& response) { return shared->heal(request, response); });
  methods["Release"] = method<v1::ReleaseRequest, v1::ReleaseResponse>(
      kChanges, [shared](const auto& request, auto& response) { return shared->release(request, response); });
  methods["Load"] = method<v1::LoadRequest, v1::LoadResponse>(
      kQuestions, [shared](const auto& request, auto& response) { return shared->load(request, response); });
  return service;
}

}  // namespace

Result<std::unique_ptr<cri::OwnServer>> open_server(ControlOptions options, cri::Listener::Sockets sockets,
                                                    ControlHandlers handlers, Log& log) {
  return cri::OwnServer::open({.path = std::move(options.path),
                               .mode = 0600,
                               .max_connections = kMaxConnections,
                               .max_memory_bytes = options.max_memory_bytes,
                               .memory_claims = std::move(options.memory_claims)},
                              std::move(sockets), service_of(std::move(handlers)), log);
}

}  // namespace topolet::control
