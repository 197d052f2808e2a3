#include "core/cri/wire/peer_names.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <string>

#include "core/base/unique_fd.hpp"

namespace topolet::cri {
namespace {

class PeerNames : public ::testing::Test {
 protected:
  PeerNames() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    client_.reset(ends[0]);
    served_.reset(ends[1]);
  }

  /// As gRPC writes it: the text after the zero byte of a name that is not a path.
  static std::string peer_of(int fd) {
    sockaddr_un address{};
    socklen_t size = sizeof(address);
    EXPECT_EQ(::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
    const std::size_t before = offsetof(sockaddr_un, sun_path) + 1;
    return size <= before ? "" : "unix-abstract:" + std::string(address.sun_path + 1, size - before);
  }

  UniqueFd client_;
  UniqueFd served_;
};

TEST_F(PeerNames, SayWhichConnectionItIs) {
  EXPECT_NE(inode_of(served_.get()), 0U);
  EXPECT_EQ(connection_of(peer_of(served_.get())), inode_of(served_.get()));
  EXPECT_EQ(connection_of(peer_of(client_.get())), inode_of(client_.get()));
}

TEST_F(PeerNames, OfSocketsThatHaveOneAreTheKernels) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = "topolet-client-17-by-itself";
  name.copy(address.sun_path + 1, name.size());
  const UniqueFd listening(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  ASSERT_EQ(::bind(listening.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(listening.get(), 1), 0);
  const UniqueFd connected(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(connected.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  EXPECT_EQ(peer_of(connected.get()), "unix-abstract:" + name);
  EXPECT_EQ(connection_of(peer_of(connected.get())), 0U);
}

TEST_F(PeerNames, OfClientsThatTookOneAreOursAllTheSame) {
  const UniqueFd listening(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // The kernel makes a name up.
  ASSERT_EQ(::bind(listening.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(sa_family_t)), 0);
  ASSERT_EQ(::listen(listening.get(), 1), 0);
  socklen_t size = sizeof(address);
  ASSERT_EQ(::getsockname(listening.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const UniqueFd client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un own{};
  own.sun_family = AF_UNIX;
  ASSERT_EQ(::bind(client.get(), reinterpret_cast<const sockaddr*>(&own), sizeof(sa_family_t)), 0);
  ASSERT_EQ(::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  const UniqueFd served(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
  EXPECT_EQ(connection_of(peer_of(served.get())), inode_of(served.get()));
}

TEST_F(PeerNames, AreCutOffWhereThereIsNoRoom) {
  std::array<char, 8> room{};
  room.fill('x');
  socklen_t size = 6;
  ASSERT_EQ(::getpeername(served_.get(), reinterpret_cast<sockaddr*>(room.data()), &size), 0);
  EXPECT_GT(size, 6U) << "how long it is";
  EXPECT_EQ(std::string(room.data() + 2, 6), std::string("\0topxx", 6));
}

TEST_F(PeerNames, OfWhatIsNotConnectedAreErrors) {
  const UniqueFd alone(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  socklen_t size = sizeof(address);
  EXPECT_EQ(::getpeername(alone.get(), reinterpret_cast<sockaddr*>(&address), &size), -1);
  EXPECT_EQ(errno, ENOTCONN);
  EXPECT_EQ(::getpeername(-1, reinterpret_cast<sockaddr*>(&address), &size), -1);
  EXPECT_EQ(errno, EBADF);
}

TEST(ConnectionOf, IsNoneForOtherNames) {
  for (const char* peer :
       {"", "unix:", "unix:/run/a.sock", "unix-abstract:", "unix-abstract:topolet-client-",
        "unix-abstract:topolet-client-x", "unix-abstract:topolet-client-12x", "unix-abstract:topolet-client--1",
        "unix-abstract:topolet-client-99999999999999999999999", "topolet-client-12", "ipv4:127.0.0.1:12"}) {
    EXPECT_EQ(connection_of(peer), 0U) << peer;
  }
  EXPECT_EQ(connection_of("unix-abstract:topolet-client-12"), 12U);
}

}  // namespace
}  // namespace topolet::cri
