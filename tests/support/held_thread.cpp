#include "tests/support/held_thread.hpp"

#include <sys/ptrace.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

namespace topolet {

pid_t thread_of(pid_t process, const std::string& name) {
  pid_t oldest = 0;
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task", error)) {
    std::string comm;
    std::getline(std::ifstream(task.path() / "comm"), comm);
    const pid_t thread = std::atoi(task.path().filename().c_str());
    if (comm == name && (oldest == 0 || thread < oldest)) oldest = thread;
  }
  return oldest;
}

HeldThread::HeldThread(pid_t thread) : thread_(thread) {
  std::promise<bool> held;
  std::future<bool> answer = held.get_future();
  tracer_ = std::thread([this, promise = std::move(held)]() mutable { hold(std::move(promise)); });
  held_ = answer.get();
}

HeldThread::~HeldThread() {
  released_ = true;
  tracer_.join();
}

void HeldThread::hold(std::promise<bool> held) {
  int status = 0;
  const bool stopped = ::ptrace(PTRACE_SEIZE, thread_, nullptr, nullptr) == 0 &&
                       ::ptrace(PTRACE_INTERRUPT, thread_, nullptr, nullptr) == 0 &&
                       ::waitpid(thread_, &status, __WALL) == thread_ && WIFSTOPPED(status);
  held.set_value(stopped);
  if (!stopped) return;
  // Its process is not gone for others until its end was seen here.
  while (::waitpid(thread_, &status, __WALL | WNOHANG) == 0) {
    if (released_) {
      ::ptrace(PTRACE_DETACH, thread_, nullptr, nullptr);
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace topolet
