#include "core/base/child_keeper.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/base/descendants.hpp"
#include "core/base/forked_child.hpp"
#include "core/base/process_starts.hpp"
#include "core/base/unique_fd.hpp"

namespace topolet {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// The time between two counts of the processes, where the kernel does not report each new one.
constexpr milliseconds kCountEvery{10};
/// The time that processes left by the child have to end by themselves.
constexpr std::chrono::seconds kComingBack{2};
/// A killed process may be in a call of the kernel that takes its time.
constexpr std::chrono::seconds kDying{10};

void send_descriptor(int connection, int fd) {
  char byte = 0;
  iovec bytes{&byte, 1};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  if (fd >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), &fd, sizeof(int));
  }
  static_cast<void>(::sendmsg(connection, &message, MSG_NOSIGNAL));
}

/// Waits. None where none was sent.
UniqueFd receive_descriptor(int connection) {
  char byte = 0;
  iovec bytes{&byte, 1};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  if (::recvmsg(connection, &message, MSG_CMSG_CLOEXEC) <= 0) return UniqueFd();
  const cmsghdr* rights = CMSG_FIRSTHDR(&message);
  if (rights == nullptr || rights->cmsg_type != SCM_RIGHTS || rights->cmsg_len != CMSG_LEN(sizeof(int)))
    return UniqueFd();
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(rights), sizeof(int));
  return UniqueFd(fd);
}

// ---- The child ------------------------------------------------------------------------------------------------------

ChildReport* g_report = nullptr;
/// Not shared: a forked child keeps the step in which it was forked, when its parent has gone on.
char g_current_step[sizeof(ChildReport::current_step)];

void note_that_one_came_back() {
  if (g_report->came_back) return;
  std::memcpy(g_report->came_back_step, g_current_step, sizeof(g_current_step));
  g_report->came_back = true;
}

/// Signals to their defaults (a sanitizer would turn a crash into an exit) and let in, no core files, no word on
/// standard output.
void prepare_child() {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM}) std::signal(number, SIG_DFL);
  sigset_t no_signals;
  ::sigemptyset(&no_signals);
  ::sigprocmask(SIG_SETMASK, &no_signals, nullptr);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
}

void say(ChildReport& report, Said what, const std::string& text) {
  if (text.size() > kMaxReportTextBytes) return say(report, Said::kException, "its result is too large");
  std::copy(text.begin(), text.end(), report.text);
  report.text_bytes = text.size();
  report.said = what;
}

[[noreturn]] void work_and_exit(const KeptChild& kept, UniqueFd keeper) {
  prepare_child();
  send_descriptor(keeper.get(), ask_before_starts().get());
  keeper.reset();
  ChildReport& report = kept.report;
  g_report = &report;
  note_this_process(&note_that_one_came_back);
  const Progress progress = [&report](std::string_view current_step) {
    write_text(g_current_step, current_step);
    write_text(report.current_step, current_step);
  };
  try {
    say(report, Said::kResult, kept.work(progress));
  } catch (const std::exception& exception) {
    say(report, Said::kException, exception.what());
  }
  end_if_forked_child();
  ::_exit(EXIT_SUCCESS);
}

// ---- The keeper -----------------------------------------------------------------------------------------------------

/// Counts what the child starts, and lets it start no more than is allowed. A count takes a look at every process of
/// the machine, so it is made anew only when as many were started since the last one as were missing to the limit.
class StartCounter {
 public:
  explicit StartCounter(ChildReport& report) : report_(report) {}

  /// False if it would be too many.
  bool may_start(const StartRequest& request) {
    std::size_t& count = request.is_thread ? threads_ : processes_;
    if (count >= (request.is_thread ? kMostThreads : kMostProcesses) && !count_again()) return false;
    ++count;
    if (!request.is_thread) note_start();
    return true;
  }

  /// False if there are too many.
  bool count_again() {
    processes_ = threads_ = 0;
    for (const Descendant& descendant : descendants_of(::getpid())) {
      ++processes_;
      threads_ += descendant.threads;
    }
    if (processes_ >= kMostProcesses) return exceeded(fmt::format("{} processes", kMostProcesses));
    if (threads_ >= kMostThreads) return exceeded(fmt::format("{} threads", kMostThreads));
    return true;
  }

 private:
  bool exceeded(const std::string& limit) {
    write_text(report_.too_many, limit);
    return false;
  }

  void note_start() {
    ++report_.processes_started;
    const std::string step = text_in(report_.current_step);
    if (steps_.insert(step.substr(0, step.find(" ("))).second) append_line(report_.start_steps, step);
  }

  ChildReport& report_;
  std::size_t processes_ = 0;
  std::size_t threads_ = 0;
  std::set<std::string> steps_;  ///< without what tells the calls of one function apart
};

