#include "core/cri/socket/connections.hpp"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

namespace topolet::cri {
namespace {

int add(Connections& connections, pid_t process) {
  UniqueFd fd(::eventfd(0, EFD_CLOEXEC));
  const int number = fd.get();
  connections.add(std::move(fd), process);
  return number;
}

TEST(Connections, EndTheNewestOfTheProcessThatHoldsTheMost) {
  Connections connections;
  add(connections, 7);
  add(connections, 8);
  const int newest = add(connections, 7);
  add(connections, 8);
  const int newer = add(connections, 7);
  EXPECT_EQ(connections.connection_to_evict(9), newer);
  connections.remove(newer);
  add(connections, 7);
  connections.remove(*connections.connection_to_evict(9));
  EXPECT_EQ(connections.count_of(7), 2U);
  connections.remove(newest);
  EXPECT_EQ(connections.process_with_most().process, 8);
}

TEST(Connections, EndNoneForWhoeverHoldsAsMany) {
  Connections connections;
  EXPECT_EQ(connections.connection_to_evict(7), std::nullopt);
  add(connections, 7);
  add(connections, 7);
  EXPECT_EQ(connections.connection_to_evict(7), std::nullopt);
  add(connections, 8);
  EXPECT_EQ(connections.connection_to_evict(8), std::nullopt) << "both would go on for ever, in turns";
}

TEST(Connections, AreStalledOnceTheirClientsReadNothingForLong) {
  Connections connections;
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  const UniqueFd client(ends[1]);
  connections.add(UniqueFd(ends[0]), 7);
  const auto sample = [&](int count) {
    std::vector<int> stalled;
    for (int i = 0; i < count; ++i) stalled = connections.sample_stalled();
    return stalled;
  };
  const std::string a_little(100, 'x');
  const std::string much(Connections::kStalledBytes, 'x');
  std::string read(a_little.size(), '\0');
  ASSERT_EQ(::write(ends[0], a_little.data(), a_little.size()), 100);
  EXPECT_TRUE(sample(2 * Connections::kStalledSamples).empty()) << "an idle client may leave that";
  ASSERT_GT(::write(ends[0], much.data(), much.size()), 0);
  EXPECT_TRUE(sample(Connections::kStalledSamples).empty()) << "it may still come to it";
  ASSERT_EQ(::read(ends[1], read.data(), read.size()), 100);
  ASSERT_GT(::write(ends[0], much.data(), much.size()), 0);
  EXPECT_TRUE(sample(Connections::kStalledSamples).empty()) << "it reads, if slowly";
  EXPECT_EQ(sample(1), std::vector<int>{ends[0]});
  EXPECT_EQ(connections.process_of(ends[0]), 7);
}

}  // namespace
}  // namespace topolet::cri
