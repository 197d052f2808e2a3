#include "core/plugin_checker/run_in_child.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <stdexcept>

namespace topolet::plugin_checker {
namespace {

using std::chrono::seconds;

TEST(Child, GivesBackWhatTheBodySaid) {
  const Outcome outcome = run_in_child(seconds(60), [](const Progress&) { return Outcome::warned("slow \xff"); });
  EXPECT_EQ(outcome.kind, Outcome::Kind::kWarned);
  EXPECT_EQ(outcome.note, "slow \xef\xbf\xbd");
}

TEST(Child, NamesTheSignalAndWhatWasDone) {
  const Outcome outcome = run_in_child(seconds(60), [](const Progress& progress) {
    progress("score");
    std::raise(SIGSEGV);
    return Outcome::passed();
  });
  EXPECT_EQ(outcome.kind, Outcome::Kind::kFailed);
  EXPECT_EQ(outcome.actual, "crashed with SIGSEGV, in score");
}

TEST(Child, IsKilledWhenItsTimeIsUp) {
  const Outcome outcome = run_in_child(seconds(1), [](const Progress&) {
    while (true) ::pause();
    return Outcome::passed();
  });
  EXPECT_EQ(outcome.actual, "no answer within 1 s");
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(Child, TakesItsDescendantsWithIt) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const Outcome outcome = run_in_child(seconds(60), [&](const Progress&) {
    if (::fork() == 0) {
      while (true) ::pause();
    }
    return Outcome::passed();
  });
  EXPECT_EQ(outcome.kind, Outcome::Kind::kPassed);
  ::close(ends[1]);
  char byte = 0;
  EXPECT_EQ(::read(ends[0], &byte, 1), 0) << "a descendant holds the pipe";
  ::close(ends[0]);
}

TEST(Child, SaysThatTheProcessWasEnded) {
  const Outcome outcome = run_in_child(seconds(60), [](const Progress&) -> Outcome { ::_exit(3); });
  EXPECT_EQ(outcome.actual, "it ended the process with exit status 3");
}

TEST(Child, TurnsAnExceptionIntoAFailure) {
  const Outcome outcome =
      run_in_child(seconds(60), [](const Progress&) -> Outcome { throw std::runtime_error("no such thing"); });
  EXPECT_EQ(outcome.actual, "threw: no such thing");
}

}  // namespace
}  // namespace topolet::plugin_checker
