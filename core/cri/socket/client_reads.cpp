#include "core/cri/socket/client_reads.hpp"

#include <dlfcn.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <limits>
#include <memory>

#include "core/base/happens_before.hpp"
#include "core/cri/socket/client_frames.hpp"
#include "core/cri/wire/peer_names.hpp"

namespace topolet::cri::client_reads {
namespace {

using Clock = std::chrono::steady_clock;

/// daemon.max-connections may be 65536, with two descriptors each.
constexpr std::size_t kMostDescriptors = std::size_t{1} << 17;
constexpr std::size_t kPartDescriptors = 256;

/// A turn ends when either is over and there is more to read.
constexpr std::size_t kFirstTurnWork = 256 << 10;
constexpr std::size_t kTurnWork = 2 << 20;
constexpr std::size_t kMessageTurnWork = 256 << 10;
constexpr std::chrono::microseconds kTurnTime{500};
/// The number of bytes that are read at a time. gRPC works through all that it got before it asks for more, so it gets
/// little of input that may take long: a header of many fields, or many small frames.
constexpr std::size_t kFirstReadBytes = 256;
constexpr std::size_t kReadBytes = 4 << 10;
constexpr std::size_t kMessageReadBytes = 256 << 10;
/// A client that has had so many calls is taken for one that has something to say.
constexpr std::uint64_t kKnownAfterRequests = 16;
constexpr std::size_t kReadPieces = 64;

struct Descriptor {
  std::atomic<int> wake_fd = -1;  ///< −1: not followed
  std::atomic<bool> ended = false;
  std::atomic<bool> waits = false;
  std::atomic<std::size_t> unfinished_bytes = 0;
  std::atomic<std::uint64_t> begun_requests = 0;
  std::atomic<std::uint64_t> complete_requests = 0;
  std::atomic<std::uint64_t> work = 0;
  std::atomic<std::uint64_t> turns = 0;
  std::atomic<ino_t> inode = 0;

  // For whoever reads: one thread at a time.
  ClientFrames frames;
  bool begins_turn = true;
  std::size_t turn_work = 0;
  Clock::time_point turn_began{};
  // gRPC fills a buffer with several reads before it looks at what it got.
  std::size_t buffer_left = 0;
  const void* buffer_next = nullptr;
  std::size_t buffer_read = 0;
  std::size_t buffer_most = 0;  ///< that is read into it
};

using Part = std::array<Descriptor, kPartDescriptors>;

// The memory for a part is allocated when the first of its descriptors is followed, and kept.
std::array<std::atomic<Part*>, kMostDescriptors / kPartDescriptors> parts{};
std::atomic<std::uint64_t> all_bytes = 0;

constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
/// A descriptor to be woken when a total number of bytes has been read.
struct Waiter {
  std::atomic<int> fd = -1;  ///< −1: nobody
  std::atomic<std::uint64_t> wake_at = kNever;
};
std::array<Waiter, kMostWaiting> waiters{};

Descriptor* find(int fd) {
  if (fd < 0 || static_cast<std::size_t>(fd) >= kMostDescriptors) return nullptr;
  Part* part = parts[static_cast<std::size_t>(fd) / kPartDescriptors].load(std::memory_order_acquire);
  return part == nullptr ? nullptr : &(*part)[static_cast<std::size_t>(fd) % kPartDescriptors];
}

Descriptor* find(const Followed& followed) {
  Descriptor* descriptor = find(followed.fd);
  return descriptor != nullptr && descriptor->inode == followed.inode ? descriptor : nullptr;
}

Descriptor* find_or_add(int fd) {
  if (Descriptor* known = find(fd); known != nullptr) return known;
  if (fd < 0 || static_cast<std::size_t>(fd) >= kMostDescriptors) return nullptr;
  auto part = std::make_unique<Part>();
  Part* expected = nullptr;
  if (parts[static_cast<std::size_t>(fd) / kPartDescriptors].compare_exchange_strong(expected, part.get())) {
    part.release();
  }
  return find(fd);
}

/// Wakes whoever waits for the socket: the kernel does that when the buffer for sending may have grown.
void wake_waiters(int fd) {
  int bytes = 0;
  socklen_t size = sizeof(bytes);
  if (::getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, &size) != 0) return;
  bytes /= 2;  // of which the kernel takes the double, and says so
  ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

Waiter* find_waiter(int wake_fd) {
  for (Waiter& waiter : waiters) {
    if (waiter.fd == wake_fd) return &waiter;
  }
  return nullptr;
}

Waiter* add_waiter(int wake_fd) {
  for (Waiter& waiter : waiters) {
    int nobody = -1;
    if (waiter.fd.compare_exchange_strong(nobody, wake_fd)) return &waiter;
  }
  return nullptr;
}

void note_read(std::size_t bytes) {
  const std::uint64_t total = all_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  for (Waiter& waiter : waiters) {
    std::uint64_t wake_at = waiter.wake_at.load(std::memory_order_relaxed);
    if (total < wake_at || !waiter.wake_at.compare_exchange_strong(wake_at, kNever)) continue;
    if (const int fd = waiter.fd.load(); fd >= 0) ::eventfd_write(fd, 1);
  }
}

ssize_t plain_recvmsg(int fd, msghdr* message, int flags) {
  using Function = ssize_t (*)(int, msghdr*, int);
  static const auto kNext = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "recvmsg"));
  // A program that is linked statically has no other.
  return kNext != nullptr ? kNext(fd, message, flags) : ::syscall(SYS_recvmsg, fd, message, flags);
}

