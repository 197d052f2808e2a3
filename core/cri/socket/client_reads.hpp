// Controls how gRPC reads from the clients' connections: how much, from which client, and how long it stays with one.
//
// gRPC 1.51 tells nothing about a request whose header or message is not complete, holds no client to a limit there,
// and has no turns: a client that sends faster than it is read keeps the only I/O thread for itself. gRPC always reads
// with recvmsg(), though. This file defines recvmsg() for the whole process (a program's own function takes precedence
// over the C library's), and does two things for the registered descriptors:
//
//  - It follows the frames of the bytes read (client_frames.hpp), so that one can see who holds how much memory.
//  - It ends a turn after a while by saying EAGAIN although there is more. gRPC then waits to be woken, which resume()
//    does: connections that have more to read are resumed one at a time, and whoever has little to say is served in
//    between.
//
// For all other descriptors it is recvmsg(). If gRPC read in another way, connections would count as having sent
// nothing, and have no turns; all else would work.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace topolet::cri {

/// Functions for any thread.
namespace client_reads {

/// A descriptor number with the socket that it stood for when it was followed: gRPC closes it some time, and another
/// may get the number.
struct Followed {
  int fd = -1;  ///< −1: none
  ino_t inode = 0;
};

/// From here on reads of `fd` are followed, and `wake_fd` (an eventfd, which must live until stop()) is written to
/// whenever the connection waits for resume(). Before gRPC gets the descriptor. None if its number is too high.
Followed start(int fd, int wake_fd);
/// From here on it is read as any other. To be resumed after that.
void stop(const Followed& followed);

/// From here on there is nothing more to read, as if the client had closed, whatever it has sent: shutdown() alone
/// leaves that to be read.
void end(const Followed& followed);

struct Reads {
  std::size_t unfinished_bytes = 0;  ///< see ClientFrames
  std::uint64_t begun_requests = 0;
  std::uint64_t complete_requests = 0;
  std::uint64_t work = 0;   ///< what all reads so far were, in bytes of a large message
  std::uint64_t turns = 0;  ///< how many have ended, by us or as there was nothing more to read
  bool waits = false;       ///< for resume()
};
Reads look_at(const Followed& followed);

/// The connection gets its next turn. `duplicate_fd`: another descriptor of it.
void resume(const Followed& followed, int duplicate_fd);

/// Returns the number of bytes read from all sockets, those of runtimes too.
std::uint64_t total_bytes();
/// Has `wake_fd` written to once `bytes` more have been read, in place of what was asked for it before. So many may
/// wait at a time, one for each guard of a process; further ones are not woken.
inline constexpr std::size_t kMostWaiting = 8;
void wake_after(int wake_fd, std::uint64_t bytes);
/// To be called before it is closed.
void wake_no_more(int wake_fd);

}  // namespace client_reads
}  // namespace topolet::cri
