#include "core/base/standard_streams.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio_ext.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "core/base/escape.hpp"
#include "core/base/exit_status.hpp"

namespace topolet {

void fill_closed_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    // The lowest number that is free, which is this one.
    static_cast<void>(::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY));
  }
}

namespace {

/// Null as long as the output is not kept apart.
std::FILE* g_output_apart = nullptr;

}  // namespace

std::FILE* own_output() { return g_output_apart != nullptr ? g_output_apart : stdout; }

bool keep_output_apart() {
  if (g_output_apart != nullptr) return true;
  std::fflush(stdout);
  const int apart = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (apart < 0) return false;
  std::FILE* const output = ::fdopen(apart, "w");
  if (output == nullptr || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
    output != nullptr ? static_cast<void>(std::fclose(output)) : static_cast<void>(::close(apart));
    return false;
  }
  g_output_apart = output;
  return true;
}

std::string output_failure(int error_number) {
  return fmt::format("cannot write the output: {}", std::strerror(error_number));
}

namespace {

/// A reader that has read enough, such as head, is not a failure to report.
void print_failure(std::string_view program, int error_number) {
  if (error_number != EPIPE) print_error_line(fmt::format("{}: {}", program, output_failure(error_number)));
}

}  // namespace

std::optional<int> report_lost_output(std::string_view program, const std::exception& thrown) {
  const auto* error = dynamic_cast<const std::system_error*>(&thrown);
  if (error == nullptr || std::ferror(own_output()) == 0) return std::nullopt;
  print_failure(program, error->code().value());
  // It is told once.
  ::__fpurge(own_output());
  std::clearerr(own_output());
  return kExitFailure;
}

int finish_output(std::string_view program, int exit_status) {
  errno = 0;
  if (std::fflush(own_output()) == 0 && std::ferror(own_output()) == 0) return exit_status;
  // An earlier failure has left no more than the mark that there was one.
  print_failure(program, errno != 0 ? errno : EIO);
  return kExitFailure;
}

}  // namespace topolet
