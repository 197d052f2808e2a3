#include "core/cri/wire/proxy_stream_call.hpp"

#include <utility>

#include "core/cri/wire/proxy_metadata.hpp"

namespace topolet::cri {

StreamCall::StreamCall(std::shared_ptr<ProxyContext> proxy, std::shared_ptr<IncomingCall> incoming, Upstream& upstream)
    : proxy_(std::move(proxy)),
      incoming_(std::move(incoming)),
      ticket_(proxy_->admission, proxy_->admission.find(incoming_->context.peer())),
      upstream_(upstream),
      started_op_(proxy_->loop),
      client_message_op_(proxy_->loop),
      forward_op_(proxy_->loop),
      half_close_op_(proxy_->loop),
      header_op_(proxy_->loop),
      header_sent_op_(proxy_->loop),
      runtime_message_op_(proxy_->loop),
      return_op_(proxy_->loop),
      status_op_(proxy_->loop),
      status_sent_op_(proxy_->loop) {}

void StreamCall::serve(MatchedHooks matched) {
  matched_ = matched;
  if (!ticket_.begin_stream()) {
    return proxy_->refuse(*incoming_, {grpc::StatusCode::RESOURCE_EXHAUSTED,
                                       "topoletd has too many streams of this connection; end some, or make no more"});
  }
  copy_request_metadata(incoming_->context, upstream_context_);
  runtime_ = upstream_.stub().PrepareCall(&upstream_context_, incoming_->context.method(), proxy_->loop.queue());
  runtime_->StartCall(started_op_.arm(shared_from_this()));
  if (&upstream_ != proxy_->successor.load()) proxy_->streams_of_runtime.add(shared_from_this());
  incoming_->set_on_end([self = shared_from_this()](bool cancelled) { self->on_end(cancelled); });
}

void StreamCall::on_started(bool ok) {
  if (!ok) return fetch_status();
  runtime_->ReadInitialMetadata(header_op_.arm(shared_from_this()));
  read_client();
}

void StreamCall::read_client() {
  if (!ended_) incoming_->stream.Read(&to_runtime_, client_message_op_.arm(shared_from_this()));
}

void StreamCall::on_client_message(bool ok) {
  if (fetching_status_) return;
  if (ok) {
    runtime_->Write(to_runtime_, forward_op_.arm(shared_from_this()));
  } else {
    runtime_->WritesDone(half_close_op_.arm(shared_from_this()));
  }
}

void StreamCall::on_message_forwarded(bool ok) {
  if (ok) read_client();
}

// Finish must not be in flight together with ReadInitialMetadata (gRPC aborts), so everything else waits for the
// header.
void StreamCall::on_header(bool ok) {
  if (!ok) return fetch_status();
  if (ended_) return read_runtime();
  copy_initial_metadata(upstream_context_, incoming_->context);
  incoming_->stream.SendInitialMetadata(header_sent_op_.arm_write(shared_from_this()));
}

void StreamCall::read_runtime() { runtime_->Read(&to_client_, runtime_message_op_.arm(shared_from_this())); }

void StreamCall::on_runtime_message(bool ok) {
  if (!ok) return fetch_status();
  if (ended_) return read_runtime();
  if (matched_.rewritten) rewrite(incoming_->context.method(), to_client_, proxy_->hooks.rewrite);
  ticket_.set_response(to_client_.Length());
  incoming_->stream.Write(to_client_, return_op_.arm_write(shared_from_this()));
}

void StreamCall::on_message_returned(bool ok) {
  ticket_.set_response(0);
  if (!ok) upstream_context_.TryCancel();
  if (ok && matched_.observed) show(incoming_->context.method(), to_client_, proxy_->hooks.on_observed);
  read_runtime();
}

void StreamCall::fetch_status() {
  fetching_status_ = true;
  runtime_->Finish(&status_, status_op_.arm(shared_from_this()));
}

void StreamCall::on_status(bool) {
  if (ended_) return;
  copy_trailers(upstream_context_, incoming_->context);
  const bool is_for_successor = ended_for_successor_ && !status_.ok();
  const grpc::Status reply =
      is_for_successor
          ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "topoletd was replaced by a new process; make the call again")
          : upstream_.describe_failure(status_, upstream_context_);
  reply_ = reply.error_code();
  incoming_->stream.Finish(reply, status_sent_op_.arm_write(shared_from_this()));
}

void StreamCall::end_for_successor() {
  ended_for_successor_ = true;
  upstream_context_.TryCancel();
}

void StreamCall::on_end(bool cancelled) {
  proxy_->streams_of_runtime.remove(this);
  ended_ = true;
  if (cancelled) upstream_context_.TryCancel();
  ticket_.end(/*answered=*/!cancelled);
  if (!proxy_->hooks.on_finished) return;
  proxy_->hooks.on_finished({.path = incoming_->context.method(),
                             .code = static_cast<Code>(cancelled ? grpc::StatusCode::CANCELLED : reply_),
                             .is_unary = false,
                             .at_runtime = {}});
}

}  // namespace topolet::cri
