// One call of any shape on its way through the proxy.
#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>
#include <string>

#include "core/cri/methods.hpp"
#include "core/cri/wire/event_loop.hpp"
#include "core/cri/wire/incoming_call.hpp"
#include "core/cri/wire/proxy_context.hpp"

namespace topolet::cri {

/// Relays messages both ways, each direction on its own: the next message is read when the last one was written, so a
/// slow reader slows the writer and nothing piles up. I/O thread only; lives as long as an operation of it is pending.
class StreamCall : public std::enable_shared_from_this<StreamCall> {
 public:
  StreamCall(std::shared_ptr<ProxyContext> proxy, std::shared_ptr<IncomingCall> incoming, Upstream& upstream);

  void serve(MatchedHooks matched);
  bool is_endless() const { return parse_method(incoming_->context.method()).endless; }
  /// Ends the call: its client is told UNAVAILABLE, and to call again. Any thread.
  void end_for_successor();

 private:
  void on_started(bool ok);

  // client → runtime
  void read_client();
  void on_client_message(bool ok);
  void on_message_forwarded(bool ok);
  void on_half_closed(bool) {}

  // runtime → client
  void on_header(bool ok);
  void on_header_sent(bool) { read_runtime(); }
  void read_runtime();
  void on_runtime_message(bool ok);
  void on_message_returned(bool ok);
  void fetch_status();
  void on_status(bool ok);
  void on_status_sent(bool) {}

  void on_end(bool cancelled);

  const std::shared_ptr<ProxyContext> proxy_;
  const std::shared_ptr<IncomingCall> incoming_;
  CallTicket ticket_;
  Upstream& upstream_;
  MatchedHooks matched_;
  grpc::ClientContext upstream_context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> runtime_;
  grpc::ByteBuffer to_runtime_;
  grpc::ByteBuffer to_client_;
  grpc::Status status_;
  grpc::StatusCode reply_ = grpc::StatusCode::CANCELLED;  ///< what the client is told
  bool ended_ = false;            ///< gRPC let go of the client's side: nothing can be sent there
  bool fetching_status_ = false;  ///< nothing more can be sent to the runtime
  std::atomic<bool> ended_for_successor_ = false;

  PendingOperation<StreamCall, &StreamCall::on_started> started_op_;
  PendingOperation<StreamCall, &StreamCall::on_client_message> client_message_op_;
  PendingOperation<StreamCall, &StreamCall::on_message_forwarded> forward_op_;
  PendingOperation<StreamCall, &StreamCall::on_half_closed> half_close_op_;
  PendingOperation<StreamCall, &StreamCall::on_header> header_op_;
  PendingOperation<StreamCall, &StreamCall::on_header_sent> header_sent_op_;
  PendingOperation<StreamCall, &StreamCall::on_runtime_message> runtime_message_op_;
  PendingOperation<StreamCall, &StreamCall::on_message_returned> return_op_;
  PendingOperation<StreamCall, &StreamCall::on_status> status_op_;
  PendingOperation<StreamCall, &StreamCall::on_status_sent> status_sent_op_;
};

}  // namespace topolet::cri
