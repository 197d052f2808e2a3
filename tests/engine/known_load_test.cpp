#include "core/engine/planning/known_load.hpp"

#include <gtest/gtest.h>

#include "core/engine/state/load_json.hpp"
#include "core/engine/state/transitions.hpp"
#include "tests/engine/crowds.hpp"

namespace topolet::engine {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

/// Two nodes of four CPUs, of which both are measured.
class KnownLoadTest : public ::testing::Test {
 protected:
  KnownLoadTest() {
    measured_.nodes[0] = {.effective_milli = 3000, .age = seconds(1), .used_milli = 500};
    measured_.nodes[1] = {.effective_milli = 4000, .age = seconds(1), .used_milli = 0};
  }
  void tell(std::uint32_t node, std::int64_t milli, const std::string& source) {
    ledger_.apply(
        compute_transition(ledger_, {}, now_, event::CapacityReported{node, milli, now_ + minutes(1), source}));
  }
  load::Source source() const {
    return [this] { return std::make_shared<const load::Load>(measured_); };
  }

  std::chrono::milliseconds now_ = seconds(1'000'000);
  load::Load measured_;
  Ledger ledger_ = ledger_of({});
};

TEST_F(KnownLoadTest, IsWhatIsMeasured) {
  EXPECT_EQ(*known_load(source(), ledger_), measured_);
  EXPECT_EQ(known_load({}, ledger_), nullptr);
  EXPECT_EQ(known_load([] { return nullptr; }, ledger_), nullptr);
}

TEST_F(KnownLoadTest, HasTheOutsidesWordInPlaceOfWhatIsMeasured) {
  tell(0, 1000, "operator");
  const auto known = known_load(source(), ledger_);
  EXPECT_EQ(known->nodes.at(0), (load::NodeLoad{.effective_milli = 1000, .age = {}, .used_milli = 500}));
  EXPECT_EQ(known->nodes.at(1), measured_.nodes.at(1));
  EXPECT_EQ(known_load({}, ledger_)->nodes.at(0).effective_milli, 1000) << "where nothing is measured, too";
}

TEST_F(KnownLoadTest, WhatIsUsedDoesNotBecomeNewByTheOutsidesWord) {
  measured_.nodes[0].age = seconds(6);
  tell(0, 1000, "operator");
  EXPECT_EQ(known_load(source(), ledger_)->nodes.at(0), (load::NodeLoad{.effective_milli = 1000}));
}

TEST_F(KnownLoadTest, DoesNotTakeWhatItHasMeasuredForTheOutsidesWord) {
  tell(0, 2000, kMeasuredSource);
  EXPECT_EQ(known_load(source(), ledger_)->nodes.at(0).effective_milli, 3000) << "the newest";
}

TEST_F(KnownLoadTest, IsNotDecidedByBeforeItWasMeasuredForAMinute) {
  EXPECT_NE(settled_load(source(), ledger_), nullptr);
  measured_.measured_for = std::chrono::seconds(0);
  EXPECT_EQ(settled_load(source(), ledger_), nullptr);
  tell(0, 1000, "operator");
  const auto settled = settled_load(source(), ledger_);
  ASSERT_NE(settled, nullptr);
  EXPECT_EQ(settled->nodes.size(), 1U) << "of what is measured there is nothing";
}

TEST(LoadJson, HasWhatIsKnown) {
  load::Load load;
  EXPECT_EQ(to_json(load), "{}");
  load.containers["c-1"] = {.cpu_milli = 1500, .psi_some_permille = 20, .age = seconds(1), .memory_bytes = 1 << 20};
  load.containers["c-2"] = {.cpu_milli = 0, .is_throttled = true};
  load.nodes[1] = {.effective_milli = 2000, .used_milli = 10};
  load.nodes[2] = {.used_milli = 10};
  load.cpus[3] = {.effective_milli = 500};
  EXPECT_EQ(to_json(load),
            R"({"containers":{"c-1":{"cpu_milli":1500,"age_ms":1000,"psi_some_permille":20,"memory_bytes":1048576},)"
            R"("c-2":{"cpu_milli":0,"is_throttled":true}},"nodes":{"1":{"effective_milli":2000,"used_milli":10},)"
            R"("2":{"used_milli":10}},)"
            R"("cpus":{"3":{"effective_milli":500}}})");
}

}  // namespace
}  // namespace topolet::engine
