#include "core/cri/wire/upstream.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <climits>
#include <string_view>
#include <utility>

namespace topolet::cri {
namespace {

grpc::ChannelArguments channel_arguments(const MessageLimits& limits) {
  grpc::ChannelArguments arguments;
  set_common_arguments(limits, [&](const char* key, int value) { arguments.SetInt(key, value); });
  // gRPC's defaults leave seconds of UNAVAILABLE after the runtime is back.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  // Despite its name the time that one attempt to connect may take; a runtime on a busy machine is slow to accept.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 20'000);
  // A retry is the client's to make: a create sent twice would be two containers.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  // An idle channel would be closed, and its return taken for the runtime's.
  arguments.SetInt(GRPC_ARG_CLIENT_IDLE_TIMEOUT_MS, INT_MAX);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return arguments;
}

// The messages of gRPC's C core (1.51) when it ends a call that had reached the connection.
constexpr std::array<std::string_view, 9> kTransportFailures = {
    "Broken pipe",     "Connection reset by peer", "Endpoint read failed",
    "GOAWAY received", "Received RST_STREAM",      "Received message larger than max (",
    "Socket closed",   "Stream removed",           "keepalive watchdog timeout",
};

/// The time after which a channel whose state does not change is checked all the same.
constexpr std::chrono::milliseconds kWatchPeriod{500};

/// A failure before the call reached a connection is told by the debug string. For one after that the transport makes
/// up a status as if it had been received, and nothing but the words tells the two apart.
bool came_from_runtime(const grpc::Status& status, const grpc::ClientContext& context) {
  if (context.debug_error_string().find("Error received from peer") == std::string::npos) return false;
  const std::string& message = status.error_message();
  return std::none_of(kTransportFailures.begin(), kTransportFailures.end(),
                      [&](std::string_view failure) { return message.starts_with(failure); });
}

}  // namespace

Upstream::Upstream(std::string endpoint, Words words, const MessageLimits& limits)
    : endpoint_(std::move(endpoint)),
      words_(std::move(words)),
      channel_(grpc::CreateCustomChannel(endpoint_, grpc::InsecureChannelCredentials(), channel_arguments(limits))),
      stub_(std::make_unique<grpc::GenericStub>(channel_)) {}

void Upstream::close() {
  stub_.reset();
  channel_.reset();
}

grpc::Status Upstream::describe_failure(const grpc::Status& status, const grpc::ClientContext& context) const {
  if (status.ok()) return status;
  const std::string& message = status.error_message();
  const bool stopped_by_client =
      status.error_code() == grpc::StatusCode::CANCELLED || status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
  if (stopped_by_client || came_from_runtime(status, context)) return {status.error_code(), message};
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
    return {status.error_code(),
            "no connection to " + words_.name + " at " + endpoint_ + " (" + message + "); " + words_.advice};
  }
  return {status.error_code(), "call to " + words_.name + " at " + endpoint_ + " failed: " + message};
}

ConnectionWatch::ConnectionWatch(EventLoop& loop, std::shared_ptr<grpc::Channel> channel, Handlers handlers)
    : loop_(loop), handlers_(std::move(handlers)), channel_(std::move(channel)) {}

void ConnectionWatch::start() {
  MutexLock lock(mutex_);
  read_state();
  wait();
}

void ConnectionWatch::close() {
  std::shared_ptr<grpc::Channel> dropped;
  MutexLock lock(mutex_);
  dropped.swap(channel_);
}

void ConnectionWatch::read_state() {
  if (channel_ == nullptr) return;
  const grpc_connectivity_state before = std::exchange(state_, channel_->GetState(/*try_to_connect=*/true));
  const bool failed_to_connect = before == GRPC_CHANNEL_CONNECTING && state_ != GRPC_CHANNEL_READY;
  was_down_ |= before == GRPC_CHANNEL_READY || failed_to_connect || state_ == GRPC_CHANNEL_TRANSIENT_FAILURE;
}

void ConnectionWatch::wait() {
  if (channel_ == nullptr) return;
  mark_handed_over(static_cast<CompletionTag*>(this));
  // Not counted by the loop: after close() it ends with its deadline, however long held calls keep the channel alive.
  channel_->NotifyOnStateChange(state_, std::chrono::system_clock::now() + kWatchPeriod, loop_.queue(),
                                static_cast<CompletionTag*>(this));
}

void ConnectionWatch::on_event(bool changed) {
  const std::function<void()>* handler = nullptr;
  {
    MutexLock lock(mutex_);
    if (changed) read_state();
    wait();
    if (!changed || !was_down_) return;
    const bool is_up = state_ == GRPC_CHANNEL_READY;
    if (is_up) was_down_ = false;
    if (std::exchange(told_down_, !is_up) && !is_up) return;
    handler = is_up ? &handlers_.on_connected : &handlers_.on_disconnected;
  }
  (*handler)();
}

}  // namespace topolet::cri
