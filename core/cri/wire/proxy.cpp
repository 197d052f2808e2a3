#include "core/cri/wire/proxy.hpp"

#include <absl/synchronization/mutex.h>
#include <grpc/grpc_security.h>
#include <grpc/grpc_security_constants.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/security/server_credentials.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string_view>
#include <utility>

#include "core/base/log.hpp"
#include "core/cri/methods.hpp"
#include "core/cri/wire/goaway.hpp"
#include "core/cri/wire/incoming_call.hpp"
#include "core/cri/wire/outgoing_calls.hpp"
#include "core/cri/wire/peer_names.hpp"
#include "core/cri/wire/proxy_context.hpp"
#include "core/cri/wire/proxy_metadata.hpp"
#include "core/cri/wire/proxy_own_call.hpp"
#include "core/cri/wire/proxy_stream_call.hpp"
#include "core/cri/wire/proxy_unary_call.hpp"
#include "core/cri/wire/unread_by_peer.hpp"

namespace topolet::cri {
namespace {

Upstream::Words runtime_named_by(const std::string& option) {
  return {"the container runtime", "check that it is running and that '" + option + "' names its socket"};
}

MessageLimits limits_of(const ProxyOptions& options) {
  return {.message_bytes = options.max_message_bytes, .metadata_bytes = options.max_metadata_bytes};
}

void set_server_arguments(grpc::ServerBuilder& builder, const MessageLimits& limits) {
  set_common_arguments(limits, [&](const char* key, int value) { builder.AddChannelArgument(key, value); });
  // A client may ping as often as it likes: gRPC would otherwise disconnect it.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  // A client that connects and sends nothing is disconnected.
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 10000);
}

using Acceptor = std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor>;

Acceptor add_acceptor(grpc::ServerBuilder& builder, std::shared_ptr<grpc::ServerCredentials> credentials) {
  return builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, std::move(credentials));
}

void hand_over(UniqueFd connection, grpc::experimental::ExternalConnectionAcceptor& acceptor) {
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
  parameters.fd = connection.release();
  acceptor.HandleNewConnection(&parameters);
}

/// Returns true if the call came in by the acceptor with local credentials. They put nothing on the wire: the name of
/// their security type tells the two acceptors of one server apart.
bool is_of_own_client(grpc::ServerContext& context) {
  // As grpc::AuthContext does it, but without a copy for each call.
  const std::unique_ptr<grpc_auth_context, decltype(&grpc_auth_context_release)> auth(
      grpc_call_auth_context(context.c_call()), &grpc_auth_context_release);
  auto types = grpc_auth_context_find_properties_by_name(auth.get(), GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME);
  const grpc_auth_property* type = grpc_auth_property_iterator_next(&types);
  return type != nullptr && std::string_view(type->value, type->value_length) == "local";
}

}  // namespace

class Proxy::Server {
 public:
  Server(const ProxyOptions& options, ProxyHooks hooks, Log& log);

  void start();
  std::shared_ptr<ClientCalls> accept(UniqueFd connection) {
    auto calls = proxy_->admission.open(inode_of(connection.get()));
    hand_over(std::move(connection), *acceptor_);
    return calls;
  }
  std::shared_ptr<ClientCalls> accept_own(UniqueFd connection, OwnSocket socket) {
    auto calls = proxy_->admission.open(inode_of(connection.get()), socket);
    hand_over(std::move(connection), *own_acceptor_);
    return calls;
  }
  bool connected() { return channel_->GetState(/*try_to_connect=*/false) == GRPC_CHANNEL_READY; }
  void call(const std::string& path, const std::string& request, std::chrono::milliseconds timeout,
            OutgoingCalls::Done done) {
    outgoing_calls_->start(upstream_of(parse_method(path)), path, request, timeout, std::move(done));
  }
  void post(std::function<void()> work) { proxy_->loop.post(std::move(work)); }
  void ask_to_reconnect(std::vector<UniqueFd> connections);
  void forward_to(const std::string& endpoint);
  ProxyContext& context() { return *proxy_; }
  bool is_quiet_for(std::chrono::milliseconds period) const;
  void drain();
  void stop();

 private:
  void wait_for_call();
  void dispatch(const std::shared_ptr<IncomingCall>& incoming);
  MatchedHooks match_hooks(const Method& method) const;
  Upstream& upstream_of(const Method& method) {
    return method.image_service && proxy_->images != nullptr ? *proxy_->images : *proxy_->runtime;
  }

