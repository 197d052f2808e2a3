// A thread of another process that stands still.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <future>
#include <string>
#include <thread>

namespace topolet {

/// The thread of a process that has this name, the oldest if several have; 0 if none has.
pid_t thread_of(pid_t process, const std::string& name);

/// A thread that stands still, held by ptrace, while the others of its process go on.
class HeldThread {
 public:
  explicit HeldThread(pid_t thread);
  ~HeldThread();
  HeldThread(const HeldThread&) = delete;
  HeldThread& operator=(const HeldThread&) = delete;
  bool is_held() const { return held_; }

 private:
  void hold(std::promise<bool> held);

  const pid_t thread_;
  std::atomic<bool> released_ = false;
  bool held_ = false;
  std::thread tracer_;  ///< only the thread that holds may let go, and must wait for one that is killed
};

}  // namespace topolet
