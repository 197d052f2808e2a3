// The parts of the proxy that every relayed call needs.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "core/base/log_fwd.hpp"
#include "core/base/mutex.hpp"
#include "core/cri/wire/call_admission.hpp"
#include "core/cri/wire/event_loop.hpp"
#include "core/cri/wire/incoming_call.hpp"
#include "core/cri/wire/proxy.hpp"
#include "core/cri/wire/upstream.hpp"

namespace topolet::cri {

class StreamCall;
class UnaryCall;

/// Counts the unary calls that are being served, so that a shutdown can wait for them. Any thread.
class UnaryCallsServed {
 public:
  void add() TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    ++count_;
  }
  std::size_t count() const TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return count_;
  }
  void remove() TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (--count_ == 0) none_.notify_all();
  }
  void wait_for_none(std::chrono::steady_clock::time_point deadline) TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (count_ != 0 && none_.wait_until(mutex_, deadline)) {
    }
  }

 private:
  mutable Mutex mutex_;
  CondVar none_;
  std::size_t count_ TOPOLET_GUARDED_BY(mutex_) = 0;
};

/// Calls of one kind that are under way. Any thread.
template <class Call>
class CallsUnderWay {
 public:
  /// False, and nothing is added, once there is a successor.
  bool add(const std::shared_ptr<Call>& call) TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (!closed_) calls_.emplace(call.get(), call);
    return !closed_;
  }
  void remove(const Call* call) TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (calls_.erase(call) != 0 && calls_.empty()) none_.notify_all();
  }
  /// From here on add() says no.
  void close() TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    closed_ = true;
  }
  /// False if some are left at the deadline.
  bool wait_for_none(std::chrono::steady_clock::time_point deadline) TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (!calls_.empty()) {
      if (!none_.wait_until(mutex_, deadline)) return calls_.empty();
    }
    return true;
  }
  std::vector<std::shared_ptr<Call>> all() const TOPOLET_EXCLUDES(mutex_) {
    std::vector<std::shared_ptr<Call>> alive;
    MutexLock lock(mutex_);
    for (const auto& [address, call] : calls_) {
      if (auto locked = call.lock()) alive.push_back(std::move(locked));
    }
    return alive;
  }

 private:
  mutable Mutex mutex_;
  CondVar none_;
  bool closed_ TOPOLET_GUARDED_BY(mutex_) = false;
  std::map<const Call*, std::weak_ptr<Call>> calls_ TOPOLET_GUARDED_BY(mutex_);
};

/// The hooks of the core that match one call.
struct MatchedHooks {
  bool intercepted = false;
  bool observed = false;
  bool rewritten = false;
};

/// Shared by the proxy and its calls: a Call that the core still holds may outlive the proxy.
struct ProxyContext {
  ProxyContext(std::unique_ptr<grpc::ServerCompletionQueue> queue, ProxyHooks proxy_hooks, Clock clock)
      : loop(std::move(queue)), hooks(std::move(proxy_hooks)), admission(loop, std::move(clock)) {}

  EventLoop loop;
  const ProxyHooks hooks;
  std::unique_ptr<Upstream> runtime;
  std::unique_ptr<Upstream> images;  ///< null: the runtime's
  /// The topoletd that takes this one's place: from when it is set, new calls go there, and the core gets none. Stays
  /// null where nobody does.
  std::unique_ptr<Upstream> successor_owner;
  std::atomic<Upstream*> successor = nullptr;
  UnaryCallsServed unary_calls_served;
  CallsUnderWay<UnaryCall> calls_at_core;
  CallsUnderWay<StreamCall> streams_of_runtime;  ///< those that go to the runtime, not to a successor
  CallAdmission admission;

  /// Answers a call of the kubelet's socket that goes to nobody.
  void refuse(IncomingCall& incoming, const grpc::Status& status) const {
    incoming.reject(status);
    if (!hooks.on_finished) return;
    hooks.on_finished({.path = incoming.context.method(),
                       .code = static_cast<Code>(status.error_code()),
                       .is_unary = false,
                       .at_runtime = {}});
  }
};

}  // namespace topolet::cri
