// What every relayed call needs of the proxy.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>

#include "core/base/log.hpp"
#include "core/base/mutex.hpp"
#include "core/cri/wire/event_loop.hpp"
#include "core/cri/wire/incoming_call.hpp"
#include "core/cri/wire/proxy.hpp"
#include "core/cri/wire/upstream.hpp"

namespace topolet::cri {

/// Counts the unary calls that are being served, so that a shutdown can wait for them. Any thread.
class UnaryCallsServed {
 public:
  void add() TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    ++count_;
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
  Mutex mutex_;
  CondVar none_;
  std::size_t count_ TOPOLET_GUARDED_BY(mutex_) = 0;
};

/// The large answers to unary calls that their clients have not read to the end. Any thread.
class UnreadResponses {
 public:
  /// Smaller ones are not worth the counting.
  static constexpr std::size_t kLeastBytes = 16 << 10;

  void add(const std::shared_ptr<IncomingCall>& call) TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    since_.emplace(call, std::chrono::steady_clock::now());
  }
  void remove(const std::shared_ptr<IncomingCall>& call) TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    since_.erase(call);
  }
  /// How many there were.
  std::size_t cancel_older_than(std::chrono::milliseconds age) TOPOLET_EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  std::map<std::shared_ptr<IncomingCall>, std::chrono::steady_clock::time_point> since_ TOPOLET_GUARDED_BY(mutex_);
};

/// What the core asked for of one call, by the hooks.
struct MatchedHooks {
  bool intercepted = false;
  bool observed = false;
};

/// Shared by the proxy and its calls: a Call that the core still holds may outlive the proxy.
struct ProxyContext {
  ProxyContext(std::unique_ptr<grpc::ServerCompletionQueue> queue, ProxyHooks proxy_hooks)
      : loop(std::move(queue)), hooks(std::move(proxy_hooks)) {}

  EventLoop loop;
  const ProxyHooks hooks;
  std::unique_ptr<Upstream> runtime;
  std::unique_ptr<Upstream> images;  ///< null: the runtime's
  UnaryCallsServed unary_calls_served;
  UnreadResponses unread_responses;
};

}  // namespace topolet::cri
