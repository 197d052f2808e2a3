#include "core/base/run_in_child.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "core/base/unique_fd.hpp"

namespace topolet {
namespace {

/// Memory that nobody touches costs nothing.
constexpr std::size_t kMaxTextBytes = 4 << 20;

enum class Said : unsigned char { kNothing, kResult, kException };

/// What the child tells, in memory that it shares: it may die at any moment and leave a descendant behind, and neither
/// must cost what it had said until then.
struct ChildReport {
  char current_step[512];
  Said said;
  std::size_t text_bytes;
  char text[kMaxTextBytes];
};

class SharedChildReport {
 public:
  SharedChildReport()
      : at_(::mmap(nullptr, sizeof(ChildReport), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {}
  ~SharedChildReport() {
    if (*this) ::munmap(at_, sizeof(ChildReport));
  }
  SharedChildReport(const SharedChildReport&) = delete;
  SharedChildReport& operator=(const SharedChildReport&) = delete;

  explicit operator bool() const { return at_ != MAP_FAILED; }
  ChildReport& operator*() const { return *static_cast<ChildReport*>(at_); }

 private:
  void* at_;
};

/// Signals to their defaults (a sanitizer would turn a crash into an exit) and let in, no core files, no word on
/// standard output.
void prepare_child() {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM}) std::signal(number, SIG_DFL);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
}

void say(ChildReport& report, Said what, const std::string& text) {
  if (text.size() > kMaxTextBytes) return say(report, Said::kException, "its result is too large");
  std::copy(text.begin(), text.end(), report.text);
  report.text_bytes = text.size();
  report.said = what;
}

[[noreturn]] void work_and_exit(ChildReport& report, const std::function<std::string(const Progress&)>& work) {
  prepare_child();
  const Progress progress = [&report](std::string_view current_step) {
    const std::size_t size = std::min(current_step.size(), sizeof(report.current_step) - 1);
    std::memcpy(report.current_step, current_step.data(), size);
    report.current_step[size] = '\0';
  };
  try {
    say(report, Said::kResult, work(progress));
  } catch (const std::exception& exception) {
    say(report, Said::kException, exception.what());
  }
  ::_exit(EXIT_SUCCESS);
}

/// True if it ended by itself.
bool wait_for_end(pid_t child, std::chrono::milliseconds time_limit) {
  const UniqueFd handle(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  const auto until = std::chrono::steady_clock::now() + time_limit;
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
    if (left <= 0) return false;
    pollfd waiting{handle.get(), POLLIN, 0};
    // Where the kernel has no such handle, it is asked often.
    const std::int64_t longest = handle ? 60'000 : 10;
    static_cast<void>(::poll(&waiting, 1, static_cast<int>(std::min<std::int64_t>(left, longest))));
    siginfo_t ended{};
    if (::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOHANG | WNOWAIT) != 0) return true;
    if (ended.si_pid == child) return true;
  }
}

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{}", name);
}

}  // namespace

ChildEnd run_in_child(std::chrono::milliseconds time_limit, const std::function<std::string(const Progress&)>& work) {
  const SharedChildReport shared;
  if (!shared) return {ChildEnd::Kind::kNotStarted, fmt::format("no memory to share: {}", std::strerror(errno)), {}};
  // What is still to be written must not be written twice.
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) return {ChildEnd::Kind::kNotStarted, std::strerror(errno), {}};
  if (child == 0) work_and_exit(*shared, work);
  ::setpgid(child, child);

  const bool ended = wait_for_end(child, time_limit);
  ::kill(-child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const ChildReport& report = *shared;
  const std::string step = report.current_step;
  const std::string text(report.text, report.text_bytes);
  if (ended && WIFSIGNALED(status)) return {ChildEnd::Kind::kCrashed, signal_name(WTERMSIG(status)), step};
  if (report.said == Said::kResult) return {ChildEnd::Kind::kReturned, text, step};
  if (report.said == Said::kException) return {ChildEnd::Kind::kThrew, text, step};
  if (!ended) return {ChildEnd::Kind::kTimedOut, {}, step};
  return {ChildEnd::Kind::kExited, std::to_string(WEXITSTATUS(status)), step};
}

}  // namespace topolet
