// The channel to one runtime endpoint.
#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>

#include "core/base/mutex.hpp"
#include "core/cri/wire/event_loop.hpp"

namespace topolet::cri {

/// The largest messages that both sides of the proxy accept.
struct MessageLimits {
  int message_bytes = 64 << 20;
  int metadata_bytes = 16 << 20;
};

/// Sets what the client's and the runtime's side have in common.
template <class Arguments>
void set_common_arguments(const MessageLimits& limits, Arguments set) {
  set(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, limits.message_bytes);
  set(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, -1);
  set(GRPC_ARG_MAX_METADATA_SIZE, limits.metadata_bytes);
  // Bytes are passed on as they are; what arrives compressed is still unpacked by the defaults.
  set(GRPC_ARG_ENABLE_PER_MESSAGE_COMPRESSION, 0);
  set(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  set(GRPC_ARG_ENABLE_CHANNELZ, 0);
}

/// Any thread may call any function; close() ends the use of all others but endpoint() and describe_failure().
class Upstream {
 public:
  /// `endpoint`: "unix:///path". For error messages: what is there, and how to see to it that it answers.
  struct Words {
    std::string name;  ///< "the container runtime"
    std::string advice;
  };
  Upstream(std::string endpoint, Words words, const MessageLimits& limits);

  const std::string& endpoint() const { return endpoint_; }
  grpc::GenericStub& stub() { return *stub_; }
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  void close();

  /// The status as it goes on to the client: as the runtime sent it, without the details (those are in the trailers),
  /// or, if the channel itself failed, with the endpoint and the way out in the message.
  grpc::Status describe_failure(const grpc::Status& status, const grpc::ClientContext& context) const;

 private:
  const std::string endpoint_;
  const Words words_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<grpc::GenericStub> stub_;
};

/// Keeps a channel connected and tells when it goes down, and when it is connected again after that.
class ConnectionWatch final : public CompletionTag {
 public:
  /// Both run on the I/O thread. After an outage that is over before it is noticed, only on_connected is called.
  struct Handlers {
    std::function<void()> on_disconnected;
    std::function<void()> on_connected;
  };
  ConnectionWatch(EventLoop& loop, std::shared_ptr<grpc::Channel> channel, Handlers handlers);

  void start() TOPOLET_EXCLUDES(mutex_);
  /// Lets go of the channel. The last event comes soon after; the watch must outlive it, that is, the loop's join().
  void close() TOPOLET_EXCLUDES(mutex_);
  void on_event(bool changed) override TOPOLET_EXCLUDES(mutex_);

 private:
  void read_state() TOPOLET_REQUIRES(mutex_);
  void wait() TOPOLET_REQUIRES(mutex_);

  EventLoop& loop_;
  const Handlers handlers_;
  Mutex mutex_;
  std::shared_ptr<grpc::Channel> channel_ TOPOLET_GUARDED_BY(mutex_);
  grpc_connectivity_state state_ TOPOLET_GUARDED_BY(mutex_) = GRPC_CHANNEL_IDLE;
  bool was_down_ TOPOLET_GUARDED_BY(mutex_) = false;
  bool told_down_ TOPOLET_GUARDED_BY(mutex_) = false;
};

}  // namespace topolet::cri
