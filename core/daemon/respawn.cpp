#include "core/daemon/respawn.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/base/exit_status.hpp"
#include "core/base/log.hpp"

namespace topolet::daemon {
namespace {

constexpr const char* kSocketsVariable = "TOPOLET_SOCKETS";

/// As exec wants them.
std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// systemd would take the keep-alives of a process for which they are not meant.
std::vector<std::string> environment_of_successor() {
  std::vector<std::string> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!std::string_view(*variable).starts_with("WATCHDOG_PID=")) environment.emplace_back(*variable);
  }
  return environment;
}

int inherit(const UniqueFd& fd) {
  if (fd) ::fcntl(fd.get(), F_SETFD, 0);
  return fd.get();
}

/// The path by which this process was started, if it is one of its file: a symbolic link in it may lead to another
/// version by the time that it is used. Otherwise that of the file.
std::string path_of_program() {
  constexpr const char* kFile = "/proc/self/exe";
  std::error_code ignored;
  const std::string_view started_as = program_invocation_name;
  if (started_as.starts_with('/') && !started_as.starts_with("/proc/") && !started_as.starts_with("/dev/") &&
      std::filesystem::equivalent(started_as, kFile, ignored)) {
    return std::string(started_as);
  }
  return std::filesystem::read_symlink(kFile, ignored).string();
}

UniqueFd next_descriptor(std::istream& numbers) {
  int fd = -1;
  numbers >> fd;
  if (fd < 0 || ::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) return UniqueFd();
  return UniqueFd(fd);
}

}  // namespace

Respawn::Respawn(const std::vector<std::string>& arguments) : program_(path_of_program()) {
  std::copy_if(arguments.begin(), arguments.end(), std::back_inserter(arguments_),
               [](const std::string& argument) { return argument != "--take-over"; });
}

std::vector<std::string> Respawn::arguments_of_successor() const {
  std::vector<std::string> arguments = arguments_;
  arguments.insert(arguments.begin(), program_);
  arguments.emplace_back("--take-over");
  return arguments;
}

Result<pid_t> Respawn::start_successor() const {
  std::vector<std::string> arguments = arguments_of_successor();
  const std::vector<char*> argument_pointers = pointers_to(arguments);
  std::vector<std::string> environment = environment_of_successor();
  const std::vector<char*> environment_pointers = pointers_to(environment);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    return Error{Code::kUnavailable, fmt::format("cannot start {}: {}", program_, std::strerror(errno))};
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  struct Started {
    pid_t process;
    int error;
  };
  // Between fork and exec only what a signal handler may do: other threads may hold any lock. _Fork(), because the
  // handlers that topoletd has run after fork() close all descriptors.
  const pid_t between = ::_Fork();
  if (between == 0) {
    const pid_t process = ::_Fork();
    if (process != 0) {
      const Started started{process, process < 0 ? errno : 0};
      static_cast<void>(!::write(writing.get(), &started, sizeof(started)));
      ::_exit(0);
    }
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::execve(program_.c_str(), argument_pointers.data(), environment_pointers.data());
    const Started failed{-1, errno};
    static_cast<void>(!::write(writing.get(), &failed, sizeof(failed)));
    ::_exit(kExitFailure);
  }
  writing.reset();
  if (between < 0) return Error{Code::kUnavailable, fmt::format("cannot start {}: {}", program_, std::strerror(errno))};
  ::waitpid(between, nullptr, 0);
  // Ends with the exec, which closes the other end.
  pid_t process = -1;
  for (Started started{}; ::read(reading.get(), &started, sizeof(started)) == sizeof(started);) {
    if (started.error != 0)
      return Error{Code::kUnavailable, fmt::format("cannot start {}: {}", program_, std::strerror(started.error))};
    process = started.process;
  }
  return process;
}

int Respawn::run(const config::DaemonOptions& options, HandedOver sockets, Log& log) const {
  std::string numbers = fmt::format("{} {} {} {} {} {}", inherit(sockets.listen.socket), inherit(sockets.listen.lock),
                                    inherit(sockets.control.socket), inherit(sockets.control.lock),
                                    inherit(sockets.watch.socket), inherit(sockets.watch.lock));
  for (const UniqueFd& lock : sockets.runtime_locks) numbers += fmt::format(" {}", inherit(lock));
  log.info("starting {} again{}", program_, options.listen.empty() ? "" : " on unix://" + options.listen);
  log.flush();
  ::setenv(kSocketsVariable, numbers.c_str(), 1);
  std::vector<std::string> arguments = arguments_of_successor();
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execv(program_.c_str(), pointers_to(arguments).data());
  log.error("cannot start {}: {}", program_, std::strerror(errno));
  log.flush();
  ::_exit(kExitFailure);
}

std::optional<HandedOver> inherited_sockets() {
  const char* numbers = ::getenv(kSocketsVariable);
  if (numbers == nullptr) return std::nullopt;
  std::istringstream text(numbers);
  ::unsetenv(kSocketsVariable);
  HandedOver sockets;
  sockets.listen.socket = next_descriptor(text);
  sockets.listen.lock = next_descriptor(text);
  sockets.control.socket = next_descriptor(text);
  sockets.control.lock = next_descriptor(text);
  sockets.watch.socket = next_descriptor(text);
  sockets.watch.lock = next_descriptor(text);
  while (UniqueFd lock = next_descriptor(text)) sockets.runtime_locks.push_back(std::move(lock));
  if (!sockets.control.socket) return std::nullopt;
  return sockets;
}

}  // namespace topolet::daemon
