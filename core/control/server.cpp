#include "core/control/server.hpp"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <utility>

#include "core/control/control.grpc.pb.h"
#include "core/cri/listener.hpp"

namespace topolet {
namespace {

using namespace control::v1;  // NOLINT(google-build-using-namespace)

constexpr std::size_t kMaxConnections = 32;
constexpr int kMaxRequestBytes = 64 << 10;
constexpr std::chrono::seconds kGrace{2};

grpc::Status wire(const Status& status) {
  if (status) return grpc::Status::OK;
  return {static_cast<grpc::StatusCode>(status.error().code), status.error().message};
}

}  // namespace

class ControlServer::Service final : public Control::Service {
 public:
  explicit Service(ControlAnswers answers) : answers_(std::move(answers)) {}

 private:
  grpc::Status Status(grpc::ServerContext*, const StatusRequest*, StatusResponse* response) override {
    return wire(answers_.status(*response));
  }
  grpc::Status ListPlugins(grpc::ServerContext*, const ListPluginsRequest*, ListPluginsResponse* response) override {
    return wire(answers_.list_plugins(*response));
  }
  grpc::Status ResetPlugin(grpc::ServerContext*, const ResetPluginRequest* request, ResetPluginResponse*) override {
    if (request->id().empty()) {
      return {grpc::StatusCode::INVALID_ARGUMENT, "ResetPlugin needs the id of a plugin; ListPlugins names them"};
    }
    return wire(answers_.reset_plugin(request->id()));
  }
  grpc::Status Reload(grpc::ServerContext*, const ReloadRequest*, ReloadResponse* response) override {
    return wire(answers_.reload(*response));
  }

  const ControlAnswers answers_;
};

struct ControlServer::Parts {
  std::unique_ptr<Listener> listener;
  std::unique_ptr<Service> service;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor;
  std::unique_ptr<grpc::Server> server;
};

ControlServer::ControlServer() : parts_(std::make_unique<Parts>()) {}

ControlServer::~ControlServer() { stop(); }

Result<std::unique_ptr<ControlServer>> ControlServer::open(const std::string& path, ControlAnswers answers, Log& log) {
  std::unique_ptr<ControlServer> control(new ControlServer());
  Parts& parts = *control->parts_;
  auto listener = Listener::open({.path = path, .mode = 0600, .max_connections = kMaxConnections}, log);
  if (!listener) return listener.error();
  parts.listener = *std::move(listener);
  parts.service = std::make_unique<Service>(std::move(answers));

  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
  // A person asks now and then: one queue and one thread that waits are plenty.
  builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MIN_POLLERS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 2);
  builder.RegisterService(parts.service.get());
  parts.acceptor = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, grpc::InsecureServerCredentials());
  parts.server = builder.BuildAndStart();
  if (parts.server == nullptr) return Error{Code::kInternal, "gRPC could not start a server for " + path};
  return control;
}

void ControlServer::start() {
  parts_->listener->start([this](UniqueFd connection) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
    parameters.fd = connection.release();
    parts_->acceptor->HandleNewConnection(&parameters);
  });
}

void ControlServer::stop() {
  if (parts_->listener) parts_->listener->stop();
  if (parts_->server) parts_->server->Shutdown(std::chrono::system_clock::now() + kGrace);
}

}  // namespace topolet
