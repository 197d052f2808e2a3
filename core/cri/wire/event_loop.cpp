#include "core/cri/wire/event_loop.hpp"

#include <pthread.h>

namespace topolet::cri {

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
  }
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
