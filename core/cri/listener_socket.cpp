#include "core/cri/listener_socket.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace topolet {
namespace {

constexpr int kBacklog = 1024;

std::string reason() { return std::strerror(errno); }

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return Error{Code::kInvalidArgument, "'" + path + "' cannot be a socket's path: it needs 1 to " +
                                             std::to_string(sizeof(address.sun_path) - 1) + " characters"};
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

const sockaddr* generic(const sockaddr_un& address) { return reinterpret_cast<const sockaddr*>(&address); }

UniqueFd unix_socket() { return UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); }

Status set_access(const std::string& path, const SocketAccess& access) {
  if (::lchown(path.c_str(), access.owner, access.group) != 0 || ::chmod(path.c_str(), access.mode) != 0) {
    return Error{Code::kPermissionDenied, "cannot set owner and mode of " + path + ": " + reason() + "; run as root"};
  }
  return {};
}

}  // namespace

Result<UniqueFd> lock_socket(const std::string& path) {
  const std::string lock_path = path + ".lock";
  UniqueFd lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock) {
    return Error{Code::kFailedPrecondition,
                 "cannot open " + lock_path + ": " + reason() + "; create its directory, or choose another socket"};
  }
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
  return Error{Code::kFailedPrecondition,
               "another topoletd serves " + path + "; stop it first, or choose another socket"};
}

Status clear_socket_path(const std::string& path) {
  const auto address = address_of(path);
  if (!address.ok()) return address.error();
  struct stat file {};
  if (::lstat(path.c_str(), &file) != 0) {
    if (errno == ENOENT) return {};
    return Error{Code::kFailedPrecondition, "cannot look at " + path + ": " + reason()};
  }
  if (!S_ISSOCK(file.st_mode)) {
    return Error{Code::kFailedPrecondition, path + " exists and is no socket; remove it, or choose another path"};
  }
  const UniqueFd probe = unix_socket();
  if (::connect(probe.get(), generic(*address), sizeof(sockaddr_un)) == 0 || errno != ECONNREFUSED) {
    return Error{Code::kFailedPrecondition,
                 "a running process listens on " + path + "; stop it first, or choose another socket"};
  }
  if (::unlink(path.c_str()) != 0) {
    return Error{Code::kFailedPrecondition, "cannot remove the left-over socket " + path + ": " + reason()};
  }
  return {};
}

SocketAccess access_like(const std::string& path, const SocketAccess& otherwise) {
  struct stat file {};
  if (path.empty() || ::stat(path.c_str(), &file) != 0 || !S_ISSOCK(file.st_mode)) return otherwise;
  return {.mode = file.st_mode & 0777, .owner = file.st_uid, .group = file.st_gid};
}

Result<UniqueFd> listen_on(const std::string& path, const SocketAccess& access) {
  const auto address = address_of(path);
  if (!address.ok()) return address.error();
  UniqueFd socket = unix_socket();
  if (!socket || ::bind(socket.get(), generic(*address), sizeof(sockaddr_un)) != 0) {
    return Error{Code::kFailedPrecondition, "cannot bind " + path + ": " + reason()};
  }
  // Until listen() every connect is refused, so there is no moment in which the umask's mode counts.
  if (const Status status = set_access(path, access); !status.ok()) return status.error();
  if (::listen(socket.get(), kBacklog) != 0) {
    return Error{Code::kFailedPrecondition, "cannot listen on " + path + ": " + reason()};
  }
  return socket;
}

}  // namespace topolet
