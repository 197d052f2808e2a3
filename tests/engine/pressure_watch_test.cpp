#include "core/engine/planning/pressure_watch.hpp"

#include <gtest/gtest.h>

#include "tests/engine/crowds.hpp"

namespace topolet::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Containers a and b request something, x does not.
class PressureWatchTest : public ::testing::Test {
 protected:
  PressureWatchTest() {
    Allocation leftover = asking("x", 0);
    leftover.workload.qos = placement::Qos::kBestEffort;
    ledger_ = ledger_of({asking("a", 1000, CpuSet::range(0, 3)), asking("b", 1000), leftover});
  }
  void wait(const std::string& name, std::uint32_t permille) {
    load_.containers["c-" + name].psi_some_permille = permille;
  }
  /// Returns who is pressed then.
  std::string look(int second, std::optional<std::uint32_t> least = 250) {
    watch_.note(ledger_, &load_, least, at(second));
    return watch_.pressed() ? watch_.pressed()->container : "";
  }
  static PressureWatch::Time at(int second) { return PressureWatch::Time(seconds(second)); }

  Ledger ledger_ = ledger_of({});
  load::Load load_;
  PressureWatch watch_;
};

TEST_F(PressureWatchTest, OneIsPressedThatHasWaitedForHalfAMinute) {
  wait("a", 250);
  EXPECT_EQ(look(0), "");
  EXPECT_EQ(look(29), "");
  EXPECT_EQ(look(30), display_name(asking("a", 0).workload));
  EXPECT_EQ(watch_.pressed()->permille, 250U);
  EXPECT_EQ(watch_.pressed()->cpus, CpuSet::range(0, 3));
  wait("a", 249);
  EXPECT_EQ(look(31), "");
  wait("a", 250);
  EXPECT_EQ(look(32), "");
  EXPECT_EQ(look(61), "") << "the time begins anew";
  EXPECT_NE(look(62), "");
}

TEST_F(PressureWatchTest, OfSeveralItIsTheOneThatWaitsMost) {
  wait("a", 300);
  wait("b", 600);
  look(0);
  EXPECT_EQ(look(30), display_name(asking("b", 0).workload));
}

TEST_F(PressureWatchTest, NobodyIsPressedByItsOwnQuotaOrByOldValues) {
  wait("a", 900);
  load_.containers["c-a"].is_throttled = true;
  look(0);
  EXPECT_EQ(look(30), "");
  load_.containers["c-a"].is_throttled = false;
  load_.containers["c-a"].age = milliseconds(5001);
  look(31);
  EXPECT_EQ(look(61), "");
}

TEST_F(PressureWatchTest, WhoeverYieldsIsToWait) {
  wait("x", 900);
  look(0);
  EXPECT_EQ(look(30), "");
}

TEST_F(PressureWatchTest, CanBeOff) {
  wait("a", 900);
  look(0, std::nullopt);
  EXPECT_EQ(look(60, std::nullopt), "");
}

TEST_F(PressureWatchTest, RemembersItForFiveMinutes) {
  EXPECT_FALSE(watch_.is_remembered(at(0)));
  wait("a", 900);
  look(0);
  look(30);
  wait("a", 0);
  look(31);
  EXPECT_TRUE(watch_.is_remembered(at(329)));
  EXPECT_FALSE(watch_.is_remembered(at(330)));
}

}  // namespace
}  // namespace topolet::engine
