// The proxy's one completion queue, shared by the server's and the client's side, and the operations put on it.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "core/base/happens_before.hpp"
#include "core/base/mutex.hpp"

namespace topolet::cri {

/// A tag that the queue hands back.
class CompletionTag {
 public:
  virtual void on_event(bool ok) = 0;

 protected:
  ~CompletionTag() = default;
};

/// One thread that runs the events of one completion queue. (Two threads on one queue were slower and crashed.)
///
/// gRPC aborts when an operation starts on a queue that was shut down, so operations are counted: whoever starts one
/// either knows that another is still counted (begin) or asks first (try_begin); close_and_join() waits for all.
class EventLoop {
 public:
  explicit EventLoop(std::unique_ptr<grpc::ServerCompletionQueue> queue) : queue_(std::move(queue)) {}
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;
  ~EventLoop();

  grpc::ServerCompletionQueue* queue() { return queue_.get(); }
  void start();

  void begin() { operations_.fetch_add(1); }
  bool try_begin();
  void end();

  /// Around what puts bytes on a client's connection; see PendingOperation::arm_write().
  void begin_write() { writes_.fetch_add(1); }
  void end_write() { writes_.fetch_sub(1); }
  /// Runs `work` once, on this loop's thread, at a moment in which no write is pending; after `patience`, as a client
  /// may not read what it is sent, at any moment, and tells it so. One at a time; dropped if the loop closes before.
  void when_nothing_is_written(std::function<void(bool is_nothing_written)> work, std::chrono::milliseconds patience)
      TOPOLET_EXCLUDES(mutex_);
  /// Runs `work` on the loop's thread after `delay` and up to a millisecond; drops it once the loop is closed. Any
  /// thread.
  void post(std::function<void()> work, std::chrono::milliseconds delay = {});

  /// From here on try_begin() says no.
  void close() { closed_.store(true); }
  /// Blocks until no operation is counted. After close(), none can start any more.
  void wait_until_idle() TOPOLET_EXCLUDES(mutex_);
  /// Drains the queue and ends the thread. Only when idle.
  void join();

 private:
  void run();
  void run_waiting_work(bool is_nothing_written) TOPOLET_EXCLUDES(mutex_);

  const std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::thread thread_;
  std::atomic<std::size_t> operations_ = 0;
  std::atomic<std::size_t> writes_ = 0;
  std::atomic<bool> closed_ = false;
  Mutex mutex_;
  CondVar idle_;
  std::atomic<bool> has_waiting_work_ = false;
  std::atomic<bool> is_patience_over_ = false;
  std::function<void(bool)> waiting_work_ TOPOLET_GUARDED_BY(mutex_);
};

/// A step of `Owner` that can be pending on the queue, and keeps its owner alive while it is. Re-usable, but pending
/// only once at a time.
template <class Owner, void (Owner::*Handler)(bool)>
class PendingOperation final : public CompletionTag {
 public:
  explicit PendingOperation(EventLoop& loop) : loop_(loop) {}

  /// The tag for the operation that is started next. Needs an operation that is still counted, see EventLoop.
  void* arm(std::shared_ptr<Owner> owner) {
    loop_.begin();
    owner_ = std::move(owner);
    mark_handed_over(static_cast<CompletionTag*>(this));
    return static_cast<CompletionTag*>(this);
  }
  /// The same for an operation that sends to the client.
  void* arm_write(std::shared_ptr<Owner> owner) {
    is_write_ = true;
    loop_.begin_write();
    return arm(std::move(owner));
  }
  /// For an operation that will never report.
  void disarm() {
    owner_.reset();
    loop_.end();
  }
  void on_event(bool ok) override {
    EventLoop& loop = loop_;
    if (std::exchange(is_write_, false)) loop.end_write();
    {
      const std::shared_ptr<Owner> owner = std::exchange(owner_, nullptr);
      (owner.get()->*Handler)(ok);
    }
    loop.end();
  }

 private:
  EventLoop& loop_;
  std::shared_ptr<Owner> owner_;
  bool is_write_ = false;
};

}  // namespace topolet::cri
