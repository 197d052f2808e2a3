#pragma once

#include <linux/sockios.h>
#include <sys/ioctl.h>

namespace topolet::cri {

/// The bytes in the socket that the other side has not read yet.
inline int unread_by_peer(int connection_fd) {
  int bytes = 0;
  ::ioctl(connection_fd, SIOCOUTQ, &bytes);
  return bytes;
}

}  // namespace topolet::cri
