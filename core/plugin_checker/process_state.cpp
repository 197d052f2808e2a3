#include "core/plugin_checker/process_state.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cfenv>
#include <clocale>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <locale>
#include <new>
#include <sstream>
#include <string_view>
#include <utility>

#include "core/base/text.hpp"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace topolet::plugin_checker {
namespace {

constexpr std::size_t kShownValueBytes = 120;

std::string link_at(const std::string& path) {
  std::array<char, 4096> target{};
  const ssize_t size = ::readlink(path.c_str(), target.data(), target.size());
  return size < 0 ? "unreadable" : std::string(target.data(), static_cast<std::size_t>(size));
}

std::string content_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  std::string content = text.str();
  if (!content.empty() && content.back() == '\n') content.pop_back();
  return content;
}

/// The entries whose names are numbers. The descriptor that reads them is not among them.
std::vector<int> numbers_in(const char* directory) {
  std::vector<int> numbers;
  DIR* const stream = ::opendir(directory);
  if (stream == nullptr) return numbers;
  while (const dirent* entry = ::readdir(stream)) {
    const std::string_view name = entry->d_name;
    if (name.find_first_not_of("0123456789") != std::string_view::npos) continue;
    numbers.push_back(std::atoi(entry->d_name));
  }
  std::erase(numbers, ::dirfd(stream));
  ::closedir(stream);
  return numbers;
}

std::vector<int> open_descriptors() { return numbers_in("/proc/self/fd"); }

Readings read_descriptors() {
  Readings found;
  for (const int fd : open_descriptors()) {
    struct stat status {};
    if (::fstat(fd, &status) != 0) continue;
    const int flags = ::fcntl(fd, F_GETFL);
    found[fmt::format("descriptor {}", fd)] =
        fmt::format("{} (inode {}{}{}{})", link_at(fmt::format("/proc/self/fd/{}", fd)), status.st_ino,
                    (::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0 ? ", closed by exec" : "",
                    (flags & O_NONBLOCK) != 0 ? ", non-blocking" : "", (flags & O_ASYNC) != 0 ? ", with signals" : "");
  }
  return found;
}

Readings read_listening_sockets() {
  Readings found;
  for (const int fd : open_descriptors()) {
    int listens = 0;
    socklen_t size = sizeof(listens);
    if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0) continue;
    found[fmt::format("descriptor {}", fd)] = "a socket that listens";
  }
  return found;
}

Readings read_directories() {
  Readings found = {{"the working directory", link_at("/proc/thread-self/cwd")},
                    {"the root directory", link_at("/proc/thread-self/root")}};
  struct stat root {};
  if (::stat("/", &root) == 0) found["the root directory"] += fmt::format(" (inode {})", root.st_ino);
  return found;
}

/// Values may be secrets of whoever runs the check, so that they are told apart, but not shown.
Readings read_environment() {
  Readings found;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const std::size_t equals = std::min(text.find('='), text.size());
    found["the variable " + std::string(text.substr(0, equals))] =
        fmt::format("a value with the hash {:x}", std::hash<std::string_view>()(text.substr(equals)));
  }
  return found;
}

Readings read_locale() {
  const char* const all = std::setlocale(LC_ALL, nullptr);
  return {{"setlocale(LC_ALL)", all == nullptr ? "" : all},
          {"the decimal point", std::localeconv()->decimal_point},
          {"the thread's locale", ::uselocale(nullptr) == LC_GLOBAL_LOCALE ? "the global one" : "one of its own"},
          {"std::locale()", std::locale().name()}};
}

Readings read_floating_point() {
  Readings found = {{"fegetround()", std::to_string(std::fegetround())},
                    {"fegetexcept()", std::to_string(::fegetexcept())}};
#if defined(__x86_64__)
  // Without the flags of what has happened.
  found["the control word MXCSR"] = fmt::format("{:#x}", _mm_getcsr() & 0xffc0U);
#endif
  return found;
}

std::string name_of_signal(int number) {
  const char* const name = ::sigabbrev_np(number);
  return name == nullptr ? fmt::format("signal {}", number) : fmt::format("SIG{}", name);
}

std::string describe_handler(const struct sigaction& action) {
  if (action.sa_handler == SIG_DFL) return "default";                                           // NOLINT
  if (action.sa_handler == SIG_IGN) return "ignored";                                           // NOLINT
  return fmt::format("handled at {:#x}", reinterpret_cast<std::uintptr_t>(action.sa_handler));  // NOLINT
}

/// The signals for which topoletd's main thread waits; each thread has them blocked, or it would get them instead.
constexpr std::array<int, 3> kMainThreadSignals = {SIGTERM, SIGINT, SIGHUP};

