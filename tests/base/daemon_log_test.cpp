#include "core/base/daemon_log.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/log.hpp"
#include "core/base/queued_sink.hpp"
#include "core/base/unique_fd.hpp"

namespace topolet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

constexpr int kSkip = 77;

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    in.reset(ends[0]);
    out.reset(ends[1]);
  }
  /// Reads until the other end closes, or `last` has come.
  std::string read_until(const std::string& last) const {
    std::string text;
    std::array<char, 65536> bytes{};
    while (last.empty() || text.size() < last.size() ||
           text.find(last, text.size() - last.size()) == std::string::npos) {
      const ssize_t count = ::read(in.get(), bytes.data(), bytes.size());
      if (count <= 0) break;
      text.append(bytes.data(), static_cast<std::size_t>(count));
    }
    return text;
  }

  UniqueFd in;
  UniqueFd out;
};

/// Reads the log of a daemon, in a process of its own whose standard error is a pipe.
class DaemonLogTest : public ::testing::Test {
 protected:
  /// Starts the process; `body` gives its exit code.
  void run(const std::function<int()>& body) {
    child_ = ::fork();
    ASSERT_GE(child_, 0);
    if (child_ == 0) {
      ::dup2(stderr_.out.get(), STDERR_FILENO);
      go_on_.out.reset();
      stderr_.in.reset();
      ::unsetenv("JOURNAL_STREAM");
      ::_exit(body());
    }
    stderr_.out.reset();
    logged_.out.reset();
    go_on_.in.reset();
  }
  /// In the process: says that it has logged, and waits until it may end.
  void has_logged() const {
    char byte = 'x';
    EXPECT_EQ(::write(logged_.out.get(), &byte, 1), 1);
    EXPECT_EQ(::read(go_on_.in.get(), &byte, 1), 0);
  }
  int exit_code() {
    go_on_.out.reset();
    int status = 0;
    EXPECT_EQ(::waitpid(child_, &status, 0), child_);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  std::string said() const { return stderr_.read_until(""); }

  Pipe stderr_;
  Pipe logged_;
  Pipe go_on_;
  pid_t child_ = 0;
};

constexpr int kFlood = 100'000;

int flood(const std::function<void()>& has_logged) {
  const auto log = make_daemon_log();
  for (int i = 0; i < kFlood; ++i) log->info("line {} of {}", i, kFlood);
  has_logged();
  return 0;
}

/// Follows the lines of flood(): each must be the next one, or tell how many are missing in its place.
class Follower {
 public:
  void hear(const std::string& line) {
    static const std::regex kLine("line ([0-9]+) of [0-9]+");
    static const std::regex kLost(
        "([0-9]+) log lines were lost because the reader of the log did not take them in time; "
        "see what holds up the reader, or log less with daemon.log-level");
    std::smatch match;
    if (std::regex_match(line, match, kLost)) {
      lost_ += std::stoi(match[1]);
      next_ += std::stoi(match[1]);
      ++times_lost_;
      return;
    }
    ASSERT_TRUE(std::regex_match(line, match, kLine)) << line;
    ASSERT_EQ(std::stoi(match[1]), next_++);
  }
  int next() const { return next_; }
  int lost() const { return lost_; }
  int times_lost() const { return times_lost_; }

