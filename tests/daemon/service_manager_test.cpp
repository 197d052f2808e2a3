#include "core/daemon/service_manager.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <string>

#include "core/base/unique_fd.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::daemon {
namespace {

using ::testing::HasSubstr;

/// A child that finds `socket` as its descriptor 3, as systemd starts it; its exit code is what `run` gives.
int run_activated(const UniqueFd& socket, const std::function<int()>& run) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(socket.get(), 3);
    ::setenv("LISTEN_PID", std::to_string(::getpid()).c_str(), 1);
    ::setenv("LISTEN_FDS", "1", 1);
    ::_exit(run());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class ServiceManager : public ::testing::Test {
 protected:
  ServiceManager() : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof(address.sun_path) - 1);
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(socket_.get(), 8), 0);
  }

  TempDir directory_;
  std::string path_ = directory_.file("topolet.sock");
  UniqueFd socket_;
};

TEST_F(ServiceManager, HandsOverTheSocketOnItsPath) {
  EXPECT_EQ(run_activated(socket_,
                          [&] {
                            const Result<int> fd = take_inherited_socket(path_);
                            return fd.has_value() && ::getenv("LISTEN_FDS") == nullptr ? *fd : 100;
                          }),
            3);
}

TEST_F(ServiceManager, IsToldWhenItsSocketIsOnAnotherPath) {
  EXPECT_EQ(run_activated(socket_,
                          [&] {
                            const Result<int> fd = take_inherited_socket("/elsewhere.sock");
                            if (fd.has_value()) return 100;
                            EXPECT_THAT(fd.error().message, HasSubstr("/elsewhere.sock"));
                            return ::testing::Test::HasFailure() ? 101 : 0;
                          }),
            0);
}

TEST_F(ServiceManager, MayBeAbsent) { EXPECT_EQ(*take_inherited_socket(path_), -1); }

/// The messages that a listening service manager receives, in order.
class Notifications : public ::testing::Test {
 protected:
  Notifications() : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    const std::string path = directory_.file("notify");
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    ::setenv("NOTIFY_SOCKET", path.c_str(), 1);
  }
  ~Notifications() override { ::unsetenv("NOTIFY_SOCKET"); }

  std::string next() {
    std::array<char, 1024> message{};
    const ssize_t size = ::recv(socket_.get(), message.data(), message.size(), MSG_DONTWAIT);
    return size < 0 ? "nothing" : std::string(message.data(), static_cast<std::size_t>(size));
  }

  TempDir directory_;
  UniqueFd socket_;
};

TEST_F(Notifications, TellWhatTheProtocolHasWordsFor) {
  EXPECT_TRUE(is_notified());
  notify_reloading();
  EXPECT_THAT(next(), ::testing::MatchesRegex("RELOADING=1\nMONOTONIC_USEC=[0-9]+"));
  notify_ready();
  EXPECT_EQ(next(), "READY=1");
  notify_alive();
  EXPECT_EQ(next(), "WATCHDOG=1");
  notify_stopping();
  EXPECT_EQ(next(), "STOPPING=1");
}

TEST_F(Notifications, CannotBeForgedByAStatus) {
  notify_status("damaged: no such page\nREADY=1");
  EXPECT_EQ(next(), "STATUS=damaged: no such page\\nREADY=1");
}

TEST_F(Notifications, HaveAPeriodOnlyWhereThereIsAWatchdog) {
  EXPECT_EQ(watchdog_period(), std::nullopt);
  ::setenv("WATCHDOG_USEC", "30000000", 1);
  EXPECT_EQ(watchdog_period(), std::chrono::seconds(30));
  ::unsetenv("WATCHDOG_USEC");
}

}  // namespace
}  // namespace topolet::daemon
