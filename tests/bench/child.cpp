#include "tests/bench/child.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <ctime>
#include <fstream>
#include <stdexcept>
#include <thread>
#include <utility>

#include "core/base/unique_fd.hpp"

namespace topolet::bench {
namespace {

constexpr std::chrono::seconds kStartWithin(20);
constexpr std::chrono::milliseconds kLookEvery(1);

bool takes_connections(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

/// "VmRSS:      1234 kB" of /proc/PID/status, or "syscw: 1234" of /proc/PID/io.
std::uint64_t read_number(pid_t pid, const std::string& file, const std::string& key) {
  std::ifstream status(fmt::format("/proc/{}/{}", pid, file));
  for (std::string word; status >> word;) {
    if (word != key) continue;
    std::uint64_t number = 0;
    status >> number;
    return number;
  }
  throw std::runtime_error(fmt::format("process {} has no {} in /proc any more; did it crash?", pid, key));
}

}  // namespace

Child::Child(std::vector<std::string> arguments, const std::string& socket) {
  arguments.insert(arguments.begin(), program_invocation_short_name);
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  const int error = ::posix_spawn(&pid_, "/proc/self/exe", nullptr, nullptr, pointers.data(), environ);
  if (error != 0) throw std::runtime_error(fmt::format("cannot start a process: {}", std::strerror(error)));
  wait_for(socket);
}

Child::~Child() { end(SIGKILL); }

void Child::stop() { end(SIGTERM); }

void Child::end(int signal) {
  if (pid_ <= 0) return;
  ::kill(pid_, signal);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

bool Child::has_ended() {
  if (::waitpid(pid_, nullptr, WNOHANG) == 0) return false;
  pid_ = -1;
  return true;
}

void Child::wait_for(const std::string& socket) {
  const auto deadline = std::chrono::steady_clock::now() + kStartWithin;
  while (!takes_connections(socket)) {
    if (::waitpid(pid_, nullptr, WNOHANG) != 0)
      throw std::runtime_error("the process for " + socket + " ended at once");
    if (std::chrono::steady_clock::now() > deadline) {
      throw std::runtime_error("nobody takes connections on " + socket);
    }
    std::this_thread::sleep_for(kLookEvery);
  }
}

std::chrono::nanoseconds Process::cpu_time() const {
  clockid_t clock{};
  timespec time{};
  if (::clock_getcpuclockid(pid_, &clock) != 0 || ::clock_gettime(clock, &time) != 0) {
    throw std::runtime_error(fmt::format("process {} has no CPU clock any more; did it crash?", pid_));
  }
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

Resident Process::resident() const {
  return {.now_kib = read_number(pid_, "status", "VmRSS:"), .peak_kib = read_number(pid_, "status", "VmHWM:")};
}

void Process::forget_peak() const { std::ofstream(fmt::format("/proc/{}/clear_refs", pid_)) << '5'; }

Written Process::written() const {
  return {.calls = read_number(pid_, "io", "syscw:"), .bytes = read_number(pid_, "io", "wchar:")};
}

}  // namespace topolet::bench
