#include "tests/support/process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <system_error>

namespace topolet::testing {
namespace {

int code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

}  // namespace

// posix_spawn and not fork: gRPC's threads want no part in this.
Process::Process(std::vector<std::string> command, const std::string& output) {
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  ::posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  const int error = ::posix_spawnp(&pid_, argv.front(), &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::system_error(error, std::generic_category(), command.front());
}

Process::~Process() {
  signal(SIGKILL);
  wait();
}

void Process::signal(int number) const {
  if (!ended_) ::kill(pid_, number);
}

bool Process::has_ended() {
  int status = 0;
  if (!ended_ && ::waitpid(pid_, &status, WNOHANG) == pid_) {
    ended_ = true;
    code_ = code_of(status);
  }
  return ended_;
}

int Process::wait() {
  int status = 0;
  while (!ended_ && ::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  if (!ended_) code_ = code_of(status);
  ended_ = true;
  return code_;
}

}  // namespace topolet::testing
