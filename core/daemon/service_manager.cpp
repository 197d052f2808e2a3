#include "core/daemon/service_manager.hpp"

#include <fmt/format.h>
#include <systemd/sd-daemon.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "core/base/escape.hpp"

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

bool is_notified() { return std::getenv("NOTIFY_SOCKET") != nullptr; }

std::optional<std::chrono::milliseconds> watchdog_period() {
  std::uint64_t period_us = 0;
  if (sd_watchdog_enabled(/*unset_environment=*/0, &period_us) <= 0) return std::nullopt;
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::microseconds(period_us));
}

void notify_ready() { sd_notify(0, "READY=1"); }

void notify_reloading() {
  // systemd from 253 on takes a READY=1 only if it is of a later time than this.
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const auto since_boot = std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
  sd_notify(0, fmt::format("RELOADING=1\nMONOTONIC_USEC={}",
                           std::chrono::duration_cast<std::chrono::microseconds>(since_boot).count())
                   .c_str());
}

void notify_stopping() { sd_notify(0, "STOPPING=1"); }

void notify_alive() { sd_notify(0, "WATCHDOG=1"); }

void notify_status(const std::string& status) { sd_notify(0, ("STATUS=" + escaped(status)).c_str()); }

}  // namespace topolet::daemon
