#include "core/plugin/crash_mark.hpp"

#include <unistd.h>
#include <ctime>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <utility>

namespace topolet {
namespace {

struct Inside {
  const char* plugin;
  const char* call;
};
constinit thread_local Inside t_inside{nullptr, nullptr};
std::atomic<int> g_stamp_fd = -1;

constexpr std::array<std::pair<int, const char*>, 5> kSignals = {
    {{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGILL, "SIGILL"}, {SIGFPE, "SIGFPE"}, {SIGABRT, "SIGABRT"}}};

/// A line of text that is put together without allocating, as a signal handler must.
class Line {
 public:
  Line& add(const char* text) {
    while (*text != '\0' && size_ < text_.size() - 1) text_[size_++] = *text++;
    return *this;
  }
  Line& add(std::int64_t number) {
    std::array<char, 21> digits{};
    std::size_t at = digits.size() - 1;
    do {
      digits[--at] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number > 0);
    return add(&digits[at]);
  }
  void write_to(int fd) {
    text_[size_++] = '\n';
    [[maybe_unused]] const ssize_t written = ::write(fd, text_.data(), size_);
  }

 private:
  std::array<char, 256> text_{};
  std::size_t size_ = 0;
};

const char* name_of(int signal) {
  for (const auto& [number, name] : kSignals) {
    if (number == signal) return name;
  }
  return "signal";
}

std::int64_t now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

/// Async-signal-safe, as all that it calls.
void on_crash(int signal, siginfo_t* info, void*) {
  const int error = errno;
  // The kernel's own faults have a positive code; abort() signals the process itself.
  const bool raised = info->si_code <= 0;
  const bool own = !raised || info->si_pid == ::getpid();
  const Inside inside = t_inside;
  const int stamp_fd = g_stamp_fd.load();
  if (own && inside.plugin != nullptr) {
    if (stamp_fd >= 0) {
      Line()
          .add("! ")
          .add(now_ms())
          .add(" ")
          .add(inside.plugin)
          .add(" ")
          .add(name_of(signal))
          .add(" ")
          .add(inside.call)
          .write_to(stamp_fd);
    }
    Line()
        .add("topoletd crashes: ")
        .add(name_of(signal))
        .add(" in ")
        .add(inside.call)
        .add("() of plugin ")
        .add(inside.plugin)
        .write_to(STDERR_FILENO);
  }
  struct sigaction as_ever {};
  as_ever.sa_handler = SIG_DFL;
  ::sigaction(signal, &as_ever, nullptr);
  // A fault happens again on return; a signal that was sent does not.
  if (raised) ::raise(signal);
  errno = error;
}

}  // namespace

CrashMark::CrashMark(const char* plugin, const char* call)
    : outer_plugin_(t_inside.plugin), outer_call_(t_inside.call) {
  t_inside.call = call;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  t_inside.plugin = plugin;
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

CrashMark::~CrashMark() {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  t_inside.plugin = outer_plugin_;
  t_inside.call = outer_call_;
}

CrashStack::CrashStack() : bytes_(std::make_unique<std::array<char, kBytes>>()) {
  stack_t stack{};
  stack.ss_sp = bytes_->data();
  stack.ss_size = bytes_->size();
  ::sigaltstack(&stack, &before_);
}

CrashStack::~CrashStack() { ::sigaltstack(&before_, nullptr); }

void stamp_crashes_to(int stamp_fd) {
  g_stamp_fd = stamp_fd;
  struct sigaction action {};
  action.sa_sigaction = &on_crash;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigemptyset(&action.sa_mask);
  for (const auto& [number, name] : kSignals) ::sigaction(number, &action, nullptr);
}

}  // namespace topolet
