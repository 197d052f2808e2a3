// One unary call on its way through the proxy.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/base/mutex.hpp"
#include "core/cri/call.hpp"
#include "core/cri/wire/event_loop.hpp"
#include "core/cri/wire/incoming_call.hpp"
#include "core/cri/wire/proxy_context.hpp"

namespace topolet::cri {

/// Reads the request, lets the core decide if it is intercepted, asks the runtime, answers the client. Lives as long as
/// an operation of it is pending or the core holds it. The public functions but serve() are for any thread.
class UnaryCall : public std::enable_shared_from_this<UnaryCall> {
 public:
  using OnResponse = std::function<void(const RuntimeResponse&)>;

  UnaryCall(std::shared_ptr<ProxyContext> proxy, std::shared_ptr<IncomingCall> incoming, Upstream& upstream);

  /// I/O thread.
  void serve(MatchedHooks matched);

  const std::string& path() const { return path_; }
  const std::string& request() const { return request_bytes_; }
  bool cancelled() const TOPOLET_EXCLUDES(mutex_);
  void forward(const std::string& patch, OnResponse on_response) TOPOLET_EXCLUDES(mutex_);
  void finish() TOPOLET_EXCLUDES(mutex_);
  void reject(const grpc::Status& status) TOPOLET_EXCLUDES(mutex_);
  /// The core no longer holds the call.
  void let_go() TOPOLET_EXCLUDES(mutex_);
  /// For a core that has ended, where there is a successor: the client gets the runtime's answer, or, if the runtime
  /// was not asked yet, the successor's.
  void take_from_core() TOPOLET_EXCLUDES(mutex_);

 private:
  void on_request(bool ok);
  void on_response(bool ok);
  void on_sent(bool) {}
  void await_end_without_message();
  void relay_without_message(bool);
  void on_end(bool cancelled) TOPOLET_EXCLUDES(mutex_);

  void hand_on() TOPOLET_EXCLUDES(mutex_);
  bool is_for_core();
  void start_upstream(const grpc::ByteBuffer& request) TOPOLET_REQUIRES(mutex_);
  void send_response() TOPOLET_REQUIRES(mutex_);
  bool claim_reply() TOPOLET_REQUIRES(mutex_);
  void observe() const;

  using Clock = std::chrono::steady_clock;

  const Clock::time_point began_ = Clock::now();
  std::optional<Clock::duration> at_runtime_;  ///< the I/O thread's
  const std::shared_ptr<ProxyContext> proxy_;
  const std::shared_ptr<IncomingCall> incoming_;
  CallTicket ticket_;  ///< the I/O thread's
  Upstream* upstream_;
  const std::string path_;
  MatchedHooks matched_;

  // Written before the core or the runtime sees the call.
  grpc::ByteBuffer request_;
  std::string request_bytes_;

  mutable Mutex mutex_;
  grpc::ClientContext upstream_context_;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader_ TOPOLET_GUARDED_BY(mutex_);
  OnResponse on_response_ TOPOLET_GUARDED_BY(mutex_);
  bool ended_ TOPOLET_GUARDED_BY(mutex_) = false;      ///< gRPC let go of the client's side: nothing can be sent
  bool cancelled_ TOPOLET_GUARDED_BY(mutex_) = false;  ///< it ended without our answer
  bool replied_ TOPOLET_GUARDED_BY(mutex_) = false;    ///< the client got, or is getting, its answer
  bool has_response_ TOPOLET_GUARDED_BY(mutex_) = false;
  Clock::time_point upstream_began_ TOPOLET_GUARDED_BY(mutex_);
  grpc::StatusCode reply_ TOPOLET_GUARDED_BY(mutex_) = grpc::StatusCode::CANCELLED;  ///< what the client is told
  bool taken_from_core_ TOPOLET_GUARDED_BY(mutex_) = false;

  // Written by gRPC while the upstream call is in flight; ours once `has_response_` is set.
  grpc::ByteBuffer response_;
  grpc::Status status_;

  PendingOperation<UnaryCall, &UnaryCall::on_request> request_op_;
  PendingOperation<UnaryCall, &UnaryCall::relay_without_message> no_message_op_;
  std::unique_ptr<grpc::Alarm> no_message_alarm_;
  PendingOperation<UnaryCall, &UnaryCall::on_response> response_op_;
  PendingOperation<UnaryCall, &UnaryCall::on_sent> sent_op_;
};

/// The core's handle on an intercepted call: letting it go answers the client.
class InterceptedCall final : public Call {
 public:
  explicit InterceptedCall(std::shared_ptr<UnaryCall> call);
  ~InterceptedCall() override;

  const std::string& path() const override { return call_->path(); }
  std::string_view method() const override;
  const std::string& request() const override { return call_->request(); }
  bool cancelled() const override { return call_->cancelled(); }
  void forward(std::string patch, std::function<void(const RuntimeResponse&)> on_response) override;
  void finish() override { call_->finish(); }
  void reject(const Error& error) override;

 private:
  const std::shared_ptr<UnaryCall> call_;
};

}  // namespace topolet::cri
