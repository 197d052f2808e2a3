#include "core/cri/proxy_unary_call.hpp"

#include <utility>

#include "core/cri/methods.hpp"
#include "core/cri/proxy_metadata.hpp"
#include "core/cri/proxy_stream_call.hpp"
#include "core/cri/upstream_call.hpp"

namespace topolet {

UnaryCall::UnaryCall(std::shared_ptr<Wiring> wiring, std::shared_ptr<Inbound> inbound, Upstream& upstream)
    : wiring_(std::move(wiring)),
      inbound_(std::move(inbound)),
      upstream_(upstream),
      path_(inbound_->context.method()),
      request_op_(wiring_->loop),
      answer_op_(wiring_->loop),
      sent_op_(wiring_->loop) {}

void UnaryCall::serve(Interest interest) {
  interest_ = interest;
  wiring_->serving.add();
  inbound_->set_on_end([self = shared_from_this()](bool cancelled) { self->on_end(cancelled); });
  inbound_->stream.Read(&request_, request_op_.arm(shared_from_this()));
}

void UnaryCall::on_request(bool ok) {
  if (!ok) return relay_without_message();
  if (interest_.intercepted) {
    request_bytes_ = flatten(request_);
    wiring_->hooks.on_call(std::make_shared<InterceptedCall>(shared_from_this()));
    return;
  }
  MutexLock lock(mutex_);
  if (!ended_) start_upstream(request_);
}

/// What becomes of a call that brings no message is for the runtime to say; gRPC can send such a one as a stream only.
void UnaryCall::relay_without_message() {
  {
    MutexLock lock(mutex_);
    if (ended_) return;
  }
  wiring_->serving.remove();
  std::make_shared<StreamCall>(wiring_, inbound_, upstream_)->serve({});
}

bool UnaryCall::cancelled() const {
  MutexLock lock(mutex_);
  return cancelled_;
}

void UnaryCall::forward(const std::string& patch, OnAnswer on_answer) {
  {
    MutexLock lock(mutex_);
    if (on_answer_ != nullptr || have_answer_) return;
    // A call whose client is gone has cancelled its context already: the upstream call reports CANCELLED through the
    // queue without reaching the runtime.
    if (wiring_->loop.try_begin()) {
      on_answer_ = std::move(on_answer);
      start_upstream(append(request_, patch));
      wiring_->loop.end();
      return;
    }
  }
  on_answer(Answer{Code::kCancelled, "topoletd is shutting down; " + path_ + " was not sent", {}});
}

void UnaryCall::start_upstream(const grpc::ByteBuffer& request) {
  copy_request_metadata(inbound_->context, upstream_context_);
  reader_ = upstream_.stub().PrepareUnaryCall(&upstream_context_, path_, request, wiring_->loop.queue());
  reader_->StartCall();
  reader_->Finish(&response_, &status_, answer_op_.arm(shared_from_this()));
}

void UnaryCall::on_answer(bool) {
  OnAnswer on_answer;
  {
    MutexLock lock(mutex_);
    status_ = upstream_.explain(status_, upstream_context_);
    have_answer_ = true;
    on_answer = std::exchange(on_answer_, nullptr);
    if (!interest_.intercepted) send_answer();
  }
  if (on_answer) on_answer(make_answer(status_, response_));
  if (interest_.observed && !interest_.intercepted && status_.ok()) observe();
}

void UnaryCall::observe() const { wiring_->hooks.on_observed({path_, flatten(request_), flatten(response_)}); }

void UnaryCall::finish() {
  MutexLock lock(mutex_);
  if (have_answer_) send_answer();
}

void UnaryCall::send_answer() {
  if (!may_answer()) return;
  grpc::ServerContext& context = inbound_->context;
  copy_initial_metadata(upstream_context_, context);
  copy_trailers(upstream_context_, context);
  void* tag = sent_op_.arm(shared_from_this());
  if (status_.ok() && response_.Valid()) {
    if (response_.Length() >= Unread::kLeastBytes) wiring_->unread.add(inbound_);
    inbound_->stream.WriteAndFinish(response_, grpc::WriteOptions(), status_, tag);
  } else {
    inbound_->stream.Finish(status_, tag);
  }
}

void UnaryCall::reject(const grpc::Status& status) {
  MutexLock lock(mutex_);
  if (may_answer()) inbound_->stream.Finish(status, sent_op_.arm(shared_from_this()));
}

bool UnaryCall::may_answer() { return !ended_ && !std::exchange(answered_, true); }

void UnaryCall::on_end(bool cancelled) {
  wiring_->serving.remove();
  MutexLock lock(mutex_);
  ended_ = true;
  cancelled_ = cancelled;
  if (cancelled) upstream_context_.TryCancel();
}

InterceptedCall::InterceptedCall(std::shared_ptr<UnaryCall> call) : call_(std::move(call)) {}

InterceptedCall::~InterceptedCall() {
  call_->reject({grpc::StatusCode::UNAVAILABLE, "topoletd dropped " + path() + " unanswered; try again"});
}

std::string_view InterceptedCall::method() const { return parse_method(call_->path()).name; }

void InterceptedCall::forward(std::string patch, std::function<void(const Answer&)> on_answer) {
  call_->forward(patch, std::move(on_answer));
}

void InterceptedCall::reject(const Error& error) {
  call_->reject({static_cast<grpc::StatusCode>(error.code), error.message});
}

}  // namespace topolet