  Log& log_;
  const std::chrono::milliseconds drain_timeout_;
  const MessageLimits limits_;
  std::shared_ptr<ProxyContext> proxy_;
  std::shared_ptr<OutgoingCalls> outgoing_calls_;
  std::shared_ptr<grpc::Channel> channel_;  ///< the runtime's
  std::unique_ptr<ConnectionWatch> watch_;
  grpc::AsyncGenericService service_;
  Acceptor acceptor_;
  Acceptor own_acceptor_;
  std::unique_ptr<grpc::Server> server_;
  std::atomic<bool> draining_ = false;
  std::atomic<std::chrono::steady_clock::time_point> last_call_{};
  std::once_flag drained_;
  std::once_flag stopped_;
};

Proxy::Server::Server(const ProxyOptions& options, ProxyHooks hooks, Log& log)
    : log_(log), drain_timeout_(options.drain_timeout), limits_(limits_of(options)) {
  // Debian builds abseil with its deadlock detector on, a tenth of the CPU time spent here.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  grpc::ServerBuilder builder;
  set_server_arguments(builder, limits_);
  builder.RegisterAsyncGenericService(&service_);
  acceptor_ = add_acceptor(builder, grpc::InsecureServerCredentials());
  own_acceptor_ = add_acceptor(builder, grpc::experimental::LocalServerCredentials(UDS));
  proxy_ = std::make_shared<ProxyContext>(builder.AddCompletionQueue(), std::move(hooks), options.clock);
  proxy_->runtime = std::make_unique<Upstream>(options.runtime_endpoint, runtime_named_by("runtime"), limits_);
  if (!options.image_endpoint.empty() && options.image_endpoint != options.runtime_endpoint) {
    proxy_->images = std::make_unique<Upstream>(options.image_endpoint, runtime_named_by("image"), limits_);
  }
  outgoing_calls_ = std::make_shared<OutgoingCalls>(proxy_->loop);
  channel_ = proxy_->runtime->channel();
  ConnectionWatch::Handlers handlers;
  handlers.on_disconnected = [this] {
    log_.warn(
        "no connection to the container runtime at {}; calls fail until it can be reached again: check that it "
        "is running and that 'runtime' names its socket",
        proxy_->runtime->endpoint());
  };
  handlers.on_connected = [this] {
    log_.info("connected to the container runtime at {} again", proxy_->runtime->endpoint());
    if (proxy_->hooks.on_connected) proxy_->hooks.on_connected();
  };
  watch_ = std::make_unique<ConnectionWatch>(proxy_->loop, channel_, std::move(handlers));
  server_ = builder.BuildAndStart();
  proxy_->loop.start();
}

void Proxy::Server::start() {
  wait_for_call();
  watch_->start();
}

void Proxy::Server::wait_for_call() {
  std::make_shared<IncomingCall>(proxy_->loop)
      ->wait(service_, proxy_->loop.queue(), [this](const std::shared_ptr<IncomingCall>& incoming) {
        wait_for_call();
        dispatch(incoming);
      });
}

void Proxy::Server::dispatch(const std::shared_ptr<IncomingCall>& incoming) {
  const bool is_own = is_of_own_client(incoming->context);
  const auto refuse = [&](const grpc::Status& status) {
    is_own ? incoming->reject(status) : proxy_->refuse(*incoming, status);
  };
  if (draining_) return refuse({grpc::StatusCode::UNAVAILABLE, "topoletd is shutting down; try again"});
  // gRPC holds each frame of a header to its limit, but not all of them together.
  const std::size_t metadata = metadata_bytes(incoming->context.client_metadata());
  const auto max_metadata_bytes = static_cast<std::size_t>(limits_.metadata_bytes);
  if (metadata > max_metadata_bytes) {
    return refuse({grpc::StatusCode::RESOURCE_EXHAUSTED,
                   "the call has " + std::to_string(metadata) + " bytes of metadata; topolet passes at most " +
                       std::to_string(max_metadata_bytes) + " (daemon.max-metadata-mib)"});
  }
  if (is_own) return PendingOwnCall::serve(proxy_, incoming);
  last_call_ = std::chrono::steady_clock::now();
  const Method method = parse_method(incoming->context.method());
  Upstream* successor = proxy_->successor.load();
  const MatchedHooks matched = successor == nullptr ? match_hooks(method) : MatchedHooks();
  Upstream& upstream = successor == nullptr ? upstream_of(method) : *successor;
  if (method.known_unary || matched.intercepted) {
    std::make_shared<UnaryCall>(proxy_, incoming, upstream)->serve(matched);
  } else {
    std::make_shared<StreamCall>(proxy_, incoming, upstream)->serve(matched);
  }
}

