// Unary gRPC calls that are answered later, and none of which outlives its owner.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <utility>

#include "core/base/mutex.hpp"
#include "core/base/result.hpp"

namespace topolet::agent {

class AsyncCalls {
 public:
  AsyncCalls() = default;
  AsyncCalls(const AsyncCalls&) = delete;
  AsyncCalls& operator=(const AsyncCalls&) = delete;
  ~AsyncCalls() { end(); }

  /// Cancels all open calls, which then end with CANCELLED, and waits for that. Later calls end with CANCELLED at once.
  void end() TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    has_ended_ = true;
    for (grpc::ClientContext* context : open_) context->TryCancel();
    while (!open_.empty()) none_open_.wait(mutex_);
  }

  /// `start(context, request, response, on_done)` begins the call; `on_answer` is called on a thread of gRPC's.
  template <class Response, class Request, class Start>
  void call(std::chrono::milliseconds patience, Request request, Start start,
            std::function<void(Result<Response>)> on_answer) TOPOLET_EXCLUDES(mutex_) {
    struct Call {
      grpc::ClientContext context;
      Request request;
      Response response;
    };
    auto call = std::make_shared<Call>();
    call->context.set_deadline(std::chrono::system_clock::now() + patience);
    call->context.set_wait_for_ready(false);
    call->request = std::move(request);
    if (!note_open(&call->context)) return on_answer(Error{Code::kCancelled, "this program is ending"});
    start(&call->context, &call->request, &call->response,
          [this, call, on_answer = std::move(on_answer)](const grpc::Status& status) {
            if (status.ok()) {
              on_answer(std::move(call->response));
            } else {
              on_answer(Error{static_cast<Code>(status.error_code()), status.error_message()});
            }
            MutexLock lock(mutex_);
            open_.erase(&call->context);
            none_open_.notify_all();
          });
  }

 private:
  bool note_open(grpc::ClientContext* context) TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (!has_ended_) open_.insert(context);
    return !has_ended_;
  }

  Mutex mutex_;
  CondVar none_open_;
  bool has_ended_ TOPOLET_GUARDED_BY(mutex_) = false;
  std::set<grpc::ClientContext*> open_ TOPOLET_GUARDED_BY(mutex_);
};

}  // namespace topolet::agent
