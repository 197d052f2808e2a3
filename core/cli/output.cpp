#include "core/cli/output.hpp"

#include <fmt/format.h>
#include <stdio_ext.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "core/base/escape.hpp"
#include "core/base/standard_streams.hpp"

namespace topolet::cli {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{64} << 10;

}  // namespace

/// Without words where the reader has read enough, such as head.
Error output_error(int error_number) {
  return {Code::kUnavailable, error_number == EPIPE ? std::string() : output_failure(error_number)};
}

void print_line(std::string_view text) { fmt::print("{}\n", escaped(text)); }

Status write_at_once(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) != EOF && std::fflush(stdout) == 0) return {};
  const Error why = output_error(errno);
  // It is told once.
  ::__fpurge(stdout);
  std::clearerr(stdout);
  return why;
}

Status Output::write(std::string_view text) {
  buffer_ += text;
  return buffer_.size() < kBufferBytes ? Status() : flush();
}

Status Output::flush() {
  std::string_view rest = buffer_;
  while (!rest.empty()) {
    if (deadline_.passed()) return deadline_.error();
    const ssize_t written = ::write(fd_, rest.data(), rest.size());
    if (written >= 0) {
      rest.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {  // which is how the deadline ends a write that waits
      return output_error(errno);
    }
  }
  buffer_.clear();
  return {};
}

}  // namespace topolet::cli
