#include "core/cri/socket/listener_socket.hpp"

#include <fcntl.h>
#include <grp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/file_access.hpp"
#include "core/base/file_lock.hpp"
#include "core/base/unix_address.hpp"

namespace topolet::cri {
namespace {

constexpr int kBacklog = 1024;

std::string errno_text() { return std::strerror(errno); }

std::string lock_of(const std::string& path) { return path + ".lock"; }

/// Returns what to do if a file could not be used; `error` is the errno.
const char* way_out(int error) {
  switch (error) {
    case ENOENT:
      return "create its directory, or choose another socket";
    case EACCES:
    case EPERM:
      return "run as root, or choose another socket";
    case EISDIR:
    case ELOOP:
      return "remove it, or choose another socket";
    default:
      return "choose another socket";
  }
}

/// `what`: "cannot open FILE". The error is errno.
Error failed(const std::string& what) {
  const int error = errno;
  return {Code::kFailedPrecondition, what + ": " + std::strerror(error) + "; " + way_out(error)};
}

UniqueFd unix_socket() { return UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); }

Result<UniqueFd> open_lock(const std::string& path, int flags) {
  const std::string lock_path = lock_of(path);
  UniqueFd lock(::open(lock_path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags, 0600));
  if (lock) return lock;
  return failed("cannot open " + lock_path);
}

/// True if there is a socket file at `path`, which may be a left-over one.
Result<bool> is_socket_there(const std::string& path) {
  struct stat file {};
  if (::lstat(path.c_str(), &file) != 0) {
    if (errno == ENOENT) return false;
    return failed("cannot inspect " + path);
  }
  if (S_ISSOCK(file.st_mode)) return true;
  return Error{Code::kFailedPrecondition, path + " exists and is not a socket; remove it, or choose another path"};
}

Error somebody_listens(const std::string& path) {
  return {Code::kFailedPrecondition,
          "a running process listens on " + path + "; stop it first, or choose another socket"};
}

bool may_set_owner(const SocketAccess& access) {
  if (::geteuid() == 0) return true;
  const bool owner = access.owner == static_cast<uid_t>(-1) || access.owner == ::geteuid();
  return owner && (access.group == static_cast<gid_t>(-1) || ::group_member(access.group) != 0);
}

/// The inode of the socket that listens on the file, as /proc/net/unix has it. To connect in order to find out would
/// make systemd start the service of a socket unit.
std::optional<std::string> listening_inode(const std::string& path) {
  std::ifstream sockets("/proc/net/unix");
  std::string line;
  std::getline(sockets, line);  // the headings
  while (std::getline(sockets, line)) {
    std::istringstream words(line);
    std::string number, references, protocol, type, state, inode, bound;
    std::uint64_t flags = 0;
    words >> number >> references >> protocol >> std::hex >> flags >> type >> state >> inode >> std::ws;
    std::getline(words, bound);
    constexpr std::uint64_t kListens = 0x10000;
    if ((flags & kListens) == 0 || bound.empty() || bound.front() != '/') continue;
    if (bound == path || is_same_file(bound, path)) return inode;
  }
  return std::nullopt;
}

bool systemd_has_socket(const std::string& inode) {
  std::error_code error;
  const std::string wanted = "socket:[" + inode + "]";
  for (std::filesystem::directory_iterator at("/proc/1/fd", error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (std::filesystem::read_symlink(at->path(), ignored) == wanted) return true;
  }
  return false;
}

/// False if somebody listens, or cannot be asked.
bool is_dead(const sockaddr_un& address) {
  const UniqueFd probe = unix_socket();
  return ::connect(probe.get(), as_sockaddr(address), sizeof(sockaddr_un)) != 0 && errno == ECONNREFUSED;
}

Result<SocketUse> inspect_socket_file(const std::string& path) {
  const auto address = unix_address(path);
  if (!address) return address.error();
  const auto there = is_socket_there(path);
  if (!there) return there.error();
  if (!*there) return SocketUse::kFree;
  if (const auto inode = listening_inode(path); inode && systemd_has_socket(*inode)) return SocketUse::kSystemds;
  if (is_dead(*address)) return SocketUse::kFree;
  return somebody_listens(path);
}

Status set_access(const std::string& path, const SocketAccess& access) {
  if (::lchown(path.c_str(), access.owner, access.group) != 0 || ::chmod(path.c_str(), access.mode) != 0) {
    return Error{Code::kPermissionDenied,
                 "cannot set owner and mode of " + path + ": " + errno_text() + "; run as root"};
  }
  return {};
}

}  // namespace

Result<UniqueFd> lock_socket(const std::string& path) {
  auto lock = open_lock(path, O_CREAT);
  if (!lock || lock_file(lock->get()) == 0) return lock;
  return Error{Code::kFailedPrecondition,
               "another topoletd serves " + path + "; stop it first, or choose another socket"};
}

Status clear_socket_path(const std::string& path) {
  const auto address = unix_address(path);
  if (!address) return address.error();
  const auto there = is_socket_there(path);
  if (!there) return there.error();
  if (!*there) return {};
  if (!is_dead(*address)) return somebody_listens(path);
  if (::unlink(path.c_str()) != 0) return failed("cannot remove the left-over socket " + path);
  return {};
}

Result<SocketUse> inspect_socket(const std::string& path, const SocketAccess& access) {
  struct stat lock_file_status {};
  if (::lstat(lock_of(path).c_str(), &lock_file_status) == 0) {
    const auto lock = open_lock(path, 0);
    if (!lock) return lock.error();
    if (is_locked(lock->get())) return SocketUse::kTopoletds;
  }
  const auto use = inspect_socket_file(path);
  if (!use || *use == SocketUse::kSystemds) return use;
  std::filesystem::path at;
  if (const int error = cannot_create_in(std::filesystem::path(path).parent_path(), at); error != 0) {
    return Error{Code::kFailedPrecondition, "cannot create " + path + ": " + at.string() + ": " + std::strerror(error) +
                                                "; " + (error == EACCES ? way_out(error) : "choose another socket")};
  }
  if (!may_set_owner(access)) {
    return Error{Code::kPermissionDenied,
                 "cannot give " + path + " the owner and group of the runtime's socket; run as root"};
  }
  return use;
}

SocketAccess access_like(const std::string& path, const SocketAccess& fallback) {
  struct stat file {};
  if (path.empty() || ::stat(path.c_str(), &file) != 0 || !S_ISSOCK(file.st_mode)) return fallback;
  return {.mode = file.st_mode & 0777, .owner = file.st_uid, .group = file.st_gid};
}

Result<gid_t> find_group(const std::string& name_or_number) {
  gid_t number = 0;
  const char* const end = name_or_number.data() + name_or_number.size();
  const auto [rest, error] = std::from_chars(name_or_number.data(), end, number);
  if (error == std::errc() && rest == end) return number;
  std::vector<char> buffer(std::size_t{1} << 16);
  group found{};
  group* result = nullptr;
  if (::getgrnam_r(name_or_number.c_str(), &found, buffer.data(), buffer.size(), &result) == 0 && result != nullptr)
    return found.gr_gid;
  return Error{Code::kInvalidArgument, "there is no group '" + name_or_number +
                                           "' on this machine; create it (groupadd --system " + name_or_number +
                                           "), or write another group's name or number"};
}

Result<UniqueFd> listen_on(const std::string& path, const SocketAccess& access) {
  const auto address = unix_address(path);
  if (!address) return address.error();
  UniqueFd socket = unix_socket();
  if (!socket || ::bind(socket.get(), as_sockaddr(*address), sizeof(sockaddr_un)) != 0) {
    return failed("cannot bind " + path);
  }
  // Until listen() every connect is refused, so the mode that the umask gave never counts.
  if (const Status status = set_access(path, access); !status.has_value()) return status.error();
  if (::listen(socket.get(), kBacklog) != 0) {
    return Error{Code::kFailedPrecondition, "cannot listen on " + path + ": " + errno_text()};
  }
  return socket;
}

}  // namespace topolet::cri