 private:
  int next_ = 0;
  int lost_ = 0;
  int times_lost_ = 0;
};

/// A line of standard error without its time.
std::pair<std::string, std::string> level_and_text(const std::string& line) {
  static const std::regex kForm("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{12}[+-][0-9]{2}:[0-9]{2} ([a-z]+) (.*)");
  std::smatch match;
  if (!std::regex_match(line, match, kForm)) return {"no line of a log", line};
  return {match[1], match[2]};
}

std::vector<std::pair<std::string, std::string>> levels_and_texts(const std::string& said) {
  std::vector<std::pair<std::string, std::string>> lines;
  std::istringstream in(said);
  for (std::string line; std::getline(in, line);) lines.push_back(level_and_text(line));
  return lines;
}

TEST_F(DaemonLogTest, WritesTimeAndLevelToStandardError) {
  run([] {
    const auto log = make_daemon_log();
    log->debug("not logged");
    log->info("one");
    log->warn("two");
    return 0;
  });
  EXPECT_THAT(levels_and_texts(said()), ElementsAre(Pair("info", "one"), Pair("warning", "two")));
  EXPECT_EQ(exit_code(), 0);
}

TEST_F(DaemonLogTest, MakesOneLineOfEachRecord) {
  run([] {
    make_daemon_log()->info("pod a\n2026-01-01T00:00:00.000+00:00 error forged\x1b[2J\u202e\xff\\");
    return 0;
  });
  EXPECT_THAT(levels_and_texts(said()),
              ElementsAre(Pair("info", R"(pod a\n2026-01-01T00:00:00.000+00:00 error forged\x1b[2J\u{202e}\xff\\)")));
  EXPECT_EQ(exit_code(), 0);
}

TEST_F(DaemonLogTest, FlushesBeforeAnEndAtOnce) {
  constexpr int kLines = 1000;
  run([&] {
    const auto log = make_daemon_log();
    for (int i = 0; i < kLines; ++i) log->info("line {} of {}", i, kLines);
    log->flush();
    ::_exit(0);
    return 0;
  });
  Follower follower;
  for (const auto& [level, text] : levels_and_texts(said())) follower.hear(text);
  EXPECT_EQ(follower.next(), kLines);
  EXPECT_EQ(follower.lost(), 0);
}

TEST_F(DaemonLogTest, DoesNotWaitForAReaderAndTellsInPlaceWhatWasLost) {
  run([this] { return flood([this] { has_logged(); }); });
  ASSERT_EQ(logged_.read_until("x"), "x");
  Follower follower;
  const std::string last = fmt::format("line {} of {}\n", kFlood - 1, kFlood);
  for (const auto& [level, text] : levels_and_texts(stderr_.read_until(last))) {
    follower.hear(text);
    EXPECT_EQ(level, text.rfind("line", 0) == 0 ? "info" : "warning");
  }
  EXPECT_EQ(follower.next(), kFlood);
  EXPECT_GT(follower.times_lost(), 0);
  EXPECT_GT(follower.lost(), follower.times_lost() * 1000) << "a line of its own for few that were lost";
  EXPECT_EQ(exit_code(), 0);
}

TEST_F(DaemonLogTest, HoldsNoMoreThanItSaysOfLongLines) {
  constexpr int kLines = 2000;
  const std::string filling(10'000, 'x');
  run([&] {
    const auto log = make_daemon_log();
    for (int i = 0; i < kLines; ++i) log->info("line {} of {}{}", i, kLines, filling);
    log->info(std::string(QueuedSink::kMaxBytes, 'y'));
    log->info("end");
    has_logged();
    return 0;
  });
  ASSERT_EQ(logged_.read_until("x"), "x");
  const int capacity = ::fcntl(stderr_.in.get(), F_GETPIPE_SZ);
  const std::string held = stderr_.read_until(" info end\n");
  EXPECT_GT(held.size(), QueuedSink::kMaxBytes / 4);
  EXPECT_LT(held.size(), QueuedSink::kMaxBytes + static_cast<std::size_t>(capacity) + 2 * filling.size());
  EXPECT_EQ(held.find("yy"), std::string::npos) << "a line that is longer than the queue was held";
  EXPECT_EQ(exit_code(), 0);
}

TEST_F(DaemonLogTest, LetsTheProcessEndThoughItsLastLinesFindNoReader) {
  run([] {
    flood([] {});
    std::exit(0);
    return 0;
  });
  EXPECT_EQ(exit_code(), 0);
}

/// The same in a mount namespace with a journal's socket of its own, which the test reads.
class JournalTest : public DaemonLogTest {
 protected:
  static constexpr const char* kSocket = "/run/systemd/journal/socket";

  void run_with_journal(const std::function<int()>& body) {
    run([this, body] {
      if (!make_journal() || !listen(journal_.get())) return kSkip;
      say_that_stderr_is_the_journal();
      return body();
    });
  }
  static bool make_journal() {
    return ::unshare(CLONE_NEWNS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           ::mount("tmpfs", "/run", "tmpfs", 0, nullptr) == 0 &&
           std::filesystem::create_directories(std::filesystem::path(kSocket).parent_path());
  }
  static bool listen(int socket) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, kSocket);
    return ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  }
  static void say_that_stderr_is_the_journal() {
    struct stat file {};
    ::fstat(STDERR_FILENO, &file);
    ::setenv("JOURNAL_STREAM", fmt::format("{}:{}", file.st_dev, file.st_ino).c_str(), 1);
  }

  using Fields = std::map<std::string, std::string>;
  /// The fields of the next entry; none if there is no more.
  std::optional<Fields> next_entry(int flags = 0) const {
    std::array<char, 65536> bytes{};
    const ssize_t count = ::recv(journal_.get(), bytes.data(), bytes.size(), flags);
    if (count < 0) return std::nullopt;
    Fields fields;
    std::istringstream in(std::string(bytes.data(), static_cast<std::size_t>(count)));
    for (std::string line; std::getline(in, line);)
      fields[line.substr(0, line.find('='))] = line.substr(line.find('=') + 1);
    return fields;
  }
  std::vector<Fields> entries() const {
    std::vector<Fields> all;
    while (const auto entry = next_entry(MSG_DONTWAIT)) all.push_back(*entry);
    return all;
  }

  UniqueFd journal_{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
};

auto entry(const char* priority, const std::string& message) {
  return UnorderedElementsAre(Pair("MESSAGE", message), Pair("PRIORITY", priority),
                              Pair("SYSLOG_IDENTIFIER", "topoletd"));
}

#define SKIP_WITHOUT_JOURNAL(code) \
  if ((code) == kSkip) GTEST_SKIP() << "a mount namespace needs root"

TEST_F(JournalTest, GetsPrioritiesAndTheTextAlone) {
  run_with_journal([] {
    const auto log = make_daemon_log();
    log->set_level(spdlog::level::debug);
    log->debug("one");
    log->info("two");
    log->warn("three");
    log->error("four");
    return 0;
  });
  const int code = exit_code();
  SKIP_WITHOUT_JOURNAL(code);
  EXPECT_EQ(code, 0);
  EXPECT_THAT(entries(), ElementsAre(entry("7", "one"), entry("6", "two"), entry("4", "three"), entry("3", "four")));
  EXPECT_EQ(said(), "");
}

TEST_F(JournalTest, GetsOneLineOfEachRecord) {
  run_with_journal([] {
    make_daemon_log()->info("pod a\nPRIORITY=0\x1b");
    return 0;
  });
  const int code = exit_code();
  SKIP_WITHOUT_JOURNAL(code);
  EXPECT_EQ(code, 0);
  EXPECT_THAT(entries(), ElementsAre(entry("6", R"(pod a\nPRIORITY=0\x1b)")));
}

TEST_F(JournalTest, GetsNothingIfStandardErrorLeadsElsewhere) {
  run_with_journal([] {
    ::setenv("JOURNAL_STREAM", "1:1", 1);
    make_daemon_log()->info("one");
    return 0;
  });
  const int code = exit_code();
  SKIP_WITHOUT_JOURNAL(code);
  EXPECT_EQ(code, 0);
  EXPECT_THAT(entries(), IsEmpty());
  EXPECT_THAT(levels_and_texts(said()), ElementsAre(Pair("info", "one")));
}

TEST_F(JournalTest, GetsNothingIfItsSocketIsNotThere) {
  run_with_journal([] {
    ::unlink(kSocket);
    make_daemon_log()->info("one");
    return 0;
  });
  const int code = exit_code();
  SKIP_WITHOUT_JOURNAL(code);
  EXPECT_EQ(code, 0);
  EXPECT_THAT(levels_and_texts(said()), ElementsAre(Pair("info", "one")));
}

TEST_F(JournalTest, MayBeStoppedWithoutStoppingAnybody) {
  run_with_journal([this] { return flood([this] { has_logged(); }); });
  if (logged_.read_until("x").empty()) {
    const int code = exit_code();
    SKIP_WITHOUT_JOURNAL(code);
    FAIL() << "ended with " << code;
  }
  Follower follower;
  while (follower.next() < kFlood && !HasFatalFailure()) follower.hear(next_entry()->at("MESSAGE"));
  EXPECT_GT(follower.times_lost(), 0);
  EXPECT_GT(follower.lost(), follower.times_lost() * 1000) << "a line of its own for few that were lost";
  EXPECT_EQ(exit_code(), 0);
}

TEST_F(JournalTest, IsToldWhatItRefusedOnceItListensAgain) {
  run_with_journal([] {
    const std::string aside = std::string(kSocket) + ".aside";
    ::rename(kSocket, aside.c_str());
    if (!listen(UniqueFd(::socket(AF_UNIX, SOCK_DGRAM, 0)).get())) return 1;
    const auto log = make_daemon_log();
    for (int i = 0; i < 3; ++i) log->info("refused");
    log->flush();
    ::rename(aside.c_str(), kSocket);
    log->info("taken");
    return 0;
  });
  const int code = exit_code();
  SKIP_WITHOUT_JOURNAL(code);
  EXPECT_EQ(code, 0);
  std::vector<std::string> messages;
  for (const Fields& fields : entries()) messages.push_back(fields.at("MESSAGE"));
  EXPECT_THAT(messages, ElementsAre(StartsWith("3 log lines were lost"), "taken"));
  EXPECT_EQ(said(), "");
}

}  // namespace
}  // namespace topolet
