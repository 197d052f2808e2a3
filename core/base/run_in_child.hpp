// Runs a piece of work in a process of its own, so that whatever becomes of it ends there.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace topolet {

/// Records what the work is about to do, so that a report of its end can name it. In the child only.
using Progress = std::function<void(std::string_view current_step)>;

/// So many a child and its descendants may be together at a time.
inline constexpr std::size_t kMostProcesses = 64;
inline constexpr std::size_t kMostThreads = 1500;

/// The processes that the work started.
struct StartedProcesses {
  std::size_t count = 0;           ///< where the kernel cannot have it asked (process_starts.hpp), those that were seen
  std::vector<std::string> steps;  ///< in which it started the first ones, each once
  std::string came_back_in;        ///< the step in which one of them came back from foreign code; empty: none did
  std::vector<std::string> left;   ///< what they were that were there at the end: "sleep"
};

/// The end of a child process.
struct ChildEnd {
  enum class Kind : std::uint8_t {
    kReturned,    ///< `text` is what the work returned
    kThrew,       ///< `text` is the exception's
    kCrashed,     ///< `text` is the signal: "SIGSEGV"
    kExited,      ///< the work ended the process; `text` is the exit status
    kTimedOut,    ///< it was killed
    kTooMany,     ///< it was killed, as there were more processes or threads than allowed; `text` says of which
    kNotStarted,  ///< `text` is the reason why there was no child
  };
  Kind kind = Kind::kNotStarted;
  std::string text;
  std::string current_step;  ///< the last one that was recorded; empty if there is none
  StartedProcesses started = {};
};

/// Forks, runs `work` in the child and waits. The child and whatever it started, sessions of their own included, are
/// killed when it has ended, when its time is up, when it has more than kMostProcesses or kMostThreads, or when the
/// calling process ends. A process that is forked in foreign code and returns from there is ended by
/// end_if_forked_child(). If the kernel cannot report each new process, they are counted every now and then.
///
/// The child says nothing on standard output, leaves no core file, gains no privileges by an exec, and runs no exit
/// handlers unless the work calls exit() itself. The calling process should have no other threads: the child has none
/// of them.
ChildEnd run_in_child(std::chrono::milliseconds time_limit, const std::function<std::string(const Progress&)>& work);

}  // namespace topolet
