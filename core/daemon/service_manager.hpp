// What systemd hands to the daemon that it starts, and wants to hear from it. Without systemd nothing happens.
#pragma once

#include <sys/types.h>

#include <string>

#include "core/base/result.hpp"

namespace topolet::daemon {

/// The descriptor of the socket unit that listens on `path`; −1 if no sockets were handed over. FAILED_PRECONDITION if
/// some were, but none that listens there. Once: the environment is cleared, so that no child takes the sockets for
/// its.
Result<int> take_inherited_socket(const std::string& path);

/// Another process of the same service is the one to watch from here on.
void notify_replaced_by(pid_t process);

/// The sockets are served.
void notify_ready();
void notify_stopping();

}  // namespace topolet::daemon
