#include "core/cri/wire/call_admission.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "tests/cri/loop_rig.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/manual_clock.hpp"

namespace topolet::cri {
namespace {

using testing::eventually;

/// All on the loop's thread.
class CallAdmissionTest : public ::testing::Test {
 protected:
  using Client = std::shared_ptr<ClientCalls>;

  /// The loop goes first: it may be about to look at those that wait.
  void TearDown() override { loop_.reset(); }
  void on_loop(const std::function<void()>& work) { loop_->run(work); }
  Client connect() { return admission_.open(++connections_); }
  CallTicket& arrive(const Client& client, std::size_t bytes = 0) {
    CallTicket& ticket = tickets_.emplace_back(admission_, client);
    ticket.begin(bytes);
    return ticket;
  }
  /// So many calls that wait for their turn; returns how many of all have had it. Those that are refused are counted.
  std::size_t call(const Client& client, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      if (!arrive(client).wait_for_turn([this] { ++started_; })) ++refused_;
    }
    return started_;
  }
  void answer_first(std::size_t count = 1) {
    for (std::size_t i = 0; i < count; ++i) {
      tickets_.front().end(/*answered=*/true);
      tickets_.pop_front();
    }
  }
  /// The client is no longer a new one.
  void make_known(const Client& client, int answered) {
    for (int i = 0; i < answered; ++i) CallTicket(admission_, client).end(/*answered=*/true);
  }

  /// How many calls have had their turn.
  std::size_t started() {
    std::size_t started = 0;
    on_loop([&] { started = started_; });
    return started;
  }
  /// The same so much later, where some still wait: they have been looked at since.
  std::size_t started_after(std::chrono::milliseconds time) {
    clock_.advance(time);
    // Each look reads the clock, and one may have begun before.
    EXPECT_TRUE(eventually([this, before = clock_reads_.load()] { return clock_reads_ >= before + 2; }));
    return started();
  }
  Clock counted_clock() {
    Clock clock = clock_.clock();
    clock.steady = [this, steady = clock.steady] {
      ++clock_reads_;
      return steady();
    };
    return clock;
  }

  /// The longest wait of a call while the runtime has few, and the longest at all.
  static constexpr std::chrono::milliseconds kMoment{20};
  static constexpr std::chrono::milliseconds kLongest{1000};
  static constexpr std::chrono::milliseconds kMillisecond{1};

