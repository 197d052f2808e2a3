// The sockets that systemd passes to the daemon, and the messages that it wants from it. Without systemd nothing
// happens.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>

#include "core/base/result.hpp"

namespace topolet::daemon {

/// The descriptor of the socket unit that listens on `path`; −1 if no sockets were handed over. FAILED_PRECONDITION if
/// some were, but none that listens there. Once: the environment is cleared, so that no child takes the sockets for
/// its.
Result<int> take_inherited_socket(const std::string& path);

/// Another process of the same service is the one to watch from here on.
void notify_replaced_by(pid_t process);

/// Returns true if a service manager receives the messages of the functions below.
bool is_notified();
/// Returns the time after which the service manager, without notify_alive(), considers topoletd hung; none if it does
/// not check.
std::optional<std::chrono::milliseconds> watchdog_period();

/// The sockets are served, and a reload, if one was told of, has ended.
void notify_ready();
/// The configuration is being read again. Ends with notify_ready().
void notify_reloading();
void notify_stopping();
void notify_alive();
/// Sets the text that `systemctl status` shows as Status. Escapes it.
void notify_status(const std::string& status);

}  // namespace topolet::daemon
