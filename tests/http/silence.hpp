// A check that a socket is silent.
#pragma once

#include <sys/socket.h>

#include <cerrno>

namespace topolet::testing {

/// Nothing is there to be read, and the other end has not closed.
inline bool is_silent(int socket) {
  char byte = 0;
  return ::recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

}  // namespace topolet::testing
