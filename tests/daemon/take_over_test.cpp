#include "core/daemon/take_over.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <future>
#include <map>
#include <string>

#include "core/base/unix_address.hpp"
#include "core/cri/socket/listener_socket.hpp"

namespace topolet::daemon {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class TakeOverWords : public ::testing::Test {
 protected:
  TakeOverWords() {
    std::string path = (std::filesystem::temp_directory_path() / "topolet-take-over-XXXXXX").string();
    dir_ = ::mkdtemp(path.data());
    options_.listen = dir_ / "topolet.sock";
    options_.control = dir_ / "control.sock";
    options_.state_dir = dir_ / "state";
  }
  ~TakeOverWords() override { std::filesystem::remove_all(dir_); }

  static void say(int connection, const std::string& words) {
    ASSERT_EQ(::send(connection, words.data(), words.size(), MSG_NOSIGNAL), static_cast<ssize_t>(words.size()));
    ::shutdown(connection, SHUT_WR);
  }

  std::string good_request() const {
    return R"({"take-over":1,"daemon.listen":")" + options_.listen + R"(","daemon.control":")" + options_.control +
           R"(","daemon.state-dir":")" + options_.state_dir.string() + "\"}\n";
  }

  /// Why one who asks in these words is refused; empty if it is not.
  std::string refusal(const std::string& words) const {
    auto socket = TakeOverSocket::open(take_over_path(options_));
    EXPECT_TRUE(socket);
    const UniqueFd asking(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto address = unix_address(take_over_path(options_));
    EXPECT_EQ(::connect(asking.get(), as_sockaddr(*address), sizeof(sockaddr_un)), 0);
    std::optional<Successor> successor = (*socket)->accept();
    if (!successor) return "not accepted";
    say(asking.get(), words);
    const Status read = successor->read_request(options_);
    return read ? "" : read.error().message;
  }

  /// Returns a successor's verdict on a topoletd that answers in these words.
  std::string verdict_on(const std::string& words) const {
    const auto listening = cri::listen_on(take_over_path(options_), {.mode = 0600});
    EXPECT_TRUE(listening);
    auto answered = std::async(std::launch::async, [&] {
      pollfd wait{listening->get(), POLLIN, 0};
      EXPECT_EQ(::poll(&wait, 1, -1), 1);
      UniqueFd asking(::accept4(listening->get(), nullptr, nullptr, SOCK_CLOEXEC));
      EXPECT_GT(::send(asking.get(), words.data(), words.size(), MSG_NOSIGNAL), 0);
      // Until it has made up its mind.
      std::array<char, 4096> request{};
      while (::recv(asking.get(), request.data(), request.size(), 0) > 0) {
      }
    });
    const auto asked = Predecessor::ask(options_);
    std::filesystem::remove(take_over_path(options_));
    return asked ? "taken over" : asked.error().message;
  }

  std::filesystem::path dir_;
  config::DaemonOptions options_;
};

TEST_F(TakeOverWords, ARequestOfAnotherShapeIsRefused) {
  EXPECT_EQ(refusal(good_request()), "");
  const std::map<std::string, std::string> refusals = {
      {"null\n", "said what is no JSON object: 'null'"},
      {"7\n", "said what is no JSON object: '7'"},
      {"\"take-over\"\n", "said what is no JSON object"},
      {"[1,2]\n", "said what is no JSON object: '[1,2]'"},
      {std::string(4000, '[') + "\n", "said what is no JSON object"},
      {"\n", "said what is no JSON object: ''"},
      {std::string("\0\xff\xfe\n", 4), "said what is no JSON object: '?"},
      {R"({"take-over":1)", "did not end its line: '{\"take-over\":1'"},
      {std::string(17 << 10, 'x'), "said more than 16384 bytes: 'xxx"},
      {"", "it said nothing"},
      {"{}\n", "takes over in another way"},
      {R"({"take-over":"1"})"
       "\n",
       R"(but '{"take-over":"1"}': it is of a version that takes over in another way)"},
      {R"({"take-over":2})"
       "\n",
       "takes over in another way"},
      {R"({"take-over":true})"
       "\n",
       "takes over in another way"},
      {R"({"take-over":1.5})"
       "\n",
       "takes over in another way"},
      {R"({"take-over":18446744073709551615})"
       "\n",
       "takes over in another way"},
      {R"({"take-over":{"versions":[1,2]}})"
       "\n",
       "takes over in another way"},
      {R"({"take-over":1,"daemon.listen":7})"
       "\n",
       "daemon.control is not given there and "},
      {R"({"take-over":1,"daemon.control":null,"daemon.watch":[]})"
       "\n",
       "daemon.control is not given there and "},
  };
  for (const auto& [words, why] : refusals) EXPECT_THAT(refusal(words), HasSubstr(why)) << words.substr(0, 100);
}

TEST_F(TakeOverWords, AnAnswerOfAnotherShapeIsToldToWhoeverStarts) {
  const std::map<std::string, std::string> verdicts = {
      {"null\n", "did not hand over: it said what is no JSON object: 'null'"},
      {"[]\n", "did not hand over: it said what is no JSON object: '[]'"},
      {std::string(17 << 10, 'x'), "did not hand over: it said more than 16384 bytes"},
      {"{}\n", "did not hand over its sockets, but said '{}'"},
      {R"({"listen":"1","control":1})"
       "\n",
       "did not hand over its sockets, but said "},
      {R"({"listen":1,"control":1})"
       "\n",
       "did not hand over its sockets, but said "},
      {R"({"listen":1e9})"
       "\n",
       "did not hand over its sockets, but said "},
      {R"({"refused":"another version"})"
       "\n",
       "does not hand over: another version"},
      {R"({"refused":{"code":7}})"
       "\n",
       "does not hand over: it gives no reason"},
  };
  for (const auto& [words, verdict] : verdicts) {
    const std::string said = verdict_on(words);
    EXPECT_THAT(said, StartsWith("the topoletd that runs (process ")) << words.substr(0, 100);
    EXPECT_THAT(said, HasSubstr(verdict)) << words.substr(0, 100);
  }
}

/// Earlier versions refuse more descriptors than they know of.
TEST_F(TakeOverWords, TheLocksOfTheRuntimeGoToWhoeverAsksForThem) {
  EXPECT_EQ(refusal(good_request()), "");
  auto socket = TakeOverSocket::open(take_over_path(options_));
  ASSERT_TRUE(socket);
  for (const int locks : {0, 2}) {
    auto asked = std::async(std::launch::async, [&] { return Predecessor::ask(options_); });
    pollfd wait{(*socket)->fd(), POLLIN, 0};
    ASSERT_EQ(::poll(&wait, 1, -1), 1);
    std::optional<Successor> successor = (*socket)->accept();
    ASSERT_TRUE(successor);
    ASSERT_TRUE(successor->read_request(options_));
    EXPECT_TRUE(successor->wants_runtime_locks());
    const auto any = [] { return UniqueFd(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)); };
    HandedOver sockets{{any(), any()}, {any(), any()}, {any(), any()}};
    for (int lock = 0; lock < locks; ++lock) sockets.runtime_locks.push_back(any());
    ASSERT_TRUE(successor->hand_over(sockets));
    auto predecessor = asked.get();
    ASSERT_TRUE(predecessor && *predecessor);
    EXPECT_EQ((*predecessor)->take_sockets().runtime_locks.size(), static_cast<std::size_t>(locks));
  }
}

