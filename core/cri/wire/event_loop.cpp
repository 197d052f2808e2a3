#include "core/cri/wire/event_loop.hpp"

#include <grpcpp/alarm.h>
#include <pthread.h>

namespace topolet::cri {
namespace {

/// Has the loop go round once, and sets `mark` then, if there is one.
class Wakeup final : public CompletionTag {
 public:
  static void send(EventLoop& loop, std::chrono::milliseconds delay, std::atomic<bool>* mark) {
    auto* wakeup = new Wakeup(loop, mark);
    mark_handed_over(static_cast<CompletionTag*>(wakeup));
    wakeup->alarm_.Set(loop.queue(), std::chrono::system_clock::now() + delay, static_cast<CompletionTag*>(wakeup));
  }
  void on_event(bool) override {
    if (mark_ != nullptr) *mark_ = true;
    loop_.end();
    delete this;
  }

 private:
  Wakeup(EventLoop& loop, std::atomic<bool>* mark) : loop_(loop), mark_(mark) { loop_.begin(); }

  EventLoop& loop_;
  std::atomic<bool>* const mark_;
  grpc::Alarm alarm_;
};

}  // namespace

EventLoop::~EventLoop() { join(); }

void EventLoop::start() {
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "topolet-io");
}

void EventLoop::run() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) {
    mark_taken(tag);
    static_cast<CompletionTag*>(tag)->on_event(ok);
    if (!has_waiting_work_.load(std::memory_order_relaxed)) continue;
    const bool is_nothing_written = writes_.load() == 0;
    if (is_nothing_written || is_patience_over_) run_waiting_work(is_nothing_written);
  }
}

void EventLoop::when_nothing_is_written(std::function<void(bool)> work, std::chrono::milliseconds patience) {
  if (!try_begin()) return;
  {
    MutexLock lock(mutex_);
    waiting_work_ = std::move(work);
    has_waiting_work_ = true;
  }
  Wakeup::send(*this, {}, nullptr);
  Wakeup::send(*this, patience, &is_patience_over_);
  end();
}

void EventLoop::run_waiting_work(bool is_nothing_written) {
  std::function<void(bool)> work;
  {
    MutexLock lock(mutex_);
    work.swap(waiting_work_);
    has_waiting_work_ = false;
  }
  if (work) work(is_nothing_written);
}

bool EventLoop::try_begin() {
  begin();
  if (!closed_.load()) return true;
  end();
  return false;
}

void EventLoop::end() {
  if (operations_.fetch_sub(1) != 1 || !closed_.load()) return;
  MutexLock lock(mutex_);
  idle_.notify_all();
}

void EventLoop::wait_until_idle() {
  MutexLock lock(mutex_);
  while (operations_.load() != 0) idle_.wait(mutex_);
}

void EventLoop::join() {
  if (!thread_.joinable()) return;
  queue_->Shutdown();
  thread_.join();
}

}  // namespace topolet::cri
