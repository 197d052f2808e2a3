// stdout, whose errors end a command.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/base/result.hpp"
#include "core/cli/deadline.hpp"

namespace topolet::cli {

/// Returns the error of a failed write to stdout, from errno.
Error output_error(int error_number);

/// Writes one line to stdout, escaped.
void print_line(std::string_view text);

/// Writes to stdout at once, for a command that goes on for as long as it likes.
Status write_at_once(const std::string& text);

/// Gathers the output and passes it on in large pieces. Not to be mixed with stdio before flush(). Output that was not
/// flushed when it is destroyed is lost.
class Output {
 public:
  /// A write that waits for its reader when `deadline` passes is an error. The deadline must outlive this.
  Output(int fd, const Deadline& deadline) : fd_(fd), deadline_(deadline) {}

  Status write(std::string_view text);
  Status flush();

 private:
  int fd_;
  const Deadline& deadline_;
  std::string buffer_;
};

}  // namespace topolet::cli
