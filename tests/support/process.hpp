// A child process of a test, with what it says.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace topolet::testing {

/// Started by the constructor, killed by the destructor. `output`: a file that stdout and stderr are appended to.
class Process {
 public:
  Process(std::vector<std::string> command, const std::string& output);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  bool has_ended();
  /// Waits for the end: the exit code, or 128 + the signal that ended it.
  int wait();

 private:
  pid_t pid_ = 0;
  bool ended_ = false;
  int code_ = 0;
};

}  // namespace topolet::testing