class Keeper {
 public:
  Keeper(const KeptChild& kept, pid_t child, UniqueFd requests)
      : kept_(kept), child_(child), requests_(std::move(requests)), counter_(kept.report) {
    sigset_t terminated;
    ::sigemptyset(&terminated);
    ::sigaddset(&terminated, SIGTERM);
    parent_gone_.reset(::signalfd(-1, &terminated, SFD_CLOEXEC | SFD_NONBLOCK));
    child_handle_.reset(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  }

  void keep() {
    kept_.report.has_ended = watch();
    if (kept_.report.has_ended) let_come_back();
    note_left();
    kept_.report.status = end_all();
    kept_.report.is_complete = true;
  }

 private:
  /// Until the child has ended by itself (then true), or must not go on.
  bool watch() {
    const auto until = Clock::now() + kept_.time_limit;
    while (true) {
      siginfo_t ended{};
      if (::waitid(P_PID, static_cast<id_t>(child_), &ended, WEXITED | WNOHANG | WNOWAIT) != 0) return true;
      if (ended.si_pid == child_) return true;
      const auto left = std::chrono::ceil<milliseconds>(until - Clock::now());
      if (left.count() <= 0 || ::getppid() != kept_.parent) return false;
      if (!wait_and_count(left)) return false;
    }
  }

  /// False if there are too many.
  bool wait_and_count(milliseconds left) {
    std::array<pollfd, 3> waiting = {{{child_handle_.get(), POLLIN, 0},  //
                                      {parent_gone_.get(), POLLIN, 0},
                                      {requests_.get(), POLLIN, 0}}};
    // Without such handles in the kernel, everything is checked often.
    const milliseconds longest = child_handle_ && requests_ ? std::chrono::minutes(1) : kCountEvery;
    static_cast<void>(::poll(waiting.data(), waiting.size(), static_cast<int>(std::min(left, longest).count())));
    if (waiting[1].revents != 0) return false;
    if (!requests_) return counter_.count_again();
    if ((waiting[2].revents & POLLIN) == 0) {
      if (waiting[2].revents != 0) requests_.reset();  // nobody is left who could ask
      return true;
    }
    const auto request = next_start_request(requests_);
    if (!request) return true;
    if (!counter_.may_start(*request)) return false;
    allow_start(requests_, *request);
    return true;
  }

  /// One that was forked in the last call of all may be on its way.
  void let_come_back() const {
    const auto until = Clock::now() + kComingBack;
    while (!kept_.report.came_back && Clock::now() < until) {
      const std::vector<Descendant> all = descendants_of(::getpid());
      if (std::all_of(all.begin(), all.end(), [](const Descendant& one) { return one.has_ended; })) return;
      static_cast<void>(::poll(nullptr, 0, 1));
    }
  }

  void note_left() {
    std::size_t left = 0;
    for (const Descendant& descendant : descendants_of(::getpid())) {
      if (descendant.process == child_) continue;
      ++left;
      append_line(kept_.report.left, descendant.program + (descendant.has_ended ? " (ended, not waited for)" : ""));
    }
    kept_.report.processes_started = std::max(kept_.report.processes_started, left);
  }

  /// Returns the child's status. A process whose parent has gone becomes this process's child, also in a session of its
  /// own; a process that is about to start another waits for an answer, and does not get one. Only children are killed:
  /// the number of another process may be somebody else's by now.
  int end_all() {
    ::kill(-child_, SIGKILL);
    int status_of_child = 0;
    const auto until = Clock::now() + kDying;
    while (Clock::now() < until) {
      for (const Descendant& descendant : descendants_of(::getpid())) {
        if (descendant.parent == ::getpid()) ::kill(descendant.process, SIGKILL);
      }
      int status = 0;
      pid_t ended = 0;
      while ((ended = ::waitpid(-1, &status, WNOHANG)) > 0) {
        if (ended == child_) status_of_child = status;
      }
      if (ended < 0) break;
      static_cast<void>(::poll(nullptr, 0, 1));
    }
    return status_of_child;
  }

  const KeptChild& kept_;
  const pid_t child_;
  UniqueFd requests_;
  UniqueFd parent_gone_;  ///< or somebody wants this process to end
  UniqueFd child_handle_;
  StartCounter counter_;
};

}  // namespace

void keep_child(const KeptChild& kept) {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  std::array<int, 2> ends{-1, -1};
  static_cast<void>(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()));
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    work_and_exit(kept, UniqueFd(ends[1]));
  }
  if (child < 0) {
    write_text(kept.report.not_started, std::strerror(errno));
    ::_exit(EXIT_FAILURE);
  }
  ::setpgid(child, child);
  ::close(ends[1]);
  Keeper(kept, child, receive_descriptor(ends[0])).keep();
  ::_exit(EXIT_SUCCESS);
}

}  // namespace topolet
