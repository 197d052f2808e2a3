#include "core/cri/socket/connections.hpp"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <list>
#include <string>

#include "tests/cri/loop_rig.hpp"

namespace topolet::cri {
namespace {

int add(Connections& connections, pid_t process) {
  UniqueFd fd(::eventfd(0, EFD_CLOEXEC));
  const int number = fd.get();
  connections.add(std::move(fd), process);
  return number;
}

/// Calls that are under way.
class Calls {
 public:
  std::shared_ptr<ClientCalls> calls(std::size_t request_bytes, int answered = 0) {
    const auto client = admission_.open(++connections_);
    for (int i = 0; i < answered; ++i) CallTicket(admission_, client).end(/*answered=*/true);
    tickets_.emplace_back(admission_, client).begin(request_bytes);
    return client;
  }
  std::shared_ptr<ClientCalls> unread(std::size_t bytes) {
    const auto client = calls(0);
    tickets_.back().set_response(bytes);
    return client;
  }

 private:
  testing::LoopRig loop_;
  CallAdmission admission_{loop_.loop};
  ino_t connections_ = 0;
  std::list<CallTicket> tickets_;
};

class HeavyConnections : public ::testing::Test {
 protected:
  Calls load_;
};

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

TEST_F(HeavyConnections, AreStalledOnceTheirClientsReadNothingForLong) {
  Connections connections;
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  const UniqueFd client(ends[1]);
  connections.add(UniqueFd(ends[0]), 7);
  const auto is_stalled_after = [&](int samples) {
    for (int i = 0; i < samples; ++i) connections.sample_stalled();
    const auto heaviest = connections.heaviest(1);
    return heaviest && heaviest->fd == ends[0];
  };
  const std::string a_little(100, 'x');
  const std::string much(Connections::kStalledBytes, 'x');
  std::string read(a_little.size(), '\0');
  ASSERT_EQ(::write(ends[0], a_little.data(), a_little.size()), 100);
  EXPECT_FALSE(is_stalled_after(2 * Connections::kStalledSamples)) << "an idle client may leave that";
  ASSERT_GT(::write(ends[0], much.data(), much.size()), 0);
  EXPECT_FALSE(is_stalled_after(Connections::kStalledSamples)) << "it may still come to it";
  ASSERT_EQ(::read(ends[1], read.data(), read.size()), 100);
  ASSERT_GT(::write(ends[0], much.data(), much.size()), 0);
  EXPECT_FALSE(is_stalled_after(Connections::kStalledSamples)) << "it reads, if slowly";
  const int other = add(connections, 8);
  connections.set_calls(other, load_.calls(100 << 10));
  EXPECT_EQ(connections.heaviest(1)->fd, other);
  EXPECT_TRUE(is_stalled_after(1)) << "what it leaves unread is counted nowhere else";
  EXPECT_TRUE(connections.heaviest(1)->is_unread);
  EXPECT_EQ(connections.process_of(ends[0]), 7);
}

TEST_F(HeavyConnections, AreThoseWhoseCallsTakeMost) {
  Connections connections;
  const int light = add(connections, 7);
  const int heavy = add(connections, 7);
  EXPECT_EQ(connections.heaviest(1), std::nullopt);
  connections.set_calls(light, load_.calls(1 << 20));
  connections.set_calls(heavy, load_.calls(2 << 20));
  ASSERT_TRUE(connections.heaviest(1));
  EXPECT_EQ(connections.heaviest(1)->fd, heavy);
  EXPECT_GE(connections.heaviest(1)->bytes, std::size_t{2} << 20);
  EXPECT_FALSE(connections.heaviest(1)->is_unread);
  EXPECT_EQ(connections.heaviest(3 << 20), std::nullopt);
}

TEST_F(HeavyConnections, MayHaveMoreTheMoreCallsWereAnswered) {
  Connections connections;
  const int known = add(connections, 7);
  const int unknown = add(connections, 7);
  connections.set_calls(known, load_.calls(2 << 20, /*answered=*/5));
  connections.set_calls(unknown, load_.calls(1 << 20));
  EXPECT_EQ(connections.heaviest(1)->fd, unknown);
}

TEST_F(HeavyConnections, MayLeaveALargeAnswerUnreadForAMoment) {
  Connections connections;
  const int reads = add(connections, 7);
  const int calls = add(connections, 7);
  connections.set_calls(reads, load_.unread(4 << 20));
  connections.set_calls(calls, load_.calls(3 << 20));
  EXPECT_EQ(connections.heaviest(1)->fd, calls);
  connections.remove(calls);
  EXPECT_TRUE(connections.heaviest(1)->is_unread);
}

}  // namespace
}  // namespace topolet::cri