/// With all that there can be besides.
TEST_F(TakeOverWords, TheConnectionToTheRuntimesNriGoesToWhoeverAsksForIt) {
  auto socket = TakeOverSocket::open(take_over_path(options_));
  ASSERT_TRUE(socket);
  auto asked = std::async(std::launch::async, [&] { return Predecessor::ask(options_); });
  pollfd wait{(*socket)->fd(), POLLIN, 0};
  ASSERT_EQ(::poll(&wait, 1, -1), 1);
  std::optional<Successor> successor = (*socket)->accept();
  ASSERT_TRUE(successor);
  ASSERT_TRUE(successor->read_request(options_));
  EXPECT_TRUE(successor->wants_nri());
  const auto any = [] { return UniqueFd(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)); };
  HandedOver sockets{{any(), any()}, {any(), any()}, {any(), any()}};
  for (int lock = 0; lock < 2; ++lock) sockets.runtime_locks.push_back(any());
  const nri::RuntimeFacts runtime{"containerd", "v2.4.2", "v0.12.3", std::chrono::milliseconds(2000)};
  sockets.nri.emplace();
  sockets.nri->connection = {any(), std::string("a\0\xff", 3), 7};
  sockets.nri->runtime = runtime;
  ASSERT_TRUE(successor->hand_over(sockets));
  auto predecessor = asked.get();
  ASSERT_TRUE(predecessor && *predecessor);
  const HandedOver taken = (*predecessor)->take_sockets();
  EXPECT_EQ(taken.runtime_locks.size(), 2U);
  ASSERT_TRUE(taken.nri);
  EXPECT_TRUE(taken.nri->connection.socket);
  EXPECT_EQ(taken.nri->connection.unread, std::string("a\0\xff", 3));
  EXPECT_EQ(taken.nri->connection.next_call, 7U);
  EXPECT_EQ(taken.nri->runtime, runtime);
}

TEST_F(TakeOverWords, NobodyIsWaitedForWhoDoesNotSayThatItServes) {
  for (const char* words : {R"({"serving":"yes"})"
                            "\n",
                            R"({"serving":1})"
                            "\n",
                            "{}\n", "null\n", "x"}) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    Successor successor{UniqueFd(ends[0]), ::getpid()};
    const UniqueFd other(ends[1]);
    say(other.get(), words);
    EXPECT_FALSE(successor.wait_until_serving(std::chrono::minutes(1))) << words;
  }
}

}  // namespace
}  // namespace topolet::daemon
