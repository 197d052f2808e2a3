// A child process of a test.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/base/result.hpp"

namespace topolet::integration {

/// Runs until it ends by itself or is killed; the destructor kills it and waits.
class Child {
 public:
  /// Starts `command` (its first word is looked up in PATH) with stdout and stderr appended to `log`.
  static Result<Child> start(const std::vector<std::string>& command, const std::filesystem::path& log);

  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, 0)) {}
  Child& operator=(Child&& other) noexcept;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  pid_t pid() const { return pid_; }
  bool has_ended();
  /// Sends the signal and waits for the end; the exit code, or 128 + the signal that ended it.
  int end(int signal);

 private:
  explicit Child(pid_t pid) : pid_(pid) {}
  pid_t pid_ = 0;  ///< 0 once it was waited for
};

struct Finished {
  int exit_code = 0;
  std::string out;  ///< stdout; stderr is ours
};

/// Runs a command to its end.
Result<Finished> run_to_end(const std::vector<std::string>& command);

}  // namespace topolet::integration
