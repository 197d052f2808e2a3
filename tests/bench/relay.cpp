#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/unique_fd.hpp"
#include "tests/bench/roles.hpp"

namespace topolet::bench {
namespace {

constexpr std::size_t kBufferBytes = 256 << 10;
constexpr int kBacklog = 16;

void require(bool fine, const std::string& what) {
  if (!fine) throw std::system_error(errno, std::generic_category(), what);
}

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  return address;
}

UniqueFd connect_to(const std::string& path) {
  const sockaddr_un address = address_of(path);
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  require(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0, path);
  return socket;
}

UniqueFd listen_at(const std::string& path) {
  const sockaddr_un address = address_of(path);
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  require(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0, path);
  require(::listen(socket.get(), kBacklog) == 0, path);
  return socket;
}

bool write_all(int fd, const char* bytes, std::size_t size) {
  while (size > 0) {
    const ssize_t written = ::send(fd, bytes, size, MSG_NOSIGNAL);
    if (written <= 0) return false;
    bytes += written;
    size -= static_cast<std::size_t>(written);
  }
  return true;
}

struct Connection {
  UniqueFd client;
  UniqueFd runtime;
};

/// One direction, on a thread of its own, with blocking calls: no poll between a read and a write.
void shuttle(const std::shared_ptr<Connection>& connection, int from, int to) {
  std::thread([connection, from, to] {
    std::vector<char> buffer(kBufferBytes);
    ssize_t size = 0;
    do {
      size = ::recv(from, buffer.data(), buffer.size(), 0);
    } while (size > 0 && write_all(to, buffer.data(), static_cast<std::size_t>(size)));
    ::shutdown(to, SHUT_WR);
  }).detach();
}

}  // namespace

void run_relay(const std::string& listen, const std::string& runtime) {
  const UniqueFd socket = listen_at(listen);
  while (true) {
    UniqueFd client(::accept4(socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!client) continue;
    const auto connection = std::make_shared<Connection>(Connection{std::move(client), connect_to(runtime)});
    shuttle(connection, connection->client.get(), connection->runtime.get());
    shuttle(connection, connection->runtime.get(), connection->client.get());
  }
}

}  // namespace topolet::bench