/// Whether a thread lets in what the calling thread has blocked.
void read_other_masks(const sigset_t& own, Readings& found) {
  for (const int thread : numbers_in("/proc/self/task")) {
    if (thread == ::gettid()) continue;
    const std::string status = content_of(fmt::format("/proc/self/task/{}/status", thread));
    const std::size_t at = status.find("SigBlk:");
    if (at == std::string::npos) continue;
    const std::uint64_t blocked = std::strtoull(status.c_str() + at + 7, nullptr, 16);
    for (const int number : kMainThreadSignals) {
      if (::sigismember(&own, number) != 1 || (blocked >> (number - 1) & 1) != 0) continue;
      found[fmt::format("{} on a thread of its own", name_of_signal(number))] =
          "let in, where the thread that made it had it blocked";
    }
  }
}

Readings read_signals() {
  Readings found;
  sigset_t blocked;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action {};
    if (::sigaction(number, nullptr, &action) != 0) continue;
    found["the handling of " + name_of_signal(number)] = describe_handler(action);
    found[name_of_signal(number)] = ::sigismember(&blocked, number) == 1 ? "blocked" : "let in";
  }
  stack_t stack{};
  if (::sigaltstack(nullptr, &stack) == 0) {
    found["the stack for signals"] = (stack.ss_flags & SS_DISABLE) != 0 ? "none" : fmt::format("{}", stack.ss_sp);
  }
  read_other_masks(blocked, found);
  return found;
}

Readings read_limits() {
  static constexpr std::array<std::pair<const char*, __rlimit_resource>, 16> kLimits = {
      {{"AS", RLIMIT_AS},
       {"CORE", RLIMIT_CORE},
       {"CPU", RLIMIT_CPU},
       {"DATA", RLIMIT_DATA},
       {"FSIZE", RLIMIT_FSIZE},
       {"LOCKS", RLIMIT_LOCKS},
       {"MEMLOCK", RLIMIT_MEMLOCK},
       {"MSGQUEUE", RLIMIT_MSGQUEUE},
       {"NICE", RLIMIT_NICE},
       {"NOFILE", RLIMIT_NOFILE},
       {"NPROC", RLIMIT_NPROC},
       {"RSS", RLIMIT_RSS},
       {"RTPRIO", RLIMIT_RTPRIO},
       {"RTTIME", RLIMIT_RTTIME},
       {"SIGPENDING", RLIMIT_SIGPENDING},
       {"STACK", RLIMIT_STACK}}};
  Readings found;
  for (const auto& [name, resource] : kLimits) {
    rlimit limit{};
    if (::getrlimit(resource, &limit) != 0) continue;
    found[fmt::format("the limit RLIMIT_{}", name)] = fmt::format("{}, at most {}", limit.rlim_cur, limit.rlim_max);
  }
  return found;
}

