#include "core/cri/wire/goaway.hpp"

#include <sys/socket.h>

#include <array>
#include <cstdint>

namespace topolet::cri {

void send_goaway(int connection_fd) {
  constexpr std::uint8_t kPayloadBytes = 8;
  constexpr std::uint8_t kGoaway = 0x07;
  constexpr std::array<std::uint8_t, 9 + kPayloadBytes> kFrame = {
      0,       0,    kPayloadBytes,
      kGoaway, 0,    0,
      0,       0,    0,  // length, type, flags, the connection's stream
      0x7f,    0xff, 0xff,
      0xff,  // the last stream that is served: any
      0,       0,    0,
      0,  // NO_ERROR
  };
  static_cast<void>(::send(connection_fd, kFrame.data(), kFrame.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
}

}  // namespace topolet::cri
