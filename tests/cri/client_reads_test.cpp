#include "core/cri/socket/client_reads.hpp"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <string>
#include <thread>

#include "core/base/unique_fd.hpp"

namespace topolet::cri {
namespace {

/// A connection whose reads are followed. The client has sent much, of a header that never ends.
class ClientReads : public ::testing::Test {
 protected:
  ClientReads() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), 0);
    client_.reset(ends[0]);
    served_.reset(ends[1]);
    std::string sent = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    sent += std::string("\x0f\x42\x40\x01\x00\x00\x00\x00\x01", 9) + std::string(100000, 'h');
    EXPECT_EQ(::send(client_.get(), sent.data(), sent.size(), 0), static_cast<ssize_t>(sent.size()));
    sent_ = sent.size();
  }
  ~ClientReads() override { client_reads::stop(followed_); }

  void follow() { followed_ = client_reads::start(served_.get(), event_.get()); }

  /// recvmsg() as gRPC calls it: with a new buffer each time.
  ssize_t read(std::size_t size = 65536) {
    buffer_.assign(size, '\0');
    iovec piece{buffer_.data(), buffer_.size()};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    return ::recvmsg(served_.get(), &message, 0);
  }
  /// Until nothing is said to be there.
  std::size_t read_turn() {
    std::size_t bytes = 0;
    for (ssize_t got = read(); got > 0; got = read()) bytes += static_cast<std::size_t>(got);
    EXPECT_EQ(errno, EAGAIN);
    return bytes;
  }

  UniqueFd client_;
  UniqueFd served_;
  UniqueFd event_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  client_reads::Followed followed_;
  std::string buffer_;
  std::size_t sent_ = 0;
};

TEST_F(ClientReads, AreThoseOfTheCLibraryForOtherDescriptors) {
  EXPECT_EQ(read(10), 10);
  EXPECT_EQ(buffer_, "PRI * HTTP");
  EXPECT_EQ(read(200000), static_cast<ssize_t>(sent_ - 10));
  EXPECT_EQ(read(), -1);
  EXPECT_EQ(errno, EAGAIN);
  client_.reset();
  EXPECT_EQ(read(), 0);
  served_.reset();
  EXPECT_EQ(read(), -1);
  EXPECT_EQ(errno, EBADF);
}

TEST_F(ClientReads, EndATurnAndGoOnWhenResumed) {
  const UniqueFd poll(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLET;
  ASSERT_EQ(::epoll_ctl(poll.get(), EPOLL_CTL_ADD, served_.get(), &event), 0);
  ASSERT_EQ(::epoll_wait(poll.get(), &event, 1, 0), 1);
  follow();
  std::size_t bytes = read_turn();
  EXPECT_LT(bytes, sent_);
  EXPECT_TRUE(client_reads::look_at(followed_).waits);
  eventfd_t turns = 0;
  EXPECT_EQ(::eventfd_read(event_.get(), &turns), 0);
  EXPECT_EQ(read(), -1) << "it is not its turn";
  EXPECT_EQ(errno, EAGAIN);
  while (bytes < sent_) {
    while (::epoll_wait(poll.get(), &event, 1, 0) == 1) {
    }
    client_reads::resume(followed_, served_.get());
    ASSERT_EQ(::epoll_wait(poll.get(), &event, 1, 60000), 1) << "whoever waits for the socket is woken";
    const std::size_t more = read_turn();
    ASSERT_GT(more, 0U);
    bytes += more;
  }
  EXPECT_EQ(bytes, sent_);
  EXPECT_GE(client_reads::look_at(followed_).unfinished_bytes, 100000U);
}

TEST_F(ClientReads, HaveNoTurnsAfterStop) {
  follow();
  read_turn();
  client_reads::stop(followed_);
  std::size_t bytes = 0;
  for (ssize_t got = read(); got > 0; got = read()) bytes += static_cast<std::size_t>(got);
  EXPECT_GT(bytes, 0U);
}

TEST_F(ClientReads, DoNotWaitWhenThereIsNothingMore) {
  // Away with what has been sent.
  read(200000);
  follow();
  const std::string ping = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + std::string("\0\0\x08\x06\0\0\0\0\0", 9) + "pingpong";
  ASSERT_EQ(::send(client_.get(), ping.data(), ping.size(), 0), static_cast<ssize_t>(ping.size()));
  EXPECT_EQ(read(), static_cast<ssize_t>(ping.size()));
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(read(), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_FALSE(client_reads::look_at(followed_).waits) << "its turn was long, but there is no more";
}

TEST_F(ClientReads, PutNoMoreIntoABufferThanTheFirstOfThemMay) {
  follow();
  buffer_.assign(65536, '\0');
  std::size_t filled = 0;
  // As gRPC does it: again and again into what is left of one buffer.
  while (true) {
    iovec piece{buffer_.data() + filled, buffer_.size() - filled};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    const ssize_t got = ::recvmsg(served_.get(), &message, 0);
    if (got <= 0) break;
    filled += static_cast<std::size_t>(got);
  }
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_LE(filled, 256U) << "nobody knows yet what the client will send";
}

TEST_F(ClientReads, EndWhateverTheClientHasSent) {
  follow();
  EXPECT_GT(read(), 0);
  client_reads::end(followed_);
  EXPECT_EQ(read(), 0);
  client_reads::stop(followed_);
  EXPECT_EQ(read(), 0);
}

TEST_F(ClientReads, OfAnotherSocketWithTheNumberAreItsOwn) {
  follow();
  read_turn();
  ASSERT_TRUE(client_reads::look_at(followed_).waits);
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  const UniqueFd other_client(ends[0]);
  ASSERT_GE(::dup2(ends[1], served_.get()), 0);
  const UniqueFd spare(ends[1]);
  ASSERT_EQ(::send(other_client.get(), "hello", 5, 0), 5);
  EXPECT_EQ(read(), 5);
}

TEST_F(ClientReads, WakeWhoeverAskedForThat) {
  const UniqueFd another(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  client_reads::wake_after(event_.get(), 1000);
  client_reads::wake_after(another.get(), 500);
  eventfd_t count = 0;
  EXPECT_EQ(read(999), 999);
  EXPECT_EQ(::eventfd_read(event_.get(), &count), -1);
  EXPECT_EQ(::eventfd_read(another.get(), &count), 0);
  EXPECT_EQ(read(1), 1);
  EXPECT_EQ(::eventfd_read(event_.get(), &count), 0);
  EXPECT_EQ(read(5000), 5000);
  EXPECT_EQ(::eventfd_read(event_.get(), &count), -1) << "once";
  client_reads::wake_after(event_.get(), 1);
  client_reads::wake_no_more(event_.get());
  client_reads::wake_no_more(another.get());
  EXPECT_EQ(read(10), 10);
  EXPECT_EQ(::eventfd_read(event_.get(), &count), -1);
}

}  // namespace
}  // namespace topolet::cri
