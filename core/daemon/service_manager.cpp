#include "core/daemon/service_manager.hpp"

#include <fmt/format.h>
#include <systemd/sd-daemon.h>

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

void notify_ready() { sd_notify(0, "READY=1"); }

void notify_stopping() { sd_notify(0, "STOPPING=1"); }

}  // namespace topolet::daemon
