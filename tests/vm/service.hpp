// topoletd as a unit of the systemd that runs the machine of `tests/vm/run --systemd`.
#pragma once

#include <sys/types.h>

#include <string>

#include "core/base/index_set.hpp"

namespace topolet::integration {

/// A command's output, and its exit status.
struct CommandResult {
  int status = -1;
  std::string text;  ///< stdout and stderr, without the last new line
};
CommandResult run_command(const std::string& command);

/// Returns a property of topoletd.service, as `systemctl show` prints it; empty if it prints nothing.
std::string property_of_service(const std::string& name);
/// Its main process; 0 if there is none.
pid_t service_pid();
/// Returns true if the service says that it is ready.
bool service_is_up();
/// The lines of the journal for topoletd.service in this boot, those of systemd about it included.
std::string service_journal();

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
