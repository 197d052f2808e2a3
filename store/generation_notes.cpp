#include "store/generation_notes.hpp"

#include <pthread.h>

#include <algorithm>
#include <utility>

namespace topolet::store {

GenerationNotes::~GenerationNotes() {
  std::thread thread;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    thread = std::move(thread_);
  }
  wake_up_.notify_all();
  if (thread.joinable()) thread.join();
}

void GenerationNotes::note(std::uint64_t generation) {
  MutexLock lock(mutex_);
  if (generation <= wanted_) return;
  wanted_ = generation;
  if (!thread_.joinable()) {
    thread_ = std::thread([this] { run(); });
    ::pthread_setname_np(thread_.native_handle(), "topolet-note");
  }
  wake_up_.notify_one();
}

void GenerationNotes::run() {
  while (true) {
    std::uint64_t generation = 0;
    {
      MutexLock lock(mutex_);
      while (written_ == wanted_ && !stopping_) wake_up_.wait(mutex_);
      if (stopping_) return;
      generation = written_ = wanted_;
    }
    write_(generation);
  }
}

}  // namespace topolet::store
