#include "core/cri/wire/incoming_call.hpp"

#include <utility>

namespace topolet::cri {

void IncomingCall::wait(grpc::AsyncGenericService& service, grpc::ServerCompletionQueue* queue, OnCall on_call) {
  on_call_ = std::move(on_call);
  context.AsyncNotifyWhenDone(ended_op_.arm(shared_from_this()));
  service.RequestCall(&context, &stream, queue, queue, requested_.arm(shared_from_this()));
}

void IncomingCall::set_on_end(OnEnd on_end) {
  if (ended_) return on_end(context.IsCancelled());
  on_end_ = std::move(on_end);
}

void IncomingCall::reject(const grpc::Status& status) {
  if (!ended_) stream.Finish(status, rejected_op_.arm_write(shared_from_this()));
}

void IncomingCall::on_requested(bool ok) {
  const OnCall on_call = std::exchange(on_call_, nullptr);
  // The end of a call that never began is never reported.
  if (!ok) return ended_op_.disarm();
  on_call(shared_from_this());
}

void IncomingCall::on_ended(bool) {
  ended_ = true;
  if (const OnEnd on_end = std::exchange(on_end_, nullptr)) on_end(context.IsCancelled());
}

}  // namespace topolet::cri