/// Lines of /proc/thread-self/status with one of these names.
void add_status(std::initializer_list<std::string_view> names, Readings& found) {
  std::istringstream status(content_of("/proc/thread-self/status"));
  for (std::string line; std::getline(status, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string name = line.substr(0, colon);
    if (std::find(names.begin(), names.end(), name) == names.end()) continue;
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    found[name + " of /proc/self/status"] = begin == std::string::npos ? "" : line.substr(begin);
  }
}

Readings read_identity() {
  Readings found;
  add_status({"Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp",
              "Seccomp_filters", "TracerPid"},
             found);
  utsname names{};
  if (::uname(&names) == 0) found["the name of the host"] = names.nodename;
  found["the mounts"] =
      fmt::format("those with the hash {:x}", std::hash<std::string>()(content_of("/proc/self/mountinfo")));
  found["the command line"] = content_of("/proc/self/cmdline");
  found["the name of the process"] = content_of("/proc/self/comm");
  found["the name of the thread"] = content_of("/proc/thread-self/comm");
  found["the personality"] = fmt::format("{:#x}", ::personality(0xffffffffUL));
  found["the session"] = std::to_string(::getsid(0));
  found["the process group"] = std::to_string(::getpgrp());
  found["the control group"] = content_of("/proc/thread-self/cgroup");
  for (const auto& [name, option] : {std::pair<const char*, int>{"PR_GET_DUMPABLE", PR_GET_DUMPABLE},
                                     {"PR_GET_KEEPCAPS", PR_GET_KEEPCAPS},
                                     {"PR_GET_SECUREBITS", PR_GET_SECUREBITS}}) {
    found[fmt::format("prctl({})", name)] = std::to_string(::prctl(option, 0, 0, 0, 0));
  }
  for (const auto& [name, option] : {std::pair<const char*, int>{"PR_GET_PDEATHSIG", PR_GET_PDEATHSIG},
                                     {"PR_GET_CHILD_SUBREAPER", PR_GET_CHILD_SUBREAPER}}) {
    int value = 0;
    static_cast<void>(::prctl(option, &value, 0, 0, 0));
    found[fmt::format("prctl({})", name)] = std::to_string(value);
  }
  for (const char* name : {"cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"}) {
    found[fmt::format("the namespace {}", name)] = link_at(fmt::format("/proc/thread-self/ns/{}", name));
  }
  return found;
}

Readings read_threads() {
  Readings found;
  for (const int thread : numbers_in("/proc/self/task")) {
    if (thread == ::getpid() || thread == ::gettid()) continue;
    found[fmt::format("a thread '{}'", content_of(fmt::format("/proc/self/task/{}/comm", thread)))] = "running";
  }
  return found;
}

Readings read_timers() {
  Readings found;
  for (const auto& [name, timer] : {std::pair<const char*, __itimer_which>{"ITIMER_REAL (alarm)", ITIMER_REAL},
                                    {"ITIMER_VIRTUAL", ITIMER_VIRTUAL},
                                    {"ITIMER_PROF", ITIMER_PROF}}) {
    itimerval value{};
    static_cast<void>(::getitimer(timer, &value));
    const bool is_set = value.it_value.tv_sec != 0 || value.it_value.tv_usec != 0;
    found[fmt::format("the timer {}", name)] = is_set ? "set" : "not set";
  }
  std::istringstream timers(content_of("/proc/self/timers"));
  for (std::string line; std::getline(timers, line);) {
    if (line.rfind("ID:", 0) == 0) found["a POSIX timer, " + line] = "made";
  }
  return found;
}

Readings read_scheduling() {
  Readings found;
  add_status({"Cpus_allowed_list", "Mems_allowed_list", "VmLck", "THP_enabled"}, found);
  found["nice"] = std::to_string(::getpriority(PRIO_PROCESS, 0));
  sched_param parameters{};
  ::sched_getparam(0, &parameters);
  found["the scheduling policy"] = fmt::format("{}, priority {}", ::sched_getscheduler(0), parameters.sched_priority);
  found["the I/O priority"] = std::to_string(::syscall(SYS_ioprio_get, 1, 0));
  int policy = MPOL_DEFAULT;
  if (::syscall(SYS_get_mempolicy, &policy, nullptr, 0, nullptr, 0) == 0)
    found["the memory policy"] = std::to_string(policy);
  found["the timer slack"] = std::to_string(::prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0));
  found["oom_score_adj"] = content_of("/proc/self/oom_score_adj");
  found["coredump_filter"] = content_of("/proc/self/coredump_filter");
  return found;
}

Readings read_umask() {
  Readings found;
  add_status({"Umask"}, found);
  return found;
}

template <class Handler>
std::string where(Handler* handler) {
  return handler == nullptr ? "none" : fmt::format("{:#x}", reinterpret_cast<std::uintptr_t>(handler));  // NOLINT
}

Readings read_runtime_handlers() {
  return {{"std::get_terminate()", where(std::get_terminate())},
          {"std::get_new_handler()", where(std::get_new_handler())}};
}

std::string shown_value(const std::string& value) { return '\'' + printable(value, kShownValueBytes) + '\''; }

}  // namespace

const std::vector<StatePart>& state_parts() {
  static const std::vector<StatePart> kParts = {
      {"keeps-descriptors", "no descriptor of others is closed or replaced, and its own are closed after destroy",
       read_descriptors, true},
      {"keeps-sockets", "it does not listen on a socket", read_listening_sockets},
      {"keeps-threads", "its own threads have ended when destroy has returned", read_threads, true},
      {"keeps-directory", "the working directory stays", read_directories},
      {"keeps-umask", "the umask stays", read_umask},
      {"keeps-environment", "the environment stays", read_environment},
      {"keeps-locale", "the locale stays", read_locale},
      {"keeps-floating-point", "rounding, traps and denormals of floating point stay", read_floating_point},
      {"keeps-signals", "handlers, mask and stack of signals stay", read_signals},
      {"keeps-timers", "it sets no timer of the process", read_timers},
      {"keeps-limits", "the resource limits stay", read_limits},
      {"keeps-identity", "users, privileges, name, session and namespaces stay", read_identity},
      {"keeps-scheduling", "CPUs, priority and memory policy stay", read_scheduling},
      {"keeps-handlers", "std::set_terminate and std::set_new_handler are not used", read_runtime_handlers},
  };
  return kParts;
}

std::optional<std::string> find_change(const Readings& before, const Readings& after, bool may_grow) {
  for (const auto& [name, value] : before) {
    const auto now = after.find(name);
    if (now == after.end()) return fmt::format("{} is gone, which was {}", name, shown_value(value));
    if (now->second != value)
      return fmt::format("{} was {} and is {}", name, shown_value(value), shown_value(now->second));
  }
  if (may_grow) return std::nullopt;
  for (const auto& [name, value] : after) {
    if (before.count(name) == 0) return fmt::format("{} is new: {}", name, shown_value(value));
  }
  return std::nullopt;
}

}  // namespace topolet::plugin_checker