  std::unique_ptr<testing::LoopRig> loop_ = std::make_unique<testing::LoopRig>();
  testing::ManualClock clock_;
  std::atomic<int> clock_reads_ = 0;
  CallAdmission admission_{loop_->loop, counted_clock()};
  ino_t connections_ = 0;
  std::size_t started_ = 0;
  std::size_t refused_ = 0;
  std::list<CallTicket> tickets_;
};

TEST_F(CallAdmissionTest, GivesAClientOneMoreForEachAnswer) {
  on_loop([this] {
    const Client client = connect();
    EXPECT_EQ(call(client, 20), CallAdmission::kFirstCalls);
    answer_first();
    EXPECT_EQ(started_, CallAdmission::kFirstCalls + 2);
    answer_first();
    EXPECT_EQ(started_, CallAdmission::kFirstCalls + 4);
    tickets_.front().end(/*answered=*/false);
    EXPECT_EQ(started_, CallAdmission::kFirstCalls + 5) << "another has its place";
    EXPECT_EQ(refused_, 0U);
    tickets_.clear();
  });
}

TEST_F(CallAdmissionTest, LetsCallsGoThatHaveWaitedForAMoment) {
  Client client;
  on_loop([&] {
    client = connect();
    EXPECT_EQ(call(client, 20), CallAdmission::kFirstCalls);
  });
  const std::size_t first = CallAdmission::kFirstCalls;
  EXPECT_EQ(started_after(kMoment - kMillisecond), first);
  clock_.advance(kMillisecond);
  EXPECT_TRUE(eventually([this] { return started() == 20; }));
  on_loop([this] { tickets_.clear(); });
}

TEST_F(CallAdmissionTest, GivesFewToEachWhileMemoryIsShort) {
  const Client other = connect();
  on_loop([&] {
    admission_.set_memory_short(true);
    const Client client = connect();
    make_known(client, 1000);
    EXPECT_EQ(call(client, 100), CallAdmission::kCallsWhenShort);
    EXPECT_EQ(call(other, 1), CallAdmission::kCallsWhenShort + 1) << "who has none gets one";
    EXPECT_EQ(call(other, 1), CallAdmission::kCallsWhenShort + 2);
  });
  on_loop([&] { admission_.set_memory_short(false); });
  clock_.advance(kMoment);
  EXPECT_TRUE(eventually([this] { return started() == 102; }));
  on_loop([this] { tickets_.clear(); });
}

TEST_F(CallAdmissionTest, LetsNoCallWaitForLongOnesForEverWhileMemoryIsShort) {
  on_loop([&] {
    admission_.set_memory_short(true);
    const Client client = connect();
    make_known(client, 1000);
    EXPECT_EQ(call(client, CallAdmission::kCallsWhenShort + 2), CallAdmission::kCallsWhenShort);
  });
  const std::size_t first = CallAdmission::kCallsWhenShort;
  EXPECT_EQ(started_after(kLongest - kMillisecond), first);
  EXPECT_EQ(started_after(kMillisecond), first + 1);
  EXPECT_EQ(started_after(kLongest - kMillisecond), first + 1) << "one each second";
  clock_.advance(kMillisecond);
  EXPECT_TRUE(eventually([&] { return started() == first + 2; }));
  on_loop([this] { tickets_.clear(); });
}

TEST_F(CallAdmissionTest, GivesNoMoreToWhoLeavesMuchUnread) {
  on_loop([&] {
    const Client client = connect();
    make_known(client, 1000);
    EXPECT_EQ(call(client, 1), 1U);
    tickets_.back().set_response(CallAdmission::kMostUnreadBytes);
    EXPECT_EQ(call(client, 5), 1U);
    EXPECT_EQ(client->load().response_bytes, CallAdmission::kMostUnreadBytes);
    answer_first();
    EXPECT_EQ(started_, 6U);
    EXPECT_EQ(client->load().response_bytes, 0U);
    tickets_.clear();
  });
}

TEST_F(CallAdmissionTest, RefusesWhatIsTooMuchToWait) {
  on_loop([&] {
    admission_.set_memory_short(true);
    const Client client = connect();
    const Client other = connect();
    call(client, CallAdmission::kWaitingOfAll + CallAdmission::kFirstCalls);
    EXPECT_EQ(refused_, 0U);
    call(client, 10);
    EXPECT_EQ(refused_, 10U);
    EXPECT_EQ(client->load().answered, 0U) << "those were none";
    call(other, CallAdmission::kWaitingOfAll / 2 + CallAdmission::kFirstCalls);
    EXPECT_EQ(refused_, 10U) << "each has half of them";
    call(other, 1);
    EXPECT_EQ(refused_, 11U);
    tickets_.clear();
  });
}

TEST_F(CallAdmissionTest, RefusesNothingWhileFewWaitInAll) {
  on_loop([&] {
    admission_.set_memory_short(true);
    std::vector<Client> others;
    for (int i = 0; i < 100; ++i) call(others.emplace_back(connect()), CallAdmission::kFirstCalls + 1);
    const Client client = connect();
    call(client, 5 * CallAdmission::kLeastWaiting);
    EXPECT_EQ(refused_, 0U);
    tickets_.clear();
  });
}

TEST_F(CallAdmissionTest, KnowsForHowLongMostIsUnread) {
  on_loop([&] {
    const Client client = connect();
    CallTicket& large = arrive(client);
    large.set_response(1 << 20);
    CallTicket& rest = arrive(client);
    rest.set_response(1);
    clock_.advance(kLongest);
    CallTicket& small = arrive(client);
    small.set_response(100);
    small.end(/*answered=*/true);
    EXPECT_GE(client->load().unread_for, kLongest / 2) << "the small answer does not make up for the large one";
    large.end(/*answered=*/true);
    EXPECT_LE(client->load().unread_for, kLongest / 2) << "most has been read now";
    tickets_.clear();
  });
}

TEST_F(CallAdmissionTest, DoesNotStartWhatHasEnded) {
  on_loop([&] {
    const Client client = connect();
    call(client, CallAdmission::kFirstCalls);
    call(client, 2);
    tickets_.back().end(/*answered=*/false);
    tickets_.pop_back();
    answer_first(CallAdmission::kFirstCalls);
    EXPECT_EQ(started_, CallAdmission::kFirstCalls + 1);
    tickets_.clear();
    EXPECT_EQ(client->load().bytes, 0U);
  });
}

TEST_F(CallAdmissionTest, KnowsWhatCallsTakeUp) {
  on_loop([&] {
    const Client client = connect();
    CallTicket& ticket = arrive(client, 1000);
    EXPECT_EQ(client->load().bytes, CallAdmission::kWaitingBytes + 1000);
    ticket.wait_for_turn([] {});
    EXPECT_EQ(client->load().bytes, CallAdmission::kWaitingBytes + CallAdmission::kGoingBytes + 1000);
    ticket.set_response(5000);
    EXPECT_EQ(client->load().bytes, CallAdmission::kWaitingBytes + CallAdmission::kGoingBytes + 6000);
    ticket.set_response(0);
    ticket.set_response(300);
    EXPECT_EQ(client->load().response_bytes, 300U);
    ticket.end(/*answered=*/true);
    ticket.end(/*answered=*/true);
    EXPECT_EQ(client->load().bytes, 0U);
    EXPECT_EQ(client->load().answered, 1U);
    EXPECT_EQ(client->load().arrived, 1U);
    tickets_.clear();
  });
}

TEST_F(CallAdmissionTest, RefusesStreamsThatAreTooMany) {
  on_loop([&] {
    const Client client = connect();
    for (std::size_t i = 0; i < CallAdmission::kStreamsOfAll; ++i) {
      ASSERT_TRUE(tickets_.emplace_back(admission_, client).begin_stream());
    }
    EXPECT_FALSE(CallTicket(admission_, client).begin_stream());
    EXPECT_TRUE(CallTicket(admission_, connect()).begin_stream()) << "others are not meant";
    tickets_.front().end(/*answered=*/true);
    EXPECT_TRUE(CallTicket(admission_, client).begin_stream());
    tickets_.clear();
    EXPECT_EQ(client->load().bytes, 0U);
  });
}

TEST_F(CallAdmissionTest, KnowsHowManyRequestsAreAwaited) {
  on_loop([&] {
    const Client client = connect();
    CallTicket unary(admission_, client);
    CallTicket stream(admission_, client);
    CallTicket cancelled(admission_, client);
    EXPECT_EQ(client->load().awaited_requests, 3U);
    unary.begin(10);
    unary.begin(10);
    EXPECT_EQ(client->load().awaited_requests, 2U);
    stream.begin_stream();
    EXPECT_EQ(client->load().awaited_requests, 1U);
    cancelled.end(/*answered=*/false);
    stream.end(/*answered=*/true);
    EXPECT_EQ(client->load().awaited_requests, 0U);
  });
}

TEST_F(CallAdmissionTest, FindsClientsByTheNameOfTheirConnection) {
  Client client = admission_.open(17);
  EXPECT_EQ(admission_.find("unix-abstract:topolet-client-17"), client);
  EXPECT_EQ(admission_.find("unix-abstract:topolet-client-18"), nullptr);
  EXPECT_EQ(admission_.find("unix:"), nullptr);
  client.reset();
  EXPECT_EQ(admission_.find("unix-abstract:topolet-client-17"), nullptr) << "nobody holds it";
  // Those that are gone are forgotten some time.
  for (ino_t i = 100; i < 1000; ++i) admission_.open(i);
  const Client last = admission_.open(1000);
  EXPECT_EQ(admission_.find("unix-abstract:topolet-client-1000"), last);
}

TEST_F(CallAdmissionTest, HasNoSayWithoutAClient) {
  on_loop([this] {
    CallTicket ticket(admission_, nullptr);
    ticket.begin(100);
    EXPECT_TRUE(ticket.wait_for_turn([this] { ++started_; }));
    EXPECT_EQ(started_, 1U);
    ticket.set_response(5);
    ticket.end(/*answered=*/true);
    EXPECT_TRUE(CallTicket(admission_, nullptr).begin_stream());
  });
}

}  // namespace
}  // namespace topolet::cri
