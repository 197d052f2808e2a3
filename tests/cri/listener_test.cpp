#include "core/cri/socket/listener.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/base_sink.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <thread>
#include <vector>

#include "core/base/log.hpp"
#include "core/base/mutex.hpp"
#include "tests/cri/proxy_rig.hpp"

namespace topolet::testing {
namespace {

using ::testing::HasSubstr;

UniqueFd stream_socket() { return UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)); }

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  return address;
}

UniqueFd bind_to(const std::string& path) {
  UniqueFd socket = stream_socket();
  const sockaddr_un address = address_of(path);
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  return socket;
}

/// Connected, or empty.
UniqueFd connect_to(const std::string& path) {
  UniqueFd socket = stream_socket();
  const sockaddr_un address = address_of(path);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) return {};
  return socket;
}

/// True when the other side has closed.
bool is_closed(const UniqueFd& connection) {
  char byte = 0;
  return ::read(connection.get(), &byte, 1) <= 0;
}

bool exists(const std::string& path) {
  struct stat file {};
  return ::lstat(path.c_str(), &file) == 0;
}

mode_t mode_of(const std::string& path) {
  struct stat file {};
  EXPECT_EQ(::stat(path.c_str(), &file), 0);
  return file.st_mode & 07777;
}

/// Something that happens on another thread.
class Signal {
 public:
  void add() {
    MutexLock lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  /// False after a minute.
  bool wait_for(std::size_t count) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    MutexLock lock(mutex_);
    while (count_ < count) {
      if (!changed_.wait_until(mutex_, give_up)) return false;
    }
    return true;
  }
  std::size_t count() {
    MutexLock lock(mutex_);
    return count_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::size_t count_ TOPOLET_GUARDED_BY(mutex_) = 0;
};

/// Signals every line that is logged.
class SignallingSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit SignallingSink(Signal& signal) : signal_(signal) {}

 private:
  void sink_it_(const spdlog::details::log_msg&) override { signal_.add(); }
  void flush_() override {}

  Signal& signal_;
};

/// Keeps what a listener hands out.
class Served {
 public:
  cri::Listener::OnConnection keep() {
    return [this](UniqueFd connection) {
      connections_.push_back(std::move(connection));
      arrived_.add();
      return nullptr;
    };
  }
  bool wait_for(std::size_t count) { return arrived_.wait_for(count); }
  std::size_t count() { return arrived_.count(); }

 private:
  Signal arrived_;
  std::vector<UniqueFd> connections_;  // the listener's thread's
};

class ListenerTest : public ::testing::Test {
 protected:
  Result<std::unique_ptr<cri::Listener>> open(cri::ListenerOptions options = {}) {
    options.path = path_;
    return cri::Listener::open(options, *log_);
  }

  Signal warned_;
  std::shared_ptr<Log> log_ = std::make_shared<Log>("test", std::make_shared<SignallingSink>(warned_));
  TempDir directory_;
  std::string path_ = directory_.file("topolet.sock");
  Served served_;
};

TEST_F(ListenerTest, HandsOutNonBlockingConnections) {
  auto listener = open();
  ASSERT_TRUE(listener.has_value()) << listener.error().message;
  (*listener)->start([&, keep = served_.keep()](UniqueFd connection) {
    EXPECT_NE(::fcntl(connection.get(), F_GETFL) & O_NONBLOCK, 0);
    EXPECT_NE(::fcntl(connection.get(), F_GETFD) & FD_CLOEXEC, 0);
    return keep(std::move(connection));
  });
  const UniqueFd first = connect_to(path_);
  const UniqueFd second = connect_to(path_);
  EXPECT_TRUE(served_.wait_for(2));
}

