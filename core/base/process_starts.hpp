// Has a process ask before it starts another process or a thread, and all its descendants too.
//
// The kernel's way (seccomp's user notifications, Linux 5.5) needs no privileges, counts what fork, vfork, clone and
// posix_spawn start alike, and cannot be left by a descendant. RLIMIT_NPROC counts all processes of the user, and root
// is exempt from it.
#pragma once

#include <cstdint>
#include <optional>

#include "core/base/unique_fd.hpp"

namespace topolet {

/// Makes this process ask before it starts another one, from now on and for ever: the reader of the descriptor answers.
/// Sets no_new_privs. Returns no descriptor, and changes nothing, if the kernel has no such thing, or a container
/// runtime uses it already.
UniqueFd ask_before_starts();

struct StartRequest {
  std::uint64_t id = 0;
  bool is_thread = false;  ///< of the process that asks; otherwise a process
};

/// None if nobody asks any more. Waits where nobody does: poll the descriptor first.
std::optional<StartRequest> next_start_request(const UniqueFd& requests);

/// The one that asks goes on. A request that is not answered waits until its process is killed.
void allow_start(const UniqueFd& requests, const StartRequest& request);

}  // namespace topolet
