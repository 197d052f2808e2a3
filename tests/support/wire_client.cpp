#include "tests/support/wire_client.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace topolet::testing {
namespace {

// Frame types and flags of RFC 9113.
constexpr std::uint8_t kData = 0;
constexpr std::uint8_t kHeaders = 1;
constexpr std::uint8_t kResetStream = 3;
constexpr std::uint8_t kSettings = 4;
constexpr std::uint8_t kContinuation = 9;
constexpr std::uint8_t kEndStream = 1;
constexpr std::uint8_t kEndHeaders = 4;

std::string text(const std::string& value) { return static_cast<char>(value.size()) + value; }

/// HPACK, RFC 7541 section 6.2.2: literals that are not indexed, with literal names.
std::string header_block(const WireClient::Fields& fields) {
  std::string block;
  for (const auto& [name, value] : fields) block += std::string(1, '\0') + text(name) + text(value);
  return block;
}

std::string frame(std::uint8_t type, std::uint8_t flags, std::uint8_t stream, const std::string& payload) {
  std::string bytes;
  for (const int shift : {16, 8, 0}) bytes += static_cast<char>(payload.size() >> shift & 0xff);
  return bytes + static_cast<char>(type) + static_cast<char>(flags) + std::string(3, '\0') + static_cast<char>(stream) +
         payload;
}

}  // namespace

WireClient::WireClient(const std::string& path, bool silent)
    : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  const timeval patience{60, 0};
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  open_ = ::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  if (silent) return;
  raw("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  raw(frame(kSettings, 0, 0, ""));
}

void WireClient::call(const std::string& path, const Fields& more, std::uint8_t stream, bool last) {
  Fields fields = {{":method", "POST"},         {":scheme", "http"}, {":path", path},
                   {":authority", "localhost"}, {"te", "trailers"},  {"content-type", "application/grpc"}};
  fields.insert(fields.end(), more.begin(), more.end());
  raw(frame(kHeaders, last ? kEndHeaders : 0, stream, header_block(fields)));
}

void WireClient::continue_header(const Fields& fields, std::uint8_t stream, bool last) {
  raw(continuation(fields, stream, last));
}

std::string WireClient::continuation(const Fields& fields, std::uint8_t stream, bool last) {
  return frame(kContinuation, last ? kEndHeaders : 0, stream, header_block(fields));
}

void WireClient::message(const std::string& bytes, bool last, std::uint8_t stream) {
  raw(frame(kData, last ? kEndStream : 0, stream, std::string(4, '\0') + static_cast<char>(bytes.size()) + bytes));
}

void WireClient::half_close(std::uint8_t stream) { raw(frame(kData, kEndStream, stream, "")); }

void WireClient::raw(const std::string& bytes) {
  std::size_t sent = 0;
  while (open_ && sent < bytes.size()) {
    const ssize_t size = ::send(socket_.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (size > 0) sent += static_cast<std::size_t>(size);
    open_ = size > 0 || errno == EINTR;
  }
}

bool WireClient::wait_for_answer() { return wait_for_frame(kHeaders, kEndHeaders); }

bool WireClient::wait_for_end() { return wait_for_frame(kHeaders, kEndStream); }

bool WireClient::wait_for_reset() { return wait_for_frame(kResetStream, 0); }

bool WireClient::wait_for_frame(std::uint8_t type, std::uint8_t flag) {
  while (true) {
    const std::string header = receive(9);
    if (header.size() < 9) return false;
    const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(header[at]); };
    receive(static_cast<std::size_t>(byte(0)) << 16 | static_cast<std::size_t>(byte(1)) << 8 | byte(2));
    if (byte(3) == type && (byte(4) & flag) == flag) return true;
  }
}

bool WireClient::wait_for_hang_up() const {
  pollfd disconnect_all{socket_.get(), POLLRDHUP, 0};
  constexpr int kPatienceMs = 60000;
  return ::poll(&disconnect_all, 1, kPatienceMs) == 1;
}

std::string WireClient::receive(std::size_t size) const {
  std::string bytes(size, '\0');
  std::size_t have = 0;
  errno = 0;
  while (have < size) {
    const ssize_t got = ::read(socket_.get(), bytes.data() + have, size - have);
    if (got <= 0) break;
    have += static_cast<std::size_t>(got);
  }
  bytes.resize(have);
  return bytes;
}

}  // namespace topolet::testing
