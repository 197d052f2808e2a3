// The client's half of one call.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>

#include "core/cri/proxy_loop.hpp"

namespace topolet {

/// From the wait for a call until gRPC has let go of it. The functions are for the I/O thread; `context` and `stream`
/// belong to whoever took the call, who starts no operation after the end was reported.
class Inbound : public std::enable_shared_from_this<Inbound> {
 public:
  using OnCall = std::function<void(std::shared_ptr<Inbound>)>;
  using OnEnd = std::function<void(bool cancelled)>;

  explicit Inbound(EventLoop& loop) : requested_(loop), ended_op_(loop), refused_(loop) {}

  /// Waits for the next call and hands it to `on_call`; at shutdown nothing is handed over.
  void wait(grpc::AsyncGenericService& service, grpc::ServerCompletionQueue* queue, OnCall on_call);
  /// `on_end` runs once, when the call is over on the client's side: at once if it already is.
  void set_on_end(OnEnd on_end);
  /// Answers a call that nobody took.
  void refuse(const grpc::Status& status);

  grpc::GenericServerContext context;
  grpc::GenericServerAsyncReaderWriter stream{&context};

 private:
  void on_requested(bool ok);
  void on_ended(bool ok);
  void on_refused(bool) {}

  Op<Inbound, &Inbound::on_requested> requested_;
  Op<Inbound, &Inbound::on_ended> ended_op_;
  Op<Inbound, &Inbound::on_refused> refused_;
  OnCall on_call_;
  OnEnd on_end_;
  bool ended_ = false;
};

}  // namespace topolet
