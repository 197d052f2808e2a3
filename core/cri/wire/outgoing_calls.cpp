#include "core/cri/wire/outgoing_calls.hpp"

#include <utility>

#include "core/cri/wire/proxy_metadata.hpp"

namespace topolet::cri {

class OutgoingCalls::InFlight : public std::enable_shared_from_this<InFlight> {
 public:
  InFlight(std::shared_ptr<OutgoingCalls> calls, EventLoop& loop, Upstream& upstream, Done done)
      : calls_(std::move(calls)), loop_(loop), upstream_(upstream), done_(std::move(done)), answered_(loop) {}

  void start(const std::string& path, const std::string& request, std::chrono::milliseconds timeout) {
    context_.set_deadline(std::chrono::system_clock::now() + timeout);
    reader_ = upstream_.stub().PrepareUnaryCall(&context_, path, make_buffer(request), loop_.queue());
    reader_->StartCall();
    reader_->Finish(&response_, &status_, answered_.arm(shared_from_this()));
  }
  void cancel() { context_.TryCancel(); }

 private:
  void on_answered(bool) {
    calls_->untrack(this);
    done_(make_response(upstream_.describe_failure(status_, context_), response_));
  }

  const std::shared_ptr<OutgoingCalls> calls_;
  EventLoop& loop_;
  Upstream& upstream_;
  const Done done_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader_;
  grpc::ByteBuffer response_;
  grpc::Status status_;
  PendingOperation<InFlight, &InFlight::on_answered> answered_;
};

void OutgoingCalls::start(Upstream& upstream, const std::string& path, const std::string& request,
                          std::chrono::milliseconds timeout, Done done) {
  if (!loop_.try_begin()) {
    return done(RuntimeResponse{Code::kUnavailable, "topoletd is shutting down; " + path + " was not sent", {}});
  }
  const auto call = std::make_shared<InFlight>(shared_from_this(), loop_, upstream, std::move(done));
  {
    MutexLock lock(mutex_);
    in_flight_.insert(call.get());
  }
  call->start(path, request, timeout);
  loop_.end();
}

void OutgoingCalls::cancel_all() {
  MutexLock lock(mutex_);
  for (InFlight* call : in_flight_) call->cancel();
}

void OutgoingCalls::untrack(InFlight* call) {
  MutexLock lock(mutex_);
  in_flight_.erase(call);
}

RuntimeResponse make_response(const grpc::Status& status, const grpc::ByteBuffer& body) {
  RuntimeResponse answer{static_cast<Code>(status.error_code()), status.error_message(), {}};
  if (status.ok() && body.Valid()) answer.body = flatten(body);
  return answer;
}

}  // namespace topolet::cri
