// By what name gRPC knows a client's connection.
//
// A call tells no more of where it came from than the name of its peer, which gRPC asks the kernel for when the
// connection begins. Clients on unix sockets have none, or any that they like. So that a call can be charged to its
// connection, this file defines getpeername() for the whole process (a program's own function takes precedence over the
// C library's): the peer of a unix socket has the socket's inode number as its name if it has no other, or the socket
// itself has a name, as those have that were accepted. All other answers are the kernel's.
#pragma once

#include <sys/types.h>

#include <string_view>

namespace topolet::cri {

/// The inode number of a descriptor; 0 if there is none.
ino_t inode_of(int fd);

/// The inode number of the connection with that peer, as grpc::ServerContext::peer() tells it; 0 if it says none.
ino_t connection_of(std::string_view peer);

}  // namespace topolet::cri
