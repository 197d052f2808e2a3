#include "core/cri/wire/peer_names.hpp"

#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>

namespace topolet::cri {
namespace {

constexpr std::string_view kPrefix = "topolet-client-";
/// gRPC's prefix of a name that is not a path.
constexpr std::string_view kScheme = "unix-abstract:";

int plain_getpeername(int fd, sockaddr* address, socklen_t* size) {
  using Function = int (*)(int, sockaddr*, socklen_t*);
  static const auto kNext = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "getpeername"));
  // A program that is linked statically has no other.
  return kNext != nullptr ? kNext(fd, address, size) : static_cast<int>(::syscall(SYS_getpeername, fd, address, size));
}

/// Writes the address of a peer with the name, cut off where there is no room, as the kernel does it.
void write_name(ino_t inode, sockaddr* address, socklen_t room, socklen_t* size) {
  sockaddr_un named{};
  named.sun_family = AF_UNIX;
  char* const begin = named.sun_path + 1;
  char* end = std::copy(kPrefix.begin(), kPrefix.end(), begin);
  end = std::to_chars(end, named.sun_path + sizeof(named.sun_path), inode).ptr;
  *size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + static_cast<std::size_t>(end - named.sun_path));
  const auto* bytes = reinterpret_cast<const char*>(&named);
  std::copy(bytes, bytes + std::min(room, *size), reinterpret_cast<char*>(address));
}

bool is_named(int fd) {
  sockaddr_un address{};
  socklen_t size = sizeof(address);
  return ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0 && size > sizeof(sa_family_t);
}

}  // namespace

ino_t inode_of(int fd) {
  struct stat file {};
  return ::fstat(fd, &file) == 0 ? file.st_ino : 0;
}

ino_t connection_of(std::string_view peer) {
  if (!peer.starts_with(kScheme)) return 0;
  peer.remove_prefix(kScheme.size());
  if (!peer.starts_with(kPrefix)) return 0;
  peer.remove_prefix(kPrefix.size());
  ino_t inode = 0;
  const char* const end = peer.data() + peer.size();
  const auto [rest, error] = std::from_chars(peer.data(), end, inode);
  return error == std::errc() && rest == end ? inode : 0;
}

namespace peer_names {

int get(int fd, sockaddr* address, socklen_t* size) {
  const socklen_t room = *size;
  const int result = plain_getpeername(fd, address, size);
  if (result != 0 || room < sizeof(sa_family_t) || address->sa_family != AF_UNIX) return result;
  // A connection that was accepted has the listening socket's name. Its client may have taken one, too, even another
  // client's.
  const bool is_unnamed = *size == sizeof(sa_family_t);
  if (!is_unnamed && !is_named(fd)) return result;
  if (const ino_t inode = inode_of(fd); inode != 0) write_name(inode, address, room, size);
  return result;
}

}  // namespace peer_names
}  // namespace topolet::cri

/// Takes precedence over the C library's in the whole process.
extern "C" __attribute__((visibility("default"))) int getpeername(int fd, sockaddr* address, socklen_t* size) noexcept {
  return topolet::cri::peer_names::get(fd, address, size);
}
