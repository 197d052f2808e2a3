// The time limit of a command's reads of the database.
#pragma once

#include <chrono>
#include <csignal>
#include <optional>

#include "core/base/result.hpp"

namespace topolet::cli {

/// A limit to reading: as long as a statement is being read, whether SQLite works or a pipe is full, the log of the
/// database only grows. Uses the process's one timer and SIGALRM, so that only one may exist at a time.
class Deadline {
 public:
  /// Begins with its construction. Zero: there is no limit.
  explicit Deadline(std::chrono::seconds allowed);
  ~Deadline();
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  /// Once it has, system calls that wait are interrupted again and again (EINTR).
  bool passed() const { return at_ && std::chrono::steady_clock::now() >= *at_; }
  /// DEADLINE_EXCEEDED with how to change the limit.
  Error error() const;

 private:
  std::chrono::seconds allowed_;
  std::optional<std::chrono::steady_clock::time_point> at_;
  struct sigaction before_ {};
};

}  // namespace topolet::cli
