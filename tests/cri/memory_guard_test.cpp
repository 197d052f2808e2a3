#include "core/cri/socket/memory_guard.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <list>
#include <vector>

#include "core/base/log.hpp"
#include "core/base/resident_memory.hpp"
#include "tests/cri/loop_rig.hpp"

namespace topolet::cri {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// One socket's guard, and whom it has ended.
class GuardedSocket {
 public:
  GuardedSocket(std::size_t max_bytes, std::shared_ptr<MemoryClaims> claims)
      : guard_(max_bytes, connections_,
               {.disconnect =
                    [this](int fd) {
                      ended_.push_back(fd);
                      connections_.remove(fd);
                    },
                .on_memory_short = {}},
               std::move(claims), *log_) {}

  int add(std::shared_ptr<ClientCalls> calls) {
    UniqueFd fd(::eventfd(0, EFD_CLOEXEC));
    const int number = fd.get();
    connections_.add(std::move(fd), 7);
    connections_.set_calls(number, std::move(calls));
    return number;
  }
  std::vector<int> ended_by_a_look() {
    ::eventfd_write(guard_.event_fd(), 1);
    guard_.run();
    return ended_;
  }

 private:
  const std::shared_ptr<Log> log_ = make_silent_log();
  Connections connections_;
  std::vector<int> ended_;
  MemoryGuard guard_;
};

class TwoSockets : public ::testing::Test {
 protected:
  /// Calls that count as so many bytes, which nobody has.
  std::shared_ptr<ClientCalls> calls_of(std::size_t bytes) {
    const auto client = admission_.open(++last_connection_);
    tickets_.emplace_back(admission_, client).begin(bytes);
    return client;
  }

  static constexpr std::size_t kMebibyte = 1 << 20;

  testing::LoopRig loop_;
  CallAdmission admission_{loop_.loop};
  ino_t last_connection_ = 0;
  std::list<CallTicket> tickets_;
  const std::shared_ptr<MemoryClaims> claims_ = std::make_shared<MemoryClaims>();
  /// This process has more.
  const std::size_t max_bytes_ = resident_bytes() / 2;
  GuardedSocket control_{max_bytes_, claims_};
  GuardedSocket kubelets_{max_bytes_, claims_};
};

TEST_F(TwoSockets, EndWhoTakesUpMostOfAll) {
  const int heavy = control_.add(calls_of(1024 * kMebibyte));
  const int light = kubelets_.add(calls_of(kMebibyte));
  EXPECT_THAT(control_.ended_by_a_look(), ElementsAre(heavy));
  EXPECT_THAT(kubelets_.ended_by_a_look(), IsEmpty()) << "what was freed on the other one is enough";
  EXPECT_EQ(kubelets_.ended_by_a_look().size(), 0U) << light;
}

TEST_F(TwoSockets, WaitForTheOneThatHasTheHeavierConnection) {
  const int light = kubelets_.add(calls_of(kMebibyte));
  const int other = 0;
  claims_->tell(&other, {.heaviest = 1024.0 * kMebibyte}, std::chrono::steady_clock::now());
  EXPECT_THAT(kubelets_.ended_by_a_look(), IsEmpty());
  claims_->tell(&other, {.heaviest = 1024.0}, std::chrono::steady_clock::now());
  EXPECT_THAT(kubelets_.ended_by_a_look(), ElementsAre(light));
}

TEST_F(TwoSockets, DoNotWaitForOneThatHasGoneOrIsSilent) {
  const int light = kubelets_.add(calls_of(kMebibyte));
  const int other = 0;
  claims_->tell(&other, {.heaviest = 1024.0 * kMebibyte},
                std::chrono::steady_clock::now() - std::chrono::milliseconds(1001));
  EXPECT_THAT(kubelets_.ended_by_a_look(), ElementsAre(light));
  const int next = kubelets_.add(calls_of(512 * kMebibyte));
  claims_->tell(&other, {.heaviest = 1024.0 * kMebibyte}, std::chrono::steady_clock::now());
  claims_->forget(&other);
  EXPECT_THAT(kubelets_.ended_by_a_look(), ElementsAre(light, next));
}

}  // namespace
}  // namespace topolet::cri