MatchedHooks Proxy::Server::match_hooks(const Method& method) const {
  if (!method.runtime_service) return {};
  return {.intercepted = proxy_->hooks.intercepted.count(method.name) != 0,
          .observed = proxy_->hooks.observed.count(method.name) != 0,
          .rewritten = proxy_->hooks.rewritten.count(method.name) != 0};
}

void Proxy::Server::ask_to_reconnect(std::vector<UniqueFd> connections) {
  const auto shared = std::make_shared<std::vector<UniqueFd>>(std::move(connections));
  const auto send = [shared](bool is_nothing_written) {
    for (const UniqueFd& connection : *shared) {
      // The unread bytes may end in the middle of a frame.
      if (is_nothing_written || unread_by_peer(connection.get()) == 0) send_goaway(connection.get());
    }
  };
  constexpr std::chrono::milliseconds kPatience{100};
  proxy_->loop.when_nothing_is_written(send, kPatience);
}

void Proxy::Server::forward_to(const std::string& endpoint) {
  proxy_->successor_owner = std::make_unique<Upstream>(
      endpoint, Upstream::Words{"the topoletd that took over", "see its log for why it does not answer"}, limits_);
  proxy_->successor = proxy_->successor_owner.get();
  proxy_->calls_at_core.close();
}

bool Proxy::Server::is_quiet_for(std::chrono::milliseconds period) const {
  const std::vector<std::shared_ptr<StreamCall>> streams = proxy_->streams_of_runtime.all();
  return proxy_->unary_calls_served.count() == 0 &&
         std::all_of(streams.begin(), streams.end(), [](const auto& call) { return call->is_endless(); }) &&
         std::chrono::steady_clock::now() - last_call_.load() > period;
}

void Proxy::Server::drain() {
  std::call_once(drained_, [this] {
    draining_ = true;
    proxy_->unary_calls_served.wait_for_none(std::chrono::steady_clock::now() + drain_timeout_);
  });
}

void Proxy::Server::stop() {
  drain();
  std::call_once(stopped_, [this] {
    proxy_->loop.close();
    outgoing_calls_->cancel_all();
    // A deadline in the past: what is still there, endless streams above all, is cancelled at once.
    server_->Shutdown(std::chrono::system_clock::now());
    proxy_->loop.wait_until_idle();
    watch_->close();
    channel_.reset();
    proxy_->runtime->close();
    if (proxy_->images != nullptr) proxy_->images->close();
    if (proxy_->successor_owner != nullptr) proxy_->successor_owner->close();
    proxy_->loop.join();
  });
}

Proxy::Proxy(const ProxyOptions& options, ProxyHooks hooks, Log& log)
    : server_(std::make_unique<Server>(options, std::move(hooks), log)) {}

Proxy::~Proxy() { stop(); }

void Proxy::start() { server_->start(); }

std::shared_ptr<ClientCalls> Proxy::accept(UniqueFd connection) { return server_->accept(std::move(connection)); }

void Proxy::set_memory_short(bool is_short) { server_->context().admission.set_memory_short(is_short); }

std::shared_ptr<ClientCalls> Proxy::accept_own(UniqueFd connection, OwnSocket socket) {
  return server_->accept_own(std::move(connection), socket);
}

bool Proxy::connected() const { return server_->connected(); }

void Proxy::call(std::string path, std::string request, std::chrono::milliseconds timeout,
                 std::function<void(const RuntimeResponse&)> done) {
  server_->call(path, request, timeout, std::move(done));
}

void Proxy::post(std::function<void()> work) { server_->post(std::move(work)); }

void Proxy::ask_to_reconnect(std::vector<UniqueFd> connections) { server_->ask_to_reconnect(std::move(connections)); }

void Proxy::forward_to(const std::string& endpoint) { server_->forward_to(endpoint); }

bool Proxy::wait_for_core(std::chrono::milliseconds patience) {
  return server_->context().calls_at_core.wait_for_none(std::chrono::steady_clock::now() + patience);
}

void Proxy::take_calls_from_core() {
  for (const auto& call : server_->context().calls_at_core.all()) call->take_from_core();
}

void Proxy::end_streams() {
  for (const auto& call : server_->context().streams_of_runtime.all()) {
    if (call->is_endless()) call->end_for_successor();
  }
}

bool Proxy::is_quiet_for(std::chrono::milliseconds period) const { return server_->is_quiet_for(period); }

void Proxy::drain() { server_->drain(); }

void Proxy::stop() { server_->stop(); }

}  // namespace topolet::cri
