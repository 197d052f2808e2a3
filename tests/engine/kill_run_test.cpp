// The promises that hold always, under random histories in which the daemon is killed at any moment.
#include "tests/engine/kill_run.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>

namespace topolet {
namespace {

using testing::KillRun;

constexpr std::size_t kEventsPerSeed = 500;
#ifdef TOPOLET_SANITIZED
// The build without sanitizers goes the whole way. Six dense runs are one of each kind: with and without kills, hotplug
// and a slow store.
constexpr std::uint64_t kSeeds = 4;
constexpr std::uint64_t kDenseSeeds = 6;
constexpr std::size_t kDenseEventsPerSeed = 1400;
#else
constexpr std::uint64_t kSeeds = 24;
constexpr std::uint64_t kDenseSeeds = 24;
constexpr std::size_t kDenseEventsPerSeed = 4200;
#endif

/// Returns the number in an environment variable; none if it is not set.
std::optional<std::uint64_t> number_from_environment(const char* variable) {
  const char* asked = std::getenv(variable);
  if (asked == nullptr) return std::nullopt;
  const std::int64_t number = std::strtoll(asked, nullptr, 10);
  if (number <= 0) throw std::invalid_argument(std::string(variable) + "=" + asked + " is no number above 0");
  return static_cast<std::uint64_t>(number);
}

/// Every other dense run without kills: what happens there needs none.
KillRun::Options options_of(std::uint64_t seed, KillRun::Pace pace) {
  const bool dense = pace == KillRun::Pace::kDense;
  const char* const variable = dense ? "TOPOLET_DENSE_RUN_EVENTS" : "TOPOLET_KILL_RUN_EVENTS";
  return {.seed = seed,
          .events = number_from_environment(variable).value_or(dense ? kDenseEventsPerSeed : kEventsPerSeed),
          .pace = pace,
          .kills = !dense || seed % 2 == 0,
          .hotplug = dense && seed % 3 == 0,
          .slow_store = dense && seed % 4 == 2};
}

void expect_no_fault(const KillRun::Options& options) {
  KillRun run(options);
  const std::optional<std::string> fault = run.run();
  const char* const which = options.pace == KillRun::Pace::kDense ? "DENSE" : "KILL";
  EXPECT_FALSE(fault.has_value()) << "TOPOLET_" << which << "_RUN_SEED=" << options.seed << " TOPOLET_" << which
                                  << "_RUN_EVENTS=" << options.events
                                  << (options.makes_room ? " TOPOLET_RUN_MAKES_ROOM=1" : "")
                                  << (options.has_load ? " TOPOLET_RUN_HAS_LOAD=1" : "")
                                  << " plays it again: " << *fault;
}

class KillRunOfSeed : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(KillRunOfSeed, LeavesCpusWithWhoHasThem) { expect_no_fault(options_of(GetParam(), KillRun::Pace::kCalm)); }

INSTANTIATE_TEST_SUITE_P(Engine, KillRunOfSeed, ::testing::Range<std::uint64_t>(1, kSeeds + 1));

TEST_P(KillRunOfSeed, LeavesCpusWithWhoHasThemWhileOthersMakeRoom) {
  KillRun::Options options = options_of(GetParam(), KillRun::Pace::kCalm);
  options.makes_room = true;
  expect_no_fault(options);
}

/// Whoever waits for CPUs that BestEffort containers are to leave gets these in the end; nobody else's are touched.
TEST_P(KillRunOfSeed, LeavesCpusWithWhoHasThemWhileLoadsComeAndGo) {
  KillRun::Options options = options_of(GetParam(), KillRun::Pace::kCalm);
  options.has_load = true;
  expect_no_fault(options);
}

class DenseRunOfSeed : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(DenseRunOfSeed, LeavesCpusWithWhoHasThem) { expect_no_fault(options_of(GetParam(), KillRun::Pace::kDense)); }

TEST_P(DenseRunOfSeed, LeavesCpusWithWhoHasThemWhileOthersMakeRoom) {
  if (GetParam() % 2 != 1) GTEST_SKIP() << "the machine has one node";
  KillRun::Options options = options_of(GetParam(), KillRun::Pace::kDense);
  options.makes_room = true;
  options.kills = GetParam() % 4 == 1;
  expect_no_fault(options);
}

TEST_P(DenseRunOfSeed, LeavesCpusWithWhoHasThemWhileLoadsComeAndGo) {
  if (GetParam() % 6 > 1) GTEST_SKIP() << "two of six are one of each kind: with and without kills";
  KillRun::Options options = options_of(GetParam(), KillRun::Pace::kDense);
  options.has_load = true;
  expect_no_fault(options);
}

INSTANTIATE_TEST_SUITE_P(
    Engine, DenseRunOfSeed,
    ::testing::Range<std::uint64_t>(1, number_from_environment("TOPOLET_DENSE_RUN_SEEDS").value_or(kDenseSeeds) + 1));

void play_again(const char* variable, KillRun::Pace pace) {
  const std::optional<std::uint64_t> seed = number_from_environment(variable);
  if (!seed) GTEST_SKIP() << variable << " names no seed";
  KillRun::Options options = options_of(*seed, pace);
  options.trace_to_stderr = true;
  options.makes_room = std::getenv("TOPOLET_RUN_MAKES_ROOM") != nullptr;
  options.has_load = std::getenv("TOPOLET_RUN_HAS_LOAD") != nullptr;
  if (options.makes_room && pace == KillRun::Pace::kDense) options.kills = *seed % 4 == 1;
  expect_no_fault(options);
}

/// With every event on standard error.
TEST(KillRun, PlaysASeedAgain) { play_again("TOPOLET_KILL_RUN_SEED", KillRun::Pace::kCalm); }
TEST(DenseRun, PlaysASeedAgain) { play_again("TOPOLET_DENSE_RUN_SEED", KillRun::Pace::kDense); }

}  // namespace
}  // namespace topolet
