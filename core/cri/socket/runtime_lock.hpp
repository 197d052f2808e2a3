// One topoletd a runtime: two would take each other's CPU sets for those of a foreign hand, and undo them.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"

namespace topolet::cri {

/// The process that uses a runtime, as far as the lock tells: one that has just taken it over may not be named yet.
struct RuntimeUser {
  pid_t process = 0;
  std::string control;  ///< the path of its control socket
  std::string config;   ///< that of its configuration file
};

/// Locks on files that are named after the runtime's socket: after its path once all links are resolved, and after its
/// directory, which may be mounted in several places. They end with the process, however it ends, and a file that is
/// left locks nobody out.
class RuntimeLock {
 public:
  /// /run/topolet. It is nothing to configure, as two configurations might differ in it; for tests there is
  /// TOPOLET_RUN_DIR.
  static std::filesystem::path directory();

  /// `handed_over`: the locks of the process whose place this one takes. Those that this runtime does not need are let
  /// go. FAILED_PRECONDITION if another process has the runtime, with a sentence that names it; UNAVAILABLE if there
  /// can be no lock.
  static Result<RuntimeLock> acquire(const std::filesystem::path& directory, const std::string& runtime,
                                     const RuntimeUser& user, std::vector<UniqueFd> handed_over = {});
  /// Lets go of it, and removes the files.
  ~RuntimeLock();
  RuntimeLock(RuntimeLock&& other) noexcept = default;
  RuntimeLock& operator=(RuntimeLock&&) = delete;
  RuntimeLock(const RuntimeLock&) = delete;
  RuntimeLock& operator=(const RuntimeLock&) = delete;

  /// For another process, which has the locks from then on.
  std::vector<UniqueFd> duplicate() const;
  /// The files stay.
  void disown() { files_.clear(); }

 private:
  RuntimeLock() = default;

  std::vector<std::filesystem::path> files_;
  std::vector<UniqueFd> locks_;
};

/// Returns the process that has locked it; none if no process has, or it cannot be seen.
std::optional<RuntimeUser> find_runtime_user(const std::filesystem::path& directory, const std::string& runtime);

/// " (process 7, configuration /etc/topolet/topolet.conf)", as far as it is known.
std::string describe(const RuntimeUser& user);

}  // namespace topolet::cri
