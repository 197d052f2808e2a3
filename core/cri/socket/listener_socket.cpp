#include "core/cri/socket/listener_socket.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/unix_address.hpp"

namespace topolet::cri {
namespace {

constexpr int kBacklog = 1024;

std::string errno_text() { return std::strerror(errno); }

UniqueFd unix_socket() { return UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); }

Status set_access(const std::string& path, const SocketAccess& access) {
  if (::lchown(path.c_str(), access.owner, access.group) != 0 || ::chmod(path.c_str(), access.mode) != 0) {
    return Error{Code::kPermissionDenied,
                 "cannot set owner and mode of " + path + ": " + errno_text() + "; run as root"};
  }
  return {};
}

}  // namespace

Result<UniqueFd> lock_socket(const std::string& path) {
  const std::string lock_path = path + ".lock";
  UniqueFd lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock) {
    return Error{Code::kFailedPrecondition,
                 "cannot open " + lock_path + ": " + errno_text() + "; create its directory, or choose another socket"};
  }
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
  return Error{Code::kFailedPrecondition,
               "another topoletd serves " + path + "; stop it first, or choose another socket"};
}

Status clear_socket_path(const std::string& path) {
  const auto address = unix_address(path);
  if (!address) return address.error();
  struct stat file {};
  if (::lstat(path.c_str(), &file) != 0) {
    if (errno == ENOENT) return {};
    return Error{Code::kFailedPrecondition, "cannot inspect " + path + ": " + errno_text()};
  }
  if (!S_ISSOCK(file.st_mode)) {
    return Error{Code::kFailedPrecondition, path + " exists and is not a socket; remove it, or choose another path"};
  }
  const UniqueFd probe = unix_socket();
  if (::connect(probe.get(), as_sockaddr(*address), sizeof(sockaddr_un)) == 0 || errno != ECONNREFUSED) {
    return Error{Code::kFailedPrecondition,
                 "a running process listens on " + path + "; stop it first, or choose another socket"};
  }
  if (::unlink(path.c_str()) != 0) {
    return Error{Code::kFailedPrecondition, "cannot remove the left-over socket " + path + ": " + errno_text()};
  }
  return {};
}

SocketAccess access_like(const std::string& path, const SocketAccess& fallback) {
  struct stat file {};
  if (path.empty() || ::stat(path.c_str(), &file) != 0 || !S_ISSOCK(file.st_mode)) return fallback;
  return {.mode = file.st_mode & 0777, .owner = file.st_uid, .group = file.st_gid};
}

Result<UniqueFd> listen_on(const std::string& path, const SocketAccess& access) {
  const auto address = unix_address(path);
  if (!address) return address.error();
  UniqueFd socket = unix_socket();
  if (!socket || ::bind(socket.get(), as_sockaddr(*address), sizeof(sockaddr_un)) != 0) {
    return Error{Code::kFailedPrecondition, "cannot bind " + path + ": " + errno_text()};
  }
  // Until listen() every connect is refused, so there is no moment in which the umask's mode counts.
  if (const Status status = set_access(path, access); !status.has_value()) return status.error();
  if (::listen(socket.get(), kBacklog) != 0) {
    return Error{Code::kFailedPrecondition, "cannot listen on " + path + ": " + errno_text()};
  }
  return socket;
}

}  // namespace topolet::cri