std::size_t size_of(const msghdr& message) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < message.msg_iovlen; ++i) bytes += message.msg_iov[i].iov_len;
  return bytes;
}

/// recvmsg() of at most so many bytes.
ssize_t receive_some(int fd, msghdr* message, int flags, std::size_t most) {
  std::array<iovec, kReadPieces> pieces;
  msghdr part = *message;
  part.msg_iov = pieces.data();
  part.msg_iovlen = 0;
  for (std::size_t i = 0; i < message->msg_iovlen && part.msg_iovlen < kReadPieces && most > 0; ++i) {
    iovec piece = message->msg_iov[i];
    piece.iov_len = std::min(piece.iov_len, most);
    most -= piece.iov_len;
    pieces.at(part.msg_iovlen++) = piece;
  }
  const ssize_t got = plain_recvmsg(fd, &part, flags);
  message->msg_namelen = part.msg_namelen;
  message->msg_controllen = part.msg_controllen;
  message->msg_flags = part.msg_flags;
  return got;
}

void follow(Descriptor& descriptor, const msghdr& message, std::size_t got) {
  const std::size_t room = size_of(message);
  descriptor.buffer_read += got;
  descriptor.buffer_left = room - got;
  descriptor.buffer_next = nullptr;
  for (std::size_t i = 0; i < message.msg_iovlen; ++i) {
    const auto* bytes = static_cast<const unsigned char*>(message.msg_iov[i].iov_base);
    const std::size_t part = std::min(got, message.msg_iov[i].iov_len);
    if (part > 0) descriptor.turn_work += descriptor.frames.take(bytes, part);
    got -= part;
    if (got > 0 || part == message.msg_iov[i].iov_len) continue;
    descriptor.buffer_next = bytes + part;
    break;
  }
  descriptor.unfinished_bytes.store(descriptor.frames.unfinished_bytes(), std::memory_order_relaxed);
  descriptor.begun_requests.store(descriptor.frames.begun_requests(), std::memory_order_relaxed);
  descriptor.complete_requests.store(descriptor.frames.complete_requests(), std::memory_order_relaxed);
}

void forget_buffer(Descriptor& descriptor) {
  descriptor.buffer_left = 0;
  descriptor.buffer_next = nullptr;
  descriptor.buffer_read = 0;
}

void end_turn(Descriptor& descriptor) {
  descriptor.work.store(descriptor.work.load(std::memory_order_relaxed) + descriptor.turn_work,
                        std::memory_order_relaxed);
  descriptor.turn_work = 0;
  forget_buffer(descriptor);
  descriptor.begins_turn = true;
  descriptor.turns.fetch_add(1);
}

bool is_known(const Descriptor& descriptor) { return descriptor.frames.complete_requests() >= kKnownAfterRequests; }

std::size_t most_work(const Descriptor& descriptor) {
  if (descriptor.frames.in_message()) return kMessageTurnWork;
  return is_known(descriptor) ? kTurnWork : kFirstTurnWork;
}

std::size_t most_bytes(const Descriptor& descriptor) {
  if (descriptor.frames.in_message()) return kMessageReadBytes;
  return is_known(descriptor) || descriptor.turn_work > 0 ? kReadBytes : kFirstReadBytes;
}

bool is_over(const Descriptor& descriptor) {
  return descriptor.turn_work >= most_work(descriptor) ||
         (descriptor.turn_work > 0 && Clock::now() - descriptor.turn_began >= kTurnTime);
}

ssize_t say_nothing_there() {
  errno = EAGAIN;
  return -1;
}

/// The number is another socket's by now: that gRPC closed this one is known only some time later.
bool is_another(const Descriptor& descriptor, int fd) { return inode_of(fd) != descriptor.inode; }

bool has_more(int fd) {
  char byte = 0;
  return ::recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN;
}

ssize_t wait_for_resume(Descriptor& descriptor, int fd, int wake_fd) {
  end_turn(descriptor);
  mark_handed_over(&descriptor);
  descriptor.waits.store(true);
  // Whoever called stop() just then does not see that it waits.
  if (descriptor.wake_fd.load() < 0) {
    wake_waiters(fd);
  } else {
    ::eventfd_write(wake_fd, 1);
  }
  return say_nothing_there();
}

