#include "core/control/server.hpp"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <utility>

#include "core/control/control.grpc.pb.h"
#include "core/cri/socket/listener.hpp"

namespace topolet::control {
namespace {

using namespace control::v1;  // NOLINT(google-build-using-namespace)

constexpr std::size_t kMaxConnections = 32;
constexpr int kMaxRequestBytes = 64 << 10;
constexpr std::chrono::seconds kGrace{2};

grpc::Status to_grpc_status(const Status& status) {
  if (status) return grpc::Status::OK;
  return {static_cast<grpc::StatusCode>(status.error().code), status.error().message};
}

}  // namespace

class ControlServer::Service final : public Control::Service {
 public:
  explicit Service(ControlHandlers handlers) : handlers_(std::move(handlers)) {}

 private:
  grpc::Status Status(grpc::ServerContext*, const StatusRequest*, StatusResponse* response) override {
    return to_grpc_status(handlers_.status(*response));
  }
  grpc::Status ListPlugins(grpc::ServerContext*, const ListPluginsRequest*, ListPluginsResponse* response) override {
    return to_grpc_status(handlers_.list_plugins(*response));
  }
  grpc::Status ResetPlugin(grpc::ServerContext*, const ResetPluginRequest* request, ResetPluginResponse*) override {
    if (request->id().empty()) {
      return {grpc::StatusCode::INVALID_ARGUMENT, "ResetPlugin needs the id of a plugin; ListPlugins lists them"};
    }
    return to_grpc_status(handlers_.reset_plugin(request->id()));
  }
  grpc::Status Reload(grpc::ServerContext*, const ReloadRequest*, ReloadResponse* response) override {
    return to_grpc_status(handlers_.reload(*response));
  }

  const ControlHandlers handlers_;
};

struct ControlServer::Impl {
  std::unique_ptr<cri::Listener> listener;
  std::unique_ptr<Service> service;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor;
  std::unique_ptr<grpc::Server> server;
};

ControlServer::ControlServer() : impl_(std::make_unique<Impl>()) {}

ControlServer::~ControlServer() { stop(); }

Result<std::unique_ptr<ControlServer>> ControlServer::open(const std::string& path, ControlHandlers handlers,
                                                           Log& log) {
  std::unique_ptr<ControlServer> control(new ControlServer());
  Impl& impl = *control->impl_;
  auto listener = cri::Listener::open({.path = path, .mode = 0600, .max_connections = kMaxConnections}, log);
  if (!listener) return listener.error();
  impl.listener = *std::move(listener);
  impl.service = std::make_unique<Service>(std::move(handlers));

  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
  // A person asks now and then: one queue and one thread that waits are plenty.
  builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MIN_POLLERS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 2);
  builder.RegisterService(impl.service.get());
  impl.acceptor = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, grpc::InsecureServerCredentials());
  impl.server = builder.BuildAndStart();
  if (impl.server == nullptr) return Error{Code::kInternal, "gRPC could not start a server for " + path};
  return control;
}

void ControlServer::start() {
  impl_->listener->start([this](UniqueFd connection) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
    parameters.fd = connection.release();
    impl_->acceptor->HandleNewConnection(&parameters);
  });
}

void ControlServer::stop() {
  if (impl_->listener) impl_->listener->stop();
  if (impl_->server) impl_->server->Shutdown(std::chrono::system_clock::now() + kGrace);
}

}  // namespace topolet::control
