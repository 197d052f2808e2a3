// Marks the plugin that a thread is inside of, for the moment it crashes there.
#pragma once

#include <array>
#include <csignal>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace topolet::plugin {

/// While it lives, this thread is in a call into `plugin`. Both texts must outlive it. May be nested.
class CrashMark {
 public:
  CrashMark(const char* plugin, const char* call);
  ~CrashMark();
  CrashMark(const CrashMark&) = delete;
  CrashMark& operator=(const CrashMark&) = delete;

 private:
  const char* outer_plugin_;
  const char* outer_call_;
};

/// A stack of its own for this thread's crash handler, so that a plugin that overflows the thread's is named too.
/// Threads that have one are the host's: their marks alone say whether they are in a plugin.
class CrashStack {
 public:
  CrashStack();
  ~CrashStack();
  CrashStack(const CrashStack&) = delete;
  CrashStack& operator=(const CrashStack&) = delete;

 private:
  static constexpr std::size_t kBytes = 64 << 10;
  std::unique_ptr<std::array<char, kBytes>> bytes_;
  stack_t before_{};
  bool host_before_;
};

/// Tells where the code of a loaded plugin lies, so that a thread which the plugin started itself can be told by the
/// functions it is in. `handle` is dlopen's. Beyond the first 64 pieces of code, nothing is noted. A child that the
/// plugin forks when this process has begun to exit, in a destructor or an exit handler, ends at once.
void register_code_of(const std::string& plugin, void* handle);

/// The `call` of a crash on a thread that the plugin started.
inline constexpr const char* kOwnThread = "own-thread";

/// The name of a crash by a write to pages which is_read_only_lent() knows; other crashes go by their signal.
inline constexpr const char* kLentMemoryCrash = "SIGSEGV-in-lent-memory";

/// Such a word, or the name of a signal, for people.
const char* describe_crash(const char* how);

/// "score()" or "a thread of its own", for people.
std::string describe_call(const std::string& call);

/// From now on SIGSEGV, SIGBUS, SIGILL, SIGFPE and SIGABRT of a thread that is in a plugin append one line to
/// `crash_fd`, as CrashLog reads it (−1: nowhere any more), and say so on standard error in the name of `program`,
/// which must outlive the process. The process then ends as it would have. Signals that another process sent, and
/// threads that are in no plugin, leave no line. A plugin that calls exit() is treated in the same way; the process
/// then ends at once and as failed. A child that a plugin forks ends when it comes back from the call, however it was
/// made; one made by fork() keeps no descriptor but the standard ones. Process-wide.
void record_crashes_to(int crash_fd, const char* program = "topoletd");

/// Restores the handling of these signals and of SIGPIPE that a plugin changed since record_crashes_to(), and names
/// them.
std::vector<std::string> restore_signal_handlers();

}  // namespace topolet::plugin
