// Each plugin of defects/ is found, by a case whose name and sentence say what is wrong.
#include <gmock/gmock.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "core/plugin_checker/check_plugin.hpp"

namespace topolet::plugin_checker {
namespace {

struct Defect {
  const char* plugin;
  const char* found_by;  ///< the case
  const char* sentence;  ///< a part of what it says
};

void PrintTo(const Defect& defect, std::ostream* out) { *out << defect.plugin; }

const std::vector<Defect>& defects() {
  static const std::vector<Defect> kDefects = {
      {"closes-descriptors", "keeps-descriptors", "is gone, which was "},
      {"replaces-stderr", "keeps-descriptors", "descriptor 2 was '"},
      {"leaves-file", "keeps-descriptors", "is new: '/dev/null"},
      {"file-each-call", "calls-1000", "more than before"},
      {"listens", "keeps-sockets", "a socket that listens', after create"},
      {"changes-directory", "keeps-directory", "and is '/proc', after score"},
      {"changes-umask", "keeps-umask", "and is '0077', after create"},
      {"sets-variable", "keeps-environment", "the variable TOPOLET_DEFECT is new"},
      {"unsets-variable", "keeps-environment", "the variable PATH is gone"},
      {"sets-locale", "keeps-locale", "setlocale(LC_ALL) was 'C' and is 'C.UTF-8', after load"},
      {"uses-locale", "keeps-locale", "the thread's locale was 'the global one' and is 'one of its own'"},
      {"rounds-up", "keeps-floating-point", "fegetround() was "},
      {"traps-division", "keeps-floating-point", "fegetexcept() was "},
      {"flushes-denormals", "keeps-floating-point", ", after load"},
      {"blocks-signal", "keeps-signals", "SIGUSR1 was 'let in' and is 'blocked', after score"},
      {"handles-signal", "keeps-signals", "the handling of SIGTERM was 'default' and is 'handled at "},
      {"ignores-signal", "keeps-signals", "the handling of SIGCHLD was 'default' and is 'ignored', after notify"},
      {"moves-signal-stack", "keeps-signals", "the stack for signals was "},
      {"takes-signals", "keeps-signals", "SIGHUP on a thread of its own is new"},
      {"sets-alarm", "keeps-timers", "the timer ITIMER_REAL (alarm) was 'not set' and is 'set'"},
      {"makes-timer", "keeps-timers", "a POSIX timer, ID: "},
      {"profiles", "keeps-timers", "the timer ITIMER_PROF was 'not set' and is 'set'"},
      {"lowers-limit", "keeps-limits", "the limit RLIMIT_NOFILE was "},
      {"renames-process", "keeps-identity", "and is 'mine', after create"},
      {"forbids-dumps", "keeps-identity", "prctl(PR_GET_DUMPABLE) was '1' and is '0'"},
      {"changes-personality", "keeps-identity", "the personality was "},
      {"adopts-orphans", "keeps-identity", "prctl(PR_GET_CHILD_SUBREAPER) was '0' and is '1'"},
      {"is-nice", "keeps-scheduling", "nice was "},
      {"sleeps-late", "keeps-scheduling", "the timer slack was "},
      {"catches-terminate", "keeps-handlers", "std::get_terminate() was "},
      {"catches-no-memory", "keeps-handlers", "std::get_new_handler() was 'none' and is "},
      {"leaves-thread", "keeps-threads", "a thread '"},
      {"prints", "stdout", "it writes to standard output in score"},
      {"prints-without-end", "stdout", "it writes to standard output in notify"},
      {"prints-at-exit", "stdout", "it writes to standard output at the end of the process"},
      {"prints-from-thread", "stdout", "it writes to standard output in "},
      {"prints-when-loaded", "stdout", "it writes to standard output in load: 'loaded"},
      {"thread-calls-late", "after-destroy", "it called get_capability of the host in "},
      {"exit-calls-host", "after-destroy", "it called write of topolet.log/1 of the host in "},
      {"static-calls-host", "after-destroy", "it called get_capability of the host in "},
      {"thread-local-calls-host", "after-destroy", "in the end of a thread that had called it"},
      {"exit-hangs", "after-destroy", "SIGALRM, in its exit handlers"},
      {"exit-aborts", "after-destroy", "crashed with SIGABRT, in its exit handlers"},
      {"exit-exits", "after-destroy", "ended the process with exit status 0, in its exit handlers"},
      {"says-secret", "env-secrets", " is in an answer ("},
      {"logs-secret", "env-secrets", " is in a line of its log ("},
      {"saves-secret", "env-secrets", " is in its state ("},
      {"passes-secret", "env-secrets", " is in an answer ("},
      {"annotates-secret", "env-secrets", " is in an answer ("},
      {"tags-secret", "env-secrets", " is in an answer ("},
      {"uses-pid", "other-process", "in another process, given the same state"},
      {"uses-variable", "other-process", "in another process, given the same state"},
      {"uses-address", "other-process", "in another process, given the same state"},
      {"uses-cpus", "other-process", "in another process, given the same state"},
      {"reads-unwritten", "other-process", "in another process, given the same state"},
      {"shares-instances", "repeatable", "from a second instance"},
      {"thread-local-state", "repeatable", "and on another thread"},
      {"remembers-request", "repeatable", "when asked again"},
      {"aborts", "machine-1-cpu", "crashed with SIGABRT, in score"},
      {"ends-at-once", "machine-1-cpu", "it ended the process with exit status 0, in score"},
      {"kills", "machine-1-cpu", "crashed with SIGKILL, in score"},
      {"overflows-stack", "machine-1-cpu", "crashed with SIGSEGV, in score"},
      {"follows-null", "machine-1-cpu", "crashed with SIGSEGV, in notify"},
      {"indexes-by-kind", "unknown-values", "crashed with SIG"},
      {"indexes-by-largest", "random", "crashed with SIG"},
      {"trusts-load", "random", "crashed with SIGSEGV, in score"},
      {"leaks-each-call", "calls-1000", "it leaks: "},
      {"maps-each-call", "calls-1000", "it leaks: "},
      {"reserved-set", "capabilities", "topolet.score/1: 7"},
      {"unmaps-request", "in-range", "score"},
      {"saves-for-ever", "calls-1000", "values more in its state"},
      {"shares-with-the-old", "reload", ""},
      {"trusts-state", "odd-state", "crashed with SIGABRT, in create with 0 bytes in its state for 'count'"},
      {"uses-host-name", "other-process", "in another process, given the same state"},
      {"spins", "in-time", "a thread of it does not wait"},
      {"sleeps", "in-time", "ms by the clock in notify"},
      {"writes-lent", "in-range", "wrote to memory that it was lent to read, in score"},
  };
  return kDefects;
}

#ifdef TOPOLET_SANITIZED
constexpr bool kIsSanitized = true;
#else
constexpr bool kIsSanitized = false;
#endif

/// One that a sanitizer hides, by what it does itself at a crash or with memory.
bool is_hidden_by_sanitizers(const std::string& plugin) {
  static const std::set<std::string> kHidden = {"leaks-each-call",    "maps-each-call",    "reads-unwritten",
                                                "moves-signal-stack", "overflows-stack",   "takes-signals",
                                                "indexes-by-kind",    "indexes-by-largest"};
  return kHidden.count(plugin) > 0;
}

/// One that only shows where there are several CPUs, or where the check may give a process another name of the host.
bool is_hidden_here(const std::string& plugin) {
  cpu_set_t allowed;
  if (plugin == "uses-cpus") return ::sched_getaffinity(0, sizeof(allowed), &allowed) != 0 || CPU_COUNT(&allowed) < 2;
  return plugin == "uses-host-name" && ::geteuid() != 0;
}

class DefectivePlugin : public testing::TestWithParam<Defect> {};

TEST_P(DefectivePlugin, IsFoundByACaseThatSaysWhatIsWrong) {
  const Defect& defect = GetParam();
  if (kIsSanitized && is_hidden_by_sanitizers(defect.plugin)) GTEST_SKIP() << "a sanitizer hides it";
  if (is_hidden_here(defect.plugin)) GTEST_SKIP() << "it needs several CPUs, or root";
  std::ostringstream out;
  check_plugin({.file = std::string(TOPOLET_DEFECT_DIR) + '/' + defect.plugin + ".so",
                .requests = 60,
                .time_limit = std::chrono::seconds(300),
                .only_case = defect.found_by,
                .json = true},
               out);
  const auto result = nlohmann::json::parse(out.str())["cases"][0];
  const std::string note = result["note"], actual = result["actual"];
  EXPECT_EQ(result["outcome"], std::string(defect.found_by) == "in-time" ? "warning" : "FAILED") << out.str();
  EXPECT_THAT(note + actual, testing::HasSubstr(defect.sentence));
}

std::string test_name(const testing::TestParamInfo<Defect>& info) {
  std::string name = info.param.plugin;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, DefectivePlugin, testing::ValuesIn(defects()), test_name);

TEST(DefectivePlugins, AreAllInTheTable) {
  std::set<std::string> built;
  for (const auto& file : std::filesystem::directory_iterator(TOPOLET_DEFECT_DIR)) built.insert(file.path().stem());
  std::set<std::string> listed;
  for (const Defect& defect : defects()) listed.insert(defect.plugin);
  EXPECT_EQ(built, listed);
}

}  // namespace
}  // namespace topolet::plugin_checker
