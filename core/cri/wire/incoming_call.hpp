// The client's half of one call.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>

#include "core/cri/wire/event_loop.hpp"

namespace topolet::cri {

/// From the wait for a call until gRPC has let go of it. The functions are for the I/O thread; `context` and `stream`
/// belong to whoever took the call, who starts no operation after the end was reported.
class IncomingCall : public std::enable_shared_from_this<IncomingCall> {
 public:
  using OnCall = std::function<void(std::shared_ptr<IncomingCall>)>;
  using OnEnd = std::function<void(bool cancelled)>;

  explicit IncomingCall(EventLoop& loop) : requested_(loop), ended_op_(loop), rejected_op_(loop) {}

  /// Waits for the next call and hands it to `on_call`; at shutdown nothing is handed over.
  void wait(grpc::AsyncGenericService& service, grpc::ServerCompletionQueue* queue, OnCall on_call);
  /// `on_end` runs once, when the call is over on the client's side: at once if it already is.
  void set_on_end(OnEnd on_end);
  /// Answers a call that nobody took.
  void reject(const grpc::Status& status);

  grpc::GenericServerContext context;
  grpc::GenericServerAsyncReaderWriter stream{&context};

 private:
  void on_requested(bool ok);
  void on_ended(bool ok);
  void on_rejected(bool) {}

  PendingOperation<IncomingCall, &IncomingCall::on_requested> requested_;
  PendingOperation<IncomingCall, &IncomingCall::on_ended> ended_op_;
  PendingOperation<IncomingCall, &IncomingCall::on_rejected> rejected_op_;
  OnCall on_call_;
  OnEnd on_end_;
  bool ended_ = false;
};

}  // namespace topolet::cri
