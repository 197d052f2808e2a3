#include "tests/integration/child.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "core/base/unique_fd.hpp"

namespace topolet::integration {
namespace {

int exit_code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

int wait_for(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return exit_code_of(status);
}

// posix_spawn and not fork: gRPC's fork handlers want no part in this.
Result<pid_t> spawn(const std::vector<std::string>& command, int out, int err) {
  std::vector<std::string> words = command;
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  pid_t pid = 0;
  const int code = posix_spawnp(&pid, argv.front(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (code != 0) return Error{Code::kInternal, fmt::format("{}: {}", command.front(), std::strerror(code))};
  return pid;
}

}  // namespace

Result<Child> Child::start(const std::vector<std::string>& command, const std::filesystem::path& log) {
  const UniqueFd file(open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!file) return Error{Code::kInternal, fmt::format("{}: {}", log.string(), std::strerror(errno))};
  auto pid = spawn(command, file.get(), file.get());
  if (!pid) return pid.error();
  return Child(*pid);
}

Child& Child::operator=(Child&& other) noexcept {
  if (this != &other) {
    end(SIGKILL);
    pid_ = std::exchange(other.pid_, 0);
  }
  return *this;
}

Child::~Child() { end(SIGKILL); }

bool Child::has_ended() {
  if (pid_ != 0 && waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = 0;
  return pid_ == 0;
}

int Child::end(int signal) {
  if (has_ended()) return 0;
  kill(pid_, signal);
  return wait_for(std::exchange(pid_, 0));
}

Result<Finished> run_to_end(const std::vector<std::string>& command) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Error{Code::kInternal, std::strerror(errno)};
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  auto pid = spawn(command, writer.get(), STDERR_FILENO);
  if (!pid) return pid.error();
  writer.reset();
  Finished finished;
  char buffer[4096];
  ssize_t count = 0;
  while ((count = read(reader.get(), buffer, sizeof buffer)) > 0) {
    finished.out.append(buffer, static_cast<std::size_t>(count));
  }
  finished.exit_code = wait_for(*pid);
  return finished;
}

}  // namespace topolet::integration
