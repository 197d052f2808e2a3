// topoletd as a unit of the systemd that runs the machine of `tests/vm/run --systemd`.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <future>
#include <string>
#include <thread>

#include "core/base/index_set.hpp"

namespace topolet::integration {

/// A command's output, and its exit status.
struct CommandResult {
  int status = -1;
  std::string text;  ///< stdout and stderr, without the last new line
};
CommandResult run_command(const std::string& command);

/// What `systemctl show` says of topoletd.service; empty if it says nothing.
std::string property_of_service(const std::string& name);
/// Its main process; 0 if there is none.
pid_t service_pid();
/// Whether it says that it is ready.
bool service_is_up();
/// The lines of the journal for topoletd.service in this boot, those of systemd about it included.
std::string service_journal();

/// The thread of a process that has this name; 0 if none has.
pid_t thread_of(pid_t process, const std::string& name);

/// A thread that stands still, held by ptrace, while the others of its process go on.
class HeldThread {
 public:
  explicit HeldThread(pid_t thread);
  ~HeldThread();
  HeldThread(const HeldThread&) = delete;
  HeldThread& operator=(const HeldThread&) = delete;
  bool is_held() const { return held_; }

 private:
  void hold(std::promise<bool> held);

  const pid_t thread_;
  std::atomic<bool> released_ = false;
  bool held_ = false;
  std::thread tracer_;  ///< only the thread that holds may let go, and must wait for one that is killed
};

/// A file system that takes no write while this lives, and makes whoever writes wait.
class FrozenFileSystem {
 public:
  explicit FrozenFileSystem(const std::string& mount_point);
  ~FrozenFileSystem();
  FrozenFileSystem(const FrozenFileSystem&) = delete;
  FrozenFileSystem& operator=(const FrozenFileSystem&) = delete;
  bool is_frozen() const { return frozen_; }

 private:
  int directory_;
  bool frozen_ = false;
};

}  // namespace topolet::integration
