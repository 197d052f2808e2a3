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

TEST(Connections, AreCloggedWhenNobodyReadsForLong) {
  Connections connections;
  std::array<int, 2> ends{};
  std::array<int, 2> quiet{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, quiet.data()), 0);
  const UniqueFd other_end(ends[1]);
  const UniqueFd quiet_end(quiet[1]);
  connections.add(UniqueFd(ends[0]), 7);
  connections.add(UniqueFd(quiet[0]), 8);
  const auto sample = [&](int count) {
    for (int i = 0; i < count; ++i) connections.sample_backlogs();
    return connections.take_backlogged();
  };
  EXPECT_TRUE(sample(Connections::kSamples).empty());
  const std::string a_little(100, 'x');
  const std::string much(Connections::kBacklogBytes, 'x');
  std::string read(much.size(), '\0');
  ASSERT_EQ(::write(quiet[0], a_little.data(), a_little.size()), 100);
  ASSERT_GT(::write(ends[0], much.data(), much.size()), 0) << "which the other side does not read";
  EXPECT_TRUE(sample(Connections::kSamples - 1).empty()) << "it may still come to it";
  EXPECT_EQ(sample(1), std::vector<int>{ends[0]});
  ASSERT_EQ(::read(ends[1], read.data(), read.size()), Connections::kBacklogBytes);
  EXPECT_TRUE(sample(Connections::kSamples).empty());
  ASSERT_GT(::write(ends[1], much.data(), much.size()), 0) << "which we do not read";
  EXPECT_EQ(sample(Connections::kSamples), std::vector<int>{ends[0]});
  EXPECT_EQ(connections.process_of(ends[0]), 7);
}

}  // namespace
}  // namespace topolet::cri
