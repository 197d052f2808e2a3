#include "core/daemon/service_manager.hpp"

#include <fmt/format.h>
#include <systemd/sd-daemon.h>

#include <cstdint>
#include <cstring>

namespace topolet::daemon {

Result<int> take_inherited_socket(const std::string& path) {
  const int count = sd_listen_fds(/*unset_environment=*/1);
  if (count < 0) {
    return Error{Code::kFailedPrecondition,
                 fmt::format("cannot take over the sockets of the service manager: {}", std::strerror(-count))};
  }
  for (int fd = SD_LISTEN_FDS_START; fd < SD_LISTEN_FDS_START + count; ++fd) {
    if (sd_is_socket_unix(fd, SOCK_STREAM, /*listening=*/1, path.c_str(), 0) > 0) return fd;
  }
  if (count == 0) return -1;
  return Error{Code::kFailedPrecondition,
               fmt::format("the service manager handed over {} socket{}, but none that listens on {}; let "
                           "ListenStream= of the socket unit and daemon.listen name the same path",
                           count, count == 1 ? "" : "s", path)};
}

void notify_replaced_by(pid_t process) {
  if (sd_notifyf(0, "MAINPID=%d", static_cast<int>(process)) <= 0) return;
  // The other one's messages count only once systemd has read this.
  constexpr std::uint64_t kMicroseconds = 2'000'000;
  sd_notify_barrier(0, kMicroseconds);
}

void notify_ready() { sd_notify(0, "READY=1"); }

void notify_stopping() { sd_notify(0, "STOPPING=1"); }

}  // namespace topolet::daemon
