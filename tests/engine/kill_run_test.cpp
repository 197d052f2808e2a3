// The promises that hold always, under random histories in which the daemon is killed at any moment.
#include "tests/engine/kill_run.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace topolet {
namespace {

using testing::KillRun;

constexpr std::size_t kEventsPerSeed = 500;
constexpr std::uint64_t kSeeds = 24;

/// TOPOLET_KILL_RUN_EVENTS: how many events a run has.
std::size_t events_per_run() {
  const char* asked = std::getenv("TOPOLET_KILL_RUN_EVENTS");
  if (asked == nullptr) return kEventsPerSeed;
  const std::int64_t events = std::strtoll(asked, nullptr, 10);
  if (events <= 0) {
    throw std::invalid_argument(std::string("TOPOLET_KILL_RUN_EVENTS=") + asked + " is no number above 0");
  }
  return static_cast<std::size_t>(events);
}

void expect_no_fault(KillRun::Options options) {
  KillRun run(options);
  const std::optional<std::string> fault = run.run();
  EXPECT_FALSE(fault.has_value()) << "TOPOLET_KILL_RUN_SEED=" << options.seed
                                  << " TOPOLET_KILL_RUN_EVENTS=" << options.events << " plays it again: " << *fault;
}

class KillRunOfSeed : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(KillRunOfSeed, LeavesCpusWithWhoHasThem) { expect_no_fault({.seed = GetParam(), .events = events_per_run()}); }

INSTANTIATE_TEST_SUITE_P(Engine, KillRunOfSeed, ::testing::Range<std::uint64_t>(1, kSeeds + 1));

/// With every event on standard error.
TEST(KillRun, PlaysASeedAgain) {
  const char* seed = std::getenv("TOPOLET_KILL_RUN_SEED");
  if (seed == nullptr) GTEST_SKIP() << "TOPOLET_KILL_RUN_SEED names no seed";
  expect_no_fault({.seed = std::strtoull(seed, nullptr, 10), .events = events_per_run(), .trace_to_stderr = true});
}

}  // namespace
}  // namespace topolet
