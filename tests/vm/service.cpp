#include "tests/vm/service.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include "tests/integration/child.hpp"

namespace topolet::integration {
namespace {

std::string without_last_newline(std::string text) {
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace

CommandResult run_command(const std::string& command) {
  const auto finished = run_to_end({"sh", "-c", "exec 2>&1; " + command});
  if (!finished) return {.status = -1, .text = finished.error().message};
  return {.status = finished->exit_code, .text = without_last_newline(finished->out)};
}

std::string property_of_service(const std::string& name) {
  return run_command("systemctl show --value -p " + name + " topoletd.service").text;
}

pid_t service_pid() { return std::atoi(property_of_service("MainPID").c_str()); }

bool service_is_up() { return property_of_service("ActiveState") == "active"; }

std::string service_journal() {
  return run_command("journalctl --sync; journalctl --no-pager -o cat -u topoletd.service").text;
}

pid_t thread_of(pid_t process, const std::string& name) {
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task", error)) {
    std::string comm;
    std::getline(std::ifstream(task.path() / "comm"), comm);
    if (comm == name) return std::atoi(task.path().filename().c_str());
  }
  return 0;
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

FrozenFileSystem::FrozenFileSystem(const std::string& mount_point)
    : directory_(::open(mount_point.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)),
      frozen_(::ioctl(directory_, FIFREEZE, 0) == 0) {}

FrozenFileSystem::~FrozenFileSystem() {
  if (frozen_) ::ioctl(directory_, FITHAW, 0);
  ::close(directory_);
}

}  // namespace topolet::integration