ssize_t receive_in_turns(Descriptor& descriptor, int fd, int wake_fd, msghdr* message, int flags) {
  if (descriptor.waits.load()) {
    return is_another(descriptor, fd) ? plain_recvmsg(fd, message, flags) : say_nothing_there();
  }
  mark_taken(&descriptor);
  const bool fills_buffer = descriptor.buffer_left != 0 && size_of(*message) == descriptor.buffer_left &&
                            message->msg_iov[0].iov_base == descriptor.buffer_next;
  if (!fills_buffer) forget_buffer(descriptor);
  if (descriptor.begins_turn) {
    descriptor.begins_turn = false;
    descriptor.turn_began = Clock::now();
  } else if (!fills_buffer && is_over(descriptor) && !is_another(descriptor, fd) && has_more(fd)) {
    return wait_for_resume(descriptor, fd, wake_fd);
  }
  if (descriptor.buffer_read == 0) descriptor.buffer_most = most_bytes(descriptor);
  if (descriptor.buffer_read >= descriptor.buffer_most) {
    // It looks at what it has, and then comes for more. A gRPC that does not comes when it is woken.
    forget_buffer(descriptor);
    wake_waiters(fd);
    mark_handed_over(&descriptor);
    return say_nothing_there();
  }
  const ssize_t got = receive_some(fd, message, flags, descriptor.buffer_most - descriptor.buffer_read);
  const int error = errno;
  if (got > 0) {
    follow(descriptor, *message, static_cast<std::size_t>(got));
    note_read(static_cast<std::size_t>(got));
  } else if (!fills_buffer) {
    end_turn(descriptor);
  } else {
    forget_buffer(descriptor);
  }
  mark_handed_over(&descriptor);
  errno = error;
  return got;
}

}  // namespace

Followed start(int fd, int wake_fd) {
  Descriptor* descriptor = find_or_add(fd);
  if (descriptor == nullptr) return {};
  descriptor->wake_fd = -1;
  descriptor->frames = {};
  descriptor->turn_work = 0;
  forget_buffer(*descriptor);
  descriptor->inode = inode_of(fd);
  descriptor->begins_turn = true;
  descriptor->ended = false;
  descriptor->waits = false;
  descriptor->unfinished_bytes = 0;
  descriptor->begun_requests = 0;
  descriptor->complete_requests = 0;
  descriptor->work = 0;
  descriptor->turns = 0;
  mark_handed_over(descriptor);
  descriptor->wake_fd = wake_fd;
  return {fd, descriptor->inode};
}

void stop(const Followed& followed) {
  if (Descriptor* descriptor = find(followed); descriptor != nullptr) descriptor->wake_fd = -1;
}

void end(const Followed& followed) {
  if (Descriptor* descriptor = find(followed); descriptor != nullptr) descriptor->ended = true;
}

Reads look_at(const Followed& followed) {
  const Descriptor* descriptor = find(followed);
  if (descriptor == nullptr) return {};
  return {.unfinished_bytes = descriptor->unfinished_bytes.load(std::memory_order_relaxed),
          .begun_requests = descriptor->begun_requests.load(std::memory_order_relaxed),
          .complete_requests = descriptor->complete_requests.load(std::memory_order_relaxed),
          .work = descriptor->work.load(std::memory_order_relaxed),
          .turns = descriptor->turns.load(),
          .waits = descriptor->waits.load()};
}

void resume(const Followed& followed, int duplicate_fd) {
  if (Descriptor* descriptor = find(followed); descriptor != nullptr) descriptor->waits = false;
  wake_waiters(duplicate_fd);
}

std::uint64_t total_bytes() { return all_bytes.load(std::memory_order_relaxed); }

void wake_after(int wake_fd, std::uint64_t bytes) {
  Waiter* waiter = find_waiter(wake_fd);
  if (waiter == nullptr) waiter = add_waiter(wake_fd);
  if (waiter != nullptr) waiter->wake_at = total_bytes() + bytes;
}

void wake_no_more(int wake_fd) {
  Waiter* const waiter = find_waiter(wake_fd);
  if (waiter == nullptr) return;
  waiter->wake_at = kNever;
  waiter->fd = -1;
}

}  // namespace topolet::cri::client_reads

/// Takes precedence over the C library's in the whole process.
extern "C" __attribute__((visibility("default"))) ssize_t recvmsg(int fd, msghdr* message, int flags) {
  using namespace topolet::cri::client_reads;
  Descriptor* descriptor = find(fd);
  if (descriptor != nullptr && descriptor->ended.load() && !is_another(*descriptor, fd)) return 0;
  const int wake_fd = descriptor == nullptr ? -1 : descriptor->wake_fd.load();
  if (wake_fd >= 0 && flags == 0 && !is_another(*descriptor, fd))
    return receive_in_turns(*descriptor, fd, wake_fd, message, flags);
  const ssize_t got = plain_recvmsg(fd, message, flags);
  const int error = errno;
  if (got > 0) note_read(static_cast<std::size_t>(got));
  errno = error;
  return got;
}
