#include "core/daemon/watchdog.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ringbuffer_sink.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/base/log.hpp"
#include "core/base/mutex.hpp"
#include "core/base/unique_fd.hpp"
#include "core/cri/socket/listener.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::daemon {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A loop that turns only when the test says so.
class HandTurnedLoop {
 public:
  Watchdog::Loop as(std::string name) {
    return {std::move(name), "no call goes on", [this](std::function<void()> work) { post(std::move(work)); }};
  }
  /// Waits until something is queued, and takes it.
  std::function<void()> take() TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (queue_.empty()) changed_.wait(mutex_);
    std::function<void()> first = std::move(queue_.front());
    queue_.erase(queue_.begin());
    return first;
  }
  std::size_t queued() TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return queue_.size();
  }

 private:
  void post(std::function<void()> work) TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    queue_.push_back(std::move(work));
    changed_.notify_all();
  }

  Mutex mutex_;
  CondVar changed_;
  std::vector<std::function<void()>> queue_ TOPOLET_GUARDED_BY(mutex_);
};

Watchdog::Loop turning_loop() {
  return {"one that turns", "", [](const std::function<void()>& work) { work(); }};
}

class WatchdogTest : public ::testing::Test {
 protected:
  std::unique_ptr<Watchdog> watch(std::vector<Watchdog::Loop> loops, std::chrono::milliseconds warn_after) {
    return std::make_unique<Watchdog>(
        Watchdog::Options{.every = std::chrono::milliseconds(1), .warn_after = warn_after}, std::move(loops),
        [this] { rounds_.fetch_add(1); }, log_);
  }

  HandTurnedLoop engine_;
  HandTurnedLoop proxy_;
  std::atomic<int> rounds_ = 0;
  const std::shared_ptr<spdlog::sinks::ringbuffer_sink_mt> said_ =
      std::make_shared<spdlog::sinks::ringbuffer_sink_mt>(100);
  Log log_{"test", said_};
};

TEST_F(WatchdogTest, TellsOnlyWhenEveryLoopHasTurned) {
  const auto watchdog = watch({engine_.as("engine"), turning_loop(), proxy_.as("proxy")}, std::chrono::hours(1));
  for (int round = 0; round < 3; ++round) {
    const std::function<void()> last = proxy_.take();
    engine_.take()();
    EXPECT_EQ(rounds_.load(), round);
    last();
  }
  // The next round begins after the third was told of.
  engine_.take();
  EXPECT_EQ(rounds_.load(), 3);
}

TEST_F(WatchdogTest, NamesALoopThatStandsStillOnceAndQueuesNothingMoreOnIt) {
  const auto watchdog = watch({turning_loop(), engine_.as("the engine's loop")}, std::chrono::milliseconds(1));
  while (said_->last_formatted().empty()) std::this_thread::yield();
  EXPECT_THAT(said_->last_formatted(),
              ElementsAre(AllOf(HasSubstr("the engine's loop has not turned"), HasSubstr(" s: no call goes on; "))));
  EXPECT_EQ(engine_.queued(), 1U);
  EXPECT_EQ(rounds_.load(), 0);
  engine_.take()();
  engine_.take();
  EXPECT_EQ(rounds_.load(), 1) << "it goes on";
}

TEST_F(WatchdogTest, NoticesAListenerThatStandsStill) {
  const TempDir directory;
  const std::string path = directory.file("topolet.sock");
  auto listener = cri::Listener::open({.path = path}, log_);
  ASSERT_TRUE(listener.has_value()) << listener.error().message;
  std::promise<void> stands;
  std::promise<void> may_go_on;
  (*listener)->start([&](const UniqueFd&) {
    stands.set_value();
    may_go_on.get_future().wait();
    return nullptr;
  });
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const UniqueFd client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  stands.get_future().wait();
  const Watchdog::Loop loop{"the listener's loop", "nobody can connect",
                            [&listener](std::function<void()> work) { (*listener)->post(std::move(work)); }};
  const auto watchdog = watch({turning_loop(), loop}, std::chrono::milliseconds(1));
  while (said_->last_formatted().empty()) std::this_thread::yield();
  EXPECT_THAT(said_->last_formatted(), ElementsAre(AllOf(HasSubstr("the listener's loop has not turned"),
                                                         HasSubstr(" s: nobody can connect; "))));
  EXPECT_EQ(rounds_.load(), 0);
  may_go_on.set_value();
  while (rounds_.load() < 3) std::this_thread::yield();
}

TEST_F(WatchdogTest, EndsWhileALoopStandsStill) {
  auto watchdog = watch({engine_.as("engine")}, std::chrono::hours(1));
  const std::function<void()> late = engine_.take();
  watchdog.reset();
  late();
  EXPECT_EQ(rounds_.load(), 0);
}

}  // namespace
}  // namespace topolet::daemon
