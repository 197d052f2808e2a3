// Locks on files that say that a process is at work.
#pragma once

#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <thread>

namespace topolet {

/// Locks the open file for this process until it is closed. 0, or the errno: EWOULDBLOCK if another process has it. One
/// that only looks, with is_locked(), is waited for.
inline int lock_file(int fd) {
  for (int attempts_left = 5; ::flock(fd, LOCK_EX | LOCK_NB) != 0; --attempts_left) {
    if (errno != EWOULDBLOCK || attempts_left == 0) return errno;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return 0;
}

/// Returns true if another process has locked the open file. Locks it for a moment to find out.
inline bool is_locked(int fd) {
  if (::flock(fd, LOCK_SH | LOCK_NB) != 0) return errno == EWOULDBLOCK;
  ::flock(fd, LOCK_UN);
  return false;
}

}  // namespace topolet