TEST_F(ListenerTest, HasNothingReadOfClientsThatHaveClosed) {
  auto listener = open({.max_memory_bytes = std::size_t{1} << 40});
  ASSERT_TRUE(listener.has_value()) << listener.error().message;
  std::atomic<int> connection_fd = -1;
  (*listener)->start([&, keep = served_.keep()](UniqueFd connection) {
    connection_fd = connection.get();
    return keep(std::move(connection));
  });
  const auto wait_for_open = [&](std::size_t count) {
    while ((*listener)->open_connections() != count) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  UniqueFd client = connect_to(path_);
  ASSERT_EQ(::write(client.get(), "calls", 5), 5);
  wait_for_open(1);
  client.reset();
  wait_for_open(0);
  std::array<char, 8> bytes{};
  iovec piece{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  EXPECT_EQ(::recvmsg(connection_fd, &message, 0), 0);
}

TEST_F(ListenerTest, RunsWhatIsPostedInItsOrderWhileItAccepts) {
  auto listener = open();
  ASSERT_TRUE(listener.has_value()) << listener.error().message;
  std::string order;
  Signal ran;
  (*listener)->post([&] { order += 'a'; });
  (*listener)->start(served_.keep());
  (*listener)->post([&] {
    order += 'b';
    (*listener)->post([&] {
      order += 'c';
      ran.add();
    });
  });
  const UniqueFd client = connect_to(path_);
  EXPECT_TRUE(ran.wait_for(1));
  EXPECT_TRUE(served_.wait_for(1));
  (*listener)->stop();
  EXPECT_EQ(order, "abc");
  (*listener)->post([&] { order += 'd'; });
  EXPECT_EQ(order, "abc") << "dropped";
}

TEST_F(ListenerTest, SaysWhoMayUseTheDirectory) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user for a while";
  ASSERT_EQ(::seteuid(65534), 0);
  const auto listener = open();
  ASSERT_EQ(::seteuid(0), 0);
  ASSERT_FALSE(listener.has_value());
  EXPECT_THAT(listener.error().message, HasSubstr("Permission denied; run as root, or choose another socket"));
}

TEST_F(ListenerTest, IsOpenToItsGroupOnlyWhateverTheUmask) {
  const mode_t before = ::umask(0);
  const auto listener = open();
  ::umask(before);
  ASSERT_TRUE(listener.has_value()) << listener.error().message;
  EXPECT_EQ(mode_of(path_), 0660U);
}

TEST_F(ListenerTest, CopiesModeAndOwnerOfTheRuntimesSocket) {
  const std::string runtime_path = directory_.file("runtime.sock");
  const UniqueFd runtime = bind_to(runtime_path);
  ASSERT_EQ(::chmod(runtime_path.c_str(), 0640), 0);
  const bool root = ::geteuid() == 0;
  if (root) {
    ASSERT_EQ(::chown(runtime_path.c_str(), 0, 12345), 0);
  }
  const auto listener = open({.path = {}, .copy_access_from = runtime_path});
  ASSERT_TRUE(listener.has_value()) << listener.error().message;
  EXPECT_EQ(mode_of(path_), 0640U);
  struct stat file {};
  ASSERT_EQ(::stat(path_.c_str(), &file), 0);
  EXPECT_EQ(file.st_gid, root ? 12345U : ::getegid());
}

TEST_F(ListenerTest, FallsBackToItsOwnModeWithoutARuntimeSocket) {
  const auto listener = open({.path = {}, .mode = 0600, .copy_access_from = directory_.file("absent.sock")});
  ASSERT_TRUE(listener.has_value()) << listener.error().message;
  EXPECT_EQ(mode_of(path_), 0600U);
}

TEST_F(ListenerTest, ReplacesASocketThatADeadProcessLeft) {
  bind_to(path_).reset();
  ASSERT_TRUE(exists(path_));
  auto listener = open();
  ASSERT_TRUE(listener.has_value()) << listener.error().message;
  (*listener)->start(served_.keep());
  const UniqueFd connection = connect_to(path_);
  EXPECT_TRUE(served_.wait_for(1));
}

TEST_F(ListenerTest, RefusesToRunBesideAnotherTopoletd) {
  const auto first = open();
  ASSERT_TRUE(first.has_value());
  const auto second = open();
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(second.error().message, HasSubstr("another topoletd serves " + path_));
  EXPECT_TRUE(connect_to(path_));
}

TEST_F(ListenerTest, RefusesToReplaceALiveSocketOfAnotherProcess) {
  const UniqueFd other = bind_to(path_);
  ASSERT_EQ(::listen(other.get(), 1), 0);
  const auto listener = open();
  ASSERT_FALSE(listener.has_value());
  EXPECT_THAT(listener.error().message, HasSubstr("listens on " + path_));
  EXPECT_TRUE(connect_to(path_));
}

TEST_F(ListenerTest, TakesAFullBacklogForALiveProcess) {
  const UniqueFd other = bind_to(path_);
  ASSERT_EQ(::listen(other.get(), 0), 0);
  const UniqueFd waiting = connect_to(path_);
  const auto listener = open();
  ASSERT_FALSE(listener.has_value());
  EXPECT_THAT(listener.error().message, HasSubstr("listens on " + path_));
}

TEST_F(ListenerTest, RefusesToReplaceAFileThatIsNoSocket) {
  std::ofstream(path_) << "precious";
  const auto listener = open();
  ASSERT_FALSE(listener.has_value());
  EXPECT_THAT(listener.error().message, HasSubstr("is not a socket"));
  EXPECT_TRUE(exists(path_));
}

TEST_F(ListenerTest, NamesAMissingDirectoryAndAPathThatIsTooLong) {
  path_ = directory_.file("absent/topolet.sock");
  EXPECT_THAT(open().error().message, HasSubstr(path_));
  path_ = directory_.file(std::string(120, 'x'));
  EXPECT_EQ(open().error().code, Code::kInvalidArgument);
}

TEST_F(ListenerTest, RemovesItsSocketAtTheEndAndCanBeOpenedAgain) {
  auto listener = open();
  ASSERT_TRUE(listener.has_value());
  (*listener)->start(served_.keep());
  (*listener)->stop();
  EXPECT_FALSE(exists(path_));
  EXPECT_TRUE(open().has_value());
}

TEST_F(ListenerTest, LeavesASocketThatIsNotItsOwn) {
  const auto listener = open();
  ASSERT_TRUE(listener.has_value());
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  const UniqueFd other = bind_to(path_);
  (*listener)->stop();
  EXPECT_TRUE(exists(path_));
}

TEST_F(ListenerTest, TakesOverAnInheritedSocketAndLeavesItsFile) {
  UniqueFd inherited = bind_to(path_);
  ASSERT_EQ(::listen(inherited.get(), 8), 0);
  {
    auto listener = open({.path = {}, .copy_access_from = {}, .inherited_fd = inherited.release()});
    ASSERT_TRUE(listener.has_value()) << listener.error().message;
    (*listener)->start(served_.keep());
    const UniqueFd connection = connect_to(path_);
    EXPECT_TRUE(served_.wait_for(1));
  }
  EXPECT_TRUE(exists(path_));
}

TEST_F(ListenerTest, RefusesAnInheritedDescriptorThatDoesNotListen) {
  UniqueFd inherited = bind_to(path_);
  const auto listener = open({.path = {}, .copy_access_from = {}, .inherited_fd = inherited.release()});
  ASSERT_FALSE(listener.has_value());
  EXPECT_THAT(listener.error().message, HasSubstr("inherited"));
}

TEST_F(ListenerTest, ClosesConnectionsBeyondItsLimitAndTakesNewOnesWhenOthersEnd) {
  auto listener = open({.path = {}, .copy_access_from = {}, .max_connections = 2});
  ASSERT_TRUE(listener.has_value());
  (*listener)->start(served_.keep());
  UniqueFd first = connect_to(path_);
  const UniqueFd second = connect_to(path_);
  ASSERT_TRUE(served_.wait_for(2));
  EXPECT_TRUE(is_closed(connect_to(path_)));
  EXPECT_EQ(served_.count(), 2U);

  first.reset();
  // The end of the first is noticed by the accepting thread, some time.
  std::vector<UniqueFd> attempts;
  while (served_.count() < 3) attempts.push_back(connect_to(path_));
  for (int further = 0; further < 10; ++further) EXPECT_TRUE(is_closed(connect_to(path_)));
  EXPECT_EQ(served_.count(), 3U);
}

TEST_F(ListenerTest, MakesRoomForAnotherProcessAtTheCostOfTheLargest) {
  auto listener = open({.path = {}, .copy_access_from = {}, .max_connections = 3});
  ASSERT_TRUE(listener.has_value());
  (*listener)->start(served_.keep());
  const UniqueFd first = connect_to(path_);
  const UniqueFd second = connect_to(path_);
  const UniqueFd third = connect_to(path_);
  ASSERT_TRUE(served_.wait_for(3));
  const pid_t other = ::fork();
  if (other == 0) {
    const UniqueFd connection = connect_to(path_);
    ::pause();
  }
  EXPECT_TRUE(served_.wait_for(4));
  EXPECT_TRUE(is_closed(third));
  EXPECT_TRUE(is_closed(connect_to(path_))) << "this process still holds the most";
  ::kill(other, SIGKILL);
  ::waitpid(other, nullptr, 0);
}

TEST_F(ListenerTest, AcceptsAgainAfterTheProcessRanOutOfDescriptors) {
  auto listener = open();
  ASSERT_TRUE(listener.has_value());
  (*listener)->start(served_.keep());
  const UniqueFd client = stream_socket();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 3;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const sockaddr_un address = address_of(path_);
  const int connected = ::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  EXPECT_TRUE(warned_.wait_for(1));
  const std::size_t served_without_descriptors = served_.count();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(connected, 0);
  EXPECT_EQ(served_without_descriptors, 0U);
  EXPECT_TRUE(served_.wait_for(1));
}

}  // namespace
}  // namespace topolet::testing
