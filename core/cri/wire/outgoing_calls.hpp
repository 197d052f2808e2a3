// Unary calls of our own to the runtime.
#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <unordered_set>

#include "core/base/mutex.hpp"
#include "core/cri/call.hpp"
#include "core/cri/wire/event_loop.hpp"
#include "core/cri/wire/upstream.hpp"

namespace topolet::cri {

/// Starts and remembers own calls, so that they can be cancelled at the end. Any thread may call any function.
class OutgoingCalls : public std::enable_shared_from_this<OutgoingCalls> {
 public:
  using Done = std::function<void(const RuntimeResponse&)>;

  explicit OutgoingCalls(EventLoop& loop) : loop_(loop) {}

  /// `done` runs on the I/O thread, or at once with UNAVAILABLE if the loop is closed.
  void start(Upstream& upstream, const std::string& path, const std::string& request, std::chrono::milliseconds timeout,
             Done done) TOPOLET_EXCLUDES(mutex_);
  /// Cancels the calls in flight. Only after the loop was closed, so that no new one follows.
  void cancel_all() TOPOLET_EXCLUDES(mutex_);

 private:
  class InFlight;

  void untrack(InFlight* call) TOPOLET_EXCLUDES(mutex_);

  EventLoop& loop_;
  Mutex mutex_;
  std::unordered_set<InFlight*> in_flight_ TOPOLET_GUARDED_BY(mutex_);
};

/// The answer to a unary call, as the rest of the core sees it.
RuntimeResponse make_response(const grpc::Status& status, const grpc::ByteBuffer& body);

}  // namespace topolet::cri
