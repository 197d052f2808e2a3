#include "core/plugin_checker/run_in_child.hpp"

#include <fcntl.h>
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
#include <cstring>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/unique_fd.hpp"

namespace topolet::plugin_checker {
namespace {

constexpr std::size_t kOutcomeBytes = 256 << 10;

/// What the child tells, in memory that it shares: it may die at any moment and leave a descendant behind, and neither
/// must cost what it had said until then.
struct ChildReport {
  char current_step[512];
  std::size_t outcome_bytes;
  char outcome[kOutcomeBytes];
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
  ChildReport* operator->() const { return static_cast<ChildReport*>(at_); }

 private:
  void* at_;
};

void write_outcome(ChildReport& report, const Outcome& outcome) {
  const nlohmann::json json = {{"kind", static_cast<int>(outcome.kind)},
                               {"note", outcome.note},
                               {"expected", outcome.expected},
                               {"actual", outcome.actual},
                               {"arguments", outcome.arguments}};
  const std::string text = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (text.size() > kOutcomeBytes) return;
  std::copy(text.begin(), text.end(), report.outcome);
  report.outcome_bytes = text.size();
}

Outcome read_outcome(const ChildReport& report) {
  const nlohmann::json json = nlohmann::json::parse(report.outcome, report.outcome + report.outcome_bytes);
  return {static_cast<Outcome::Kind>(json["kind"].get<int>()), json["note"], json["expected"], json["actual"],
          json["arguments"]};
}

/// Signals to their defaults (a sanitizer would turn a crash into an exit), no core files, no word on standard output.
void prepare_child() {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM}) std::signal(number, SIG_DFL);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
}

[[noreturn]] void run_case_and_exit(ChildReport& report, const std::function<Outcome(const Progress&)>& body) {
  prepare_child();
  const Progress progress = [&report](std::string_view current_step) {
    const std::size_t size = std::min(current_step.size(), sizeof(report.current_step) - 1);
    std::memcpy(report.current_step, current_step.data(), size);
    report.current_step[size] = '\0';
  };
  try {
    write_outcome(report, body(progress));
  } catch (const std::exception& exception) {
    write_outcome(report, Outcome::failed({"the case to run to its end", std::string("threw: ") + exception.what()}));
  }
  ::_exit(0);
}

std::string with_current_step(std::string what, const ChildReport& report) {
  return report.current_step[0] == '\0' ? what : fmt::format("{}, in {}", what, report.current_step);
}

Outcome judge(const ChildReport& report, int status) {
  if (WIFSIGNALED(status)) {
    const char* name = ::sigabbrev_np(WTERMSIG(status));
    const std::string signal = name == nullptr ? std::to_string(WTERMSIG(status)) : std::string("SIG") + name;
    return Outcome::failed({"no crash", with_current_step("crashed with " + signal, report)});
  }
  if (report.outcome_bytes == 0) {
    const std::string what = fmt::format("it ended the process with exit status {}", WEXITSTATUS(status));
    return Outcome::failed({"every call to return", with_current_step(what, report)});
  }
  return read_outcome(report);
}

/// True if it ended by itself.
bool wait_for_end(pid_t child, std::chrono::seconds time_limit) {
  const UniqueFd handle(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  const auto until = std::chrono::steady_clock::now() + time_limit;
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
    if (left <= 0) return false;
    pollfd waiting{handle.get(), POLLIN, 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(std::min<std::int64_t>(left, 60'000)));
    if (ready > 0) return true;
  }
}

}  // namespace

Outcome run_in_child(std::chrono::seconds time_limit, const std::function<Outcome(const Progress&)>& body) {
  const SharedChildReport report;
  if (!report) return Outcome::failed({"memory to share with a child", std::strerror(errno)});
  const pid_t child = ::fork();
  if (child < 0) return Outcome::failed({"a child process", std::strerror(errno)});
  if (child == 0) run_case_and_exit(*report.operator->(), body);
  ::setpgid(child, child);

  const bool ended = wait_for_end(child, time_limit);
  ::kill(-child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const ChildReport& written = *report.operator->();
  if (!ended && written.outcome_bytes == 0) {
    const std::string what = fmt::format("no answer within {} s", time_limit.count());
    return Outcome::failed({"every call to return", with_current_step(what, written)});
  }
  return judge(written, ended ? status : 0);
}

}  // namespace topolet::plugin_checker
