// Runs a piece of work in a process of its own, so that whatever becomes of it ends there.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace topolet {

/// Records what the work is about to do, so that a report of its end can name it. In the child only.
using Progress = std::function<void(std::string_view current_step)>;

/// How a child process ended.
struct ChildEnd {
  enum class Kind : std::uint8_t {
    kReturned,    ///< `text` is what the work returned
    kThrew,       ///< `text` is the exception's
    kCrashed,     ///< `text` is the signal: "SIGSEGV"
    kExited,      ///< the work ended the process; `text` is the exit status
    kTimedOut,    ///< it was killed
    kNotStarted,  ///< `text` says why there was no child
  };
  Kind kind = Kind::kNotStarted;
  std::string text;
  std::string current_step;  ///< the last one that was recorded; empty if there is none
};

/// Forks, runs `work` in the child and waits. A child that is not done in time is killed, with the processes it
/// started. The child says nothing on standard output, leaves no core file, and runs no exit handlers unless the work
/// calls exit() itself. The calling process should have no other threads: the child has none of them.
ChildEnd run_in_child(std::chrono::milliseconds time_limit, const std::function<std::string(const Progress&)>& work);

}  // namespace topolet
