#include "core/control/server.hpp"

#include <fmt/format.h>

#include <atomic>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <map>
#include <string_view>
#include <utility>

#include "core/control/answer.hpp"

namespace topolet::control {
namespace {

constexpr std::size_t kMaxConnections = 32;
constexpr std::string_view kServicePath = "/topolet.control.v1.Control/";

using boost::asio::thread_pool;

}  // namespace

struct ControlServer::Impl {
  /// A method, and on whose thread it is answered.
  struct Method {
    thread_pool& thread;
    std::function<void(cri::OwnCall&)> answer;
  };

  explicit Impl(ControlHandlers control_handlers) : handlers(std::move(control_handlers)) {}
  void reset_plugin(cri::OwnCall& call) const;

  const ControlHandlers handlers;
  std::unique_ptr<cri::Listener> listener;
  std::atomic<bool> stopping = false;
  thread_pool questions{1};
  thread_pool changes{1};
  const std::map<std::string_view, Method> methods = {
      {"Status",
       {questions,
        [this](cri::OwnCall& call) {
          answer<v1::StatusRequest, v1::StatusResponse>(
              call, [this](const auto&, auto& response) { return handlers.status(response); });
        }}},
      {"ListPlugins",
       {questions,
        [this](cri::OwnCall& call) {
          answer<v1::ListPluginsRequest, v1::ListPluginsResponse>(
              call, [this](const auto&, auto& response) { return handlers.list_plugins(response); });
        }}},
      {"ResetPlugin", {changes, [this](cri::OwnCall& call) { reset_plugin(call); }}},
      {"Reload",
       {changes,
        [this](cri::OwnCall& call) {
          answer<v1::ReloadRequest, v1::ReloadResponse>(
              call, [this](const auto&, auto& response) { return handlers.reload(response); });
        }}},
      {"Restart",
       {changes,
        [this](cri::OwnCall& call) {
          answer<v1::RestartRequest, v1::RestartResponse>(
              call, [this](const auto&, auto& response) { return handlers.restart(response); });
        }}},
      {"SetCapacity",
       {changes,
        [this](cri::OwnCall& call) {
          answer<v1::SetCapacityRequest, v1::SetCapacityResponse>(
              call, [this](const auto& request, auto& response) { return handlers.set_capacity(request, response); });
        }}},
  };
};

void ControlServer::Impl::reset_plugin(cri::OwnCall& call) const {
  answer<v1::ResetPluginRequest, v1::ResetPluginResponse>(call, [this](const auto& request, const auto&) -> Status {
    if (request.id().empty()) {
      return Error{Code::kInvalidArgument, "ResetPlugin needs the id of a plugin; ListPlugins lists them"};
    }
    return handlers.reset_plugin(request.id());
  });
}

ControlServer::ControlServer() = default;

ControlServer::~ControlServer() { stop(); }

Result<std::unique_ptr<ControlServer>> ControlServer::open(Options options, cri::Listener::Sockets sockets,
                                                           ControlHandlers handlers, Log& log) {
  auto listener = cri::Listener::open({.path = std::move(options.path),
                                       .mode = 0600,
                                       .inherited_fd = sockets.socket.release(),
                                       .inherited_lock_fd = sockets.lock.release(),
                                       .max_connections = kMaxConnections,
                                       .max_memory_bytes = options.max_memory_bytes,
                                       .memory_claims = std::move(options.memory_claims)},
                                      log);
  if (!listener) return listener.error();
  std::unique_ptr<ControlServer> control(new ControlServer());
  control->impl_ = std::make_unique<Impl>(std::move(handlers));
  control->impl_->listener = *std::move(listener);
  return control;
}

void ControlServer::start(cri::Listener::OnConnection on_connection) {
  impl_->listener->start(std::move(on_connection));
}

void ControlServer::on_call(std::shared_ptr<cri::OwnCall> call) {
  const std::string_view path = call->path();
  const auto method =
      path.starts_with(kServicePath) ? impl_->methods.find(path.substr(kServicePath.size())) : impl_->methods.end();
  if (method == impl_->methods.end()) {
    return call->reject({Code::kUnimplemented,
                         fmt::format("the control socket has no method {}; the runtime's are on the socket that the "
                                     "kubelet uses (daemon.listen)",
                                     path)});
  }
  if (impl_->stopping) return reject_at_end(*call);
  boost::asio::post(method->second.thread,
                    [impl = impl_.get(), call = std::move(call), &answer = method->second.answer] {
                      if (impl->stopping) return reject_at_end(*call);
                      answer(*call);
                    });
}

cri::Listener::Sockets ControlServer::duplicate_sockets() const { return impl_->listener->duplicate_sockets(); }

void ControlServer::disown_file() { impl_->listener->disown_file(); }

void ControlServer::stop() {
  impl_->listener->stop();
  impl_->stopping = true;
  impl_->questions.join();
  impl_->changes.join();
}

}  // namespace topolet::control
