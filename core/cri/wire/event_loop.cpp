#include "core/cri/wire/event_loop.hpp"

#include <grpcpp/alarm.h>
#include <pthread.h>

namespace topolet::cri {
namespace {

/// Work that comes off the queue like any other event: an alarm puts it there. Deletes itself.
class PostedWork final : public CompletionTag {
 public:
  /// As an operation of the loop that has begun.
  static void put_on(EventLoop& loop, std::chrono::milliseconds delay, std::function<void()> work) {
    auto* posted = new PostedWork(loop, std::move(work));
    mark_handed_over(static_cast<CompletionTag*>(posted));
    const gpr_timespec due =
        gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(delay.count(), GPR_TIMESPAN));
    posted->alarm_.Set(loop.queue(), due, static_cast<CompletionTag*>(posted));
  }
  void on_event(bool /*ok*/) override {
    EventLoop& loop = loop_;
    {
      const std::unique_ptr<PostedWork> self(this);
      work_();
    }
    loop.end();
  }

 private:
  PostedWork(EventLoop& loop, std::function<void()> work) : loop_(loop), work_(std::move(work)) {}

  EventLoop& loop_;
  const std::function<void()> work_;
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
  post([] {});  // so that the loop comes round
  PostedWork::put_on(*this, patience, [this] { is_patience_over_ = true; });
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

void EventLoop::post(std::function<void()> work, std::chrono::milliseconds delay) {
  if (try_begin()) PostedWork::put_on(*this, delay, std::move(work));
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
