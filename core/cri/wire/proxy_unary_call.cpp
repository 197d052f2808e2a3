#include "core/cri/wire/proxy_unary_call.hpp"

#include <utility>

#include "core/cri/methods.hpp"
#include "core/cri/wire/outgoing_calls.hpp"
#include "core/cri/wire/proxy_metadata.hpp"
#include "core/cri/wire/proxy_stream_call.hpp"

namespace topolet::cri {

UnaryCall::UnaryCall(std::shared_ptr<ProxyContext> proxy, std::shared_ptr<IncomingCall> incoming, Upstream& upstream)
    : proxy_(std::move(proxy)),
      incoming_(std::move(incoming)),
      ticket_(proxy_->admission, proxy_->admission.find(incoming_->context.peer())),
      upstream_(&upstream),
      path_(incoming_->context.method()),
      request_op_(proxy_->loop),
      no_message_op_(proxy_->loop),
      response_op_(proxy_->loop),
      sent_op_(proxy_->loop) {}

void UnaryCall::serve(MatchedHooks matched) {
  matched_ = matched;
  proxy_->unary_calls_served.add();
  incoming_->set_on_end([self = shared_from_this()](bool cancelled) { self->on_end(cancelled); });
  incoming_->stream.Read(&request_, request_op_.arm(shared_from_this()));
}

void UnaryCall::on_request(bool ok) {
  if (!ok) return await_end_without_message();
  const auto& metadata = incoming_->context.client_metadata();
  ticket_.begin(request_.Length() + metadata_bytes(metadata) + metadata.size() * CallAdmission::kFieldBytes);
  // Only while it waits does the ticket hold this.
  if (ticket_.wait_for_turn([self = shared_from_this()] { self->hand_on(); })) return;
  reject({grpc::StatusCode::RESOURCE_EXHAUSTED,
          "topoletd has too many calls of this connection that wait for the container runtime; make fewer at a time"});
}

void UnaryCall::hand_on() {
  if (is_for_core()) {
    request_bytes_ = flatten(request_);
    proxy_->hooks.on_call(std::make_shared<InterceptedCall>(shared_from_this()));
    return;
  }
  MutexLock lock(mutex_);
  if (!ended_) start_upstream(request_);
}

bool UnaryCall::is_for_core() {
  if (!matched_.intercepted) return false;
  {
    // Nobody waits for it, but the core is told of it.
    MutexLock lock(mutex_);
    if (ended_) return true;
  }
  if (proxy_->calls_at_core.add(shared_from_this())) return true;
  // The successor came while the request was being read.
  matched_ = {};
  upstream_ = proxy_->successor.load();
  return false;
}

/// Waits for the end of a call without a message. A cancelled call brings no message either, and the runtime should not
/// see it. The next event on the queue tells the two apart: the alarm comes after it.
void UnaryCall::await_end_without_message() {
  no_message_alarm_ = std::make_unique<grpc::Alarm>();
  no_message_alarm_->Set(proxy_->loop.queue(), std::chrono::system_clock::now(),
                         no_message_op_.arm(shared_from_this()));
}

/// Relays a call that brings no message. The runtime decides what to answer; gRPC can send such a call as a stream
/// only.
void UnaryCall::relay_without_message(bool) {
  {
    MutexLock lock(mutex_);
    if (ended_) return;
  }
  proxy_->unary_calls_served.remove();
  std::make_shared<StreamCall>(proxy_, incoming_, *upstream_)->serve({});
}

bool UnaryCall::cancelled() const {
  MutexLock lock(mutex_);
  return cancelled_;
}

void UnaryCall::forward(const std::string& patch, OnResponse on_response) {
  {
    MutexLock lock(mutex_);
    if (on_response_ != nullptr || (has_response_ && !taken_from_core_)) return;
    // A call whose client is gone has cancelled its context already: the upstream call reports CANCELLED through the
    // queue without reaching the runtime.
    if (!taken_from_core_ && proxy_->loop.try_begin()) {
      on_response_ = std::move(on_response);
      start_upstream(append(request_, patch));
      proxy_->loop.end();
      return;
    }
  }
  on_response(RuntimeResponse{Code::kCancelled, "topoletd is shutting down; " + path_ + " was not sent", {}});
}

void UnaryCall::start_upstream(const grpc::ByteBuffer& request) {
  copy_request_metadata(incoming_->context, upstream_context_);
  upstream_began_ = Clock::now();
  reader_ = upstream_->stub().PrepareUnaryCall(&upstream_context_, path_, request, proxy_->loop.queue());
  reader_->StartCall();
  reader_->Finish(&response_, &status_, response_op_.arm(shared_from_this()));
}

void UnaryCall::on_response(bool) {
  ticket_.set_response(response_.Length());
  OnResponse on_response;
  {
    MutexLock lock(mutex_);
    status_ = upstream_->describe_failure(status_, upstream_context_);
    at_runtime_ = Clock::now() - upstream_began_;
    has_response_ = true;
    on_response = std::exchange(on_response_, nullptr);
    if (matched_.rewritten && status_.ok()) rewrite(path_, response_, proxy_->hooks.rewrite);
    if (!matched_.intercepted || taken_from_core_) send_response();
  }
  if (on_response) on_response(make_response(status_, response_));
  if (matched_.observed && !matched_.intercepted && status_.ok()) observe();
}

void UnaryCall::observe() const { show(path_, response_, proxy_->hooks.on_observed); }

void UnaryCall::finish() {
  MutexLock lock(mutex_);
  if (has_response_) send_response();
}

void UnaryCall::send_response() {
  if (!claim_reply()) return;
  reply_ = status_.error_code();
  grpc::ServerContext& context = incoming_->context;
  copy_initial_metadata(upstream_context_, context);
  copy_trailers(upstream_context_, context);
  void* tag = sent_op_.arm_write(shared_from_this());
  if (status_.ok() && response_.Valid()) {
    incoming_->stream.WriteAndFinish(response_, grpc::WriteOptions(), status_, tag);
  } else {
    incoming_->stream.Finish(status_, tag);
  }
}

void UnaryCall::reject(const grpc::Status& status) {
  MutexLock lock(mutex_);
  if (!claim_reply()) return;
  reply_ = status.error_code();
  incoming_->stream.Finish(status, sent_op_.arm_write(shared_from_this()));
}

void UnaryCall::let_go() {
  if (proxy_->successor.load() != nullptr) return take_from_core();
  reject({grpc::StatusCode::UNAVAILABLE, "topoletd dropped " + path_ + " unanswered; try again"});
}

void UnaryCall::take_from_core() {
  MutexLock lock(mutex_);
  if (ended_ || replied_) return;
  taken_from_core_ = true;
  if (has_response_) return send_response();
  if (reader_ != nullptr || !proxy_->loop.try_begin()) return;
  upstream_ = proxy_->successor.load();
  start_upstream(request_);
  proxy_->loop.end();
}

bool UnaryCall::claim_reply() { return !ended_ && !std::exchange(replied_, true); }

void UnaryCall::on_end(bool cancelled) {
  proxy_->unary_calls_served.remove();
  proxy_->calls_at_core.remove(this);
  grpc::StatusCode code = grpc::StatusCode::OK;
  {
    MutexLock lock(mutex_);
    ended_ = true;
    cancelled_ = cancelled;
    if (cancelled) upstream_context_.TryCancel();
    code = cancelled ? grpc::StatusCode::CANCELLED : reply_;
  }
  ticket_.end(/*answered=*/!cancelled);
  if (!proxy_->hooks.on_finished) return;
  proxy_->hooks.on_finished(
      {.path = path_, .code = static_cast<Code>(code), .total = Clock::now() - began_, .at_runtime = at_runtime_});
}

InterceptedCall::InterceptedCall(std::shared_ptr<UnaryCall> call) : call_(std::move(call)) {}

InterceptedCall::~InterceptedCall() { call_->let_go(); }

std::string_view InterceptedCall::method() const { return parse_method(call_->path()).name; }

void InterceptedCall::forward(std::string patch, std::function<void(const RuntimeResponse&)> on_response) {
  call_->forward(patch, std::move(on_response));
}

void InterceptedCall::reject(const Error& error) {
  call_->reject({static_cast<grpc::StatusCode>(error.code), error.message});
}

}  // namespace topolet::cri
