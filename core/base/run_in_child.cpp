#include "core/base/run_in_child.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <utility>

#include "core/base/child_keeper.hpp"
#include "core/base/child_report.hpp"

namespace topolet {
namespace {

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

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{}", name);
}

std::vector<std::string> lines_of(const char* text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(std::move(line));
  return lines;
}

/// Reads the report with care: foreign code may have overwritten the child's own part.
ChildEnd end_in(const ChildReport& report) {
  ChildEnd end;
  end.current_step = text_in(report.current_step);
  end.started.count = report.processes_started;
  end.started.steps = lines_of(report.start_steps);
  end.started.left = lines_of(report.left);
  if (report.came_back) end.started.came_back_in = text_in(report.came_back_step);
  const std::string text(report.text, std::min(report.text_bytes, kMaxReportTextBytes));
  const auto ended_with = [&end](ChildEnd::Kind kind, std::string words) {
    end.kind = kind;
    end.text = std::move(words);
    return std::move(end);
  };
  if (report.too_many[0] != '\0') return ended_with(ChildEnd::Kind::kTooMany, text_in(report.too_many));
  if (report.has_ended && WIFSIGNALED(report.status))
    return ended_with(ChildEnd::Kind::kCrashed, signal_name(WTERMSIG(report.status)));
  if (report.said == Said::kResult) return ended_with(ChildEnd::Kind::kReturned, text);
  if (report.said == Said::kException) return ended_with(ChildEnd::Kind::kThrew, text);
  if (!report.has_ended) return ended_with(ChildEnd::Kind::kTimedOut, {});
  return ended_with(ChildEnd::Kind::kExited, std::to_string(WEXITSTATUS(report.status)));
}

}  // namespace

ChildEnd run_in_child(std::chrono::milliseconds time_limit, const std::function<std::string(const Progress&)>& work) {
  const SharedChildReport shared;
  if (!shared) return {ChildEnd::Kind::kNotStarted, fmt::format("no memory to share: {}", std::strerror(errno)), {}};
  // Unwritten output would otherwise be written by the child as well.
  std::fflush(nullptr);
  const pid_t parent = ::getpid();
  const pid_t keeper = ::fork();
  if (keeper < 0) return {ChildEnd::Kind::kNotStarted, std::strerror(errno), {}};
  if (keeper == 0) keep_child({*shared, parent, time_limit, work});
  int status = 0;
  while (::waitpid(keeper, &status, 0) < 0 && errno == EINTR) {
  }
  const ChildReport& report = *shared;
  if (!report.is_complete) {
    const std::string why = report.not_started[0] != '\0' ? text_in(report.not_started)
                            : WIFSIGNALED(status)
                                ? "the process that watches it was ended with " + signal_name(WTERMSIG(status))
                                : "the process that watches it has ended";
    return {ChildEnd::Kind::kNotStarted, why, {}};
  }
  return end_in(report);
}

}  // namespace topolet
