// Other processes: whoever is measured runs on its own, so that its CPU time and memory are its own.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace topolet::bench {

/// Resident memory of a process.
struct Resident {
  std::size_t now_kib = 0;
  std::size_t peak_kib = 0;  ///< since the start or the last forget_peak()
};

/// The amounts that a process has passed to write() and its relatives: files, logs and wake-ups, but not sockets.
struct Written {
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;
};

/// A running process, as the kernel describes it. The functions throw once it has ended.
class Process {
 public:
  explicit Process(pid_t pid) : pid_(pid) {}

  pid_t pid() const { return pid_; }
  /// Returns the CPU time of all its threads, in the kernel and outside.
  std::chrono::nanoseconds cpu_time() const;
  Resident resident() const;
  void forget_peak() const;
  Written written() const;

 private:
  pid_t pid_;
};

/// Killed and waited for when it goes. Not for use by several threads.
class Child {
 public:
  /// Runs this program again with `arguments`; returns once `socket` takes connections. Throws if that never happens.
  Child(std::vector<std::string> arguments, const std::string& socket);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  Process process() const { return Process(pid_); }
  /// Sends SIGTERM and waits for the end.
  void stop();

 private:
  void wait_for(const std::string& socket);
  bool has_ended();
  void end(int signal);

  pid_t pid_ = -1;
};

}  // namespace topolet::bench
