// Other processes of the same program: whoever is measured runs on its own, so that its CPU time and memory are its
// own.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace topolet::bench {

/// Resident memory of a process.
struct Resident {
  std::size_t now_kib = 0;
  std::size_t peak_kib = 0;  ///< since the start or the last forget_peak()
};

/// Killed and waited for when it goes. Not for use by several threads.
class Child {
 public:
  /// Runs this program again with `arguments`; returns once `socket` takes connections. Throws if that never happens.
  Child(std::vector<std::string> arguments, const std::string& socket);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Of all its threads, in the kernel and outside.
  std::chrono::nanoseconds cpu_time() const;
  Resident resident() const;
  void forget_peak() const;

 private:
  void wait_for(const std::string& socket) const;

  pid_t pid_ = -1;
};

}  // namespace topolet::bench
