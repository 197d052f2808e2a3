// Pods whose sandboxes die or disappear without a word, and the containers that stay.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/simulate/simulated_node.hpp"

namespace topolet::simulate {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kFourCpus = "numa:1 core:4 pu:1";

/// A pod that was never started, with all CPUs but one alone.
void create_unstarted(SimulatedNode& node) {
  node.apply(R"({"op":"run_pod","pod":"p","qos":"guaranteed"})");
  node.apply(R"({"op":"create","pod":"p","container":"main","start":false,"cpu_request_milli":3000,)"
             R"("cpu_limit_milli":3000,"memory_limit":1048576})");
}

TEST(Sandbox, WhatCanNeverRunHoldsNothing) {
  for (const char* state : {"gone", "not-ready"}) {
    for (const char* restart : {"", R"({"op":"restart"})", R"({"op":"restart","database":"lost"})"}) {
      SCOPED_TRACE(fmt::format("{} {}", state, restart));
      SimulatedNode node(kFourCpus, {"--plugins.enable=numa"});
      create_unstarted(node);
      EXPECT_EQ(node.guaranteed("early", 2).outcome, "denied") << "it may start at any moment";
      node.apply(fmt::format(R"({{"op":"sandbox","pod":"p","state":"{}"}})", state));
      if (*restart != 0) node.apply(restart);
      node.apply(R"({"op":"clock","advance_s":60})");
      EXPECT_THAT(node.snapshot().containers, IsEmpty());
      EXPECT_EQ(node.guaranteed("late", 3).outcome, "placed");
      const OperationResult started = node.apply(R"({"op":"start","pod":"p","container":"main"})");
      EXPECT_EQ(started.outcome, "error");
      EXPECT_THAT(started.reason, HasSubstr("is not ready or gone"));
      EXPECT_THAT(node.runtime().running(), SizeIs(1));
    }
  }
}

TEST(Sandbox, WhatIsInAReadyPodHoldsItsCpus) {
  for (const char* restart : {R"({"op":"restart"})", R"({"op":"restart","database":"lost"})"}) {
    SCOPED_TRACE(restart);
    SimulatedNode node(kFourCpus, {"--plugins.enable=numa"});
    create_unstarted(node);
    node.apply(restart);
    node.apply(R"({"op":"clock","advance_s":60})");
    EXPECT_EQ(node.guaranteed("other", 2).outcome, "denied");
    EXPECT_EQ(node.apply(R"({"op":"start","pod":"p","container":"main"})").cpus.to_string(), "0-2");
    EXPECT_THAT(node.runtime().running(), SizeIs(1));
  }
}

TEST(Sandbox, WhatRunsKeepsItsCpusWhateverBecameOfItsPod) {
  for (const char* state : {"gone", "not-ready"}) {
    SCOPED_TRACE(state);
    SimulatedNode node(kFourCpus, {"--plugins.enable=numa"});
    node.guaranteed("p", 3);
    node.apply(fmt::format(R"({{"op":"sandbox","pod":"p","state":"{}"}})", state));
    node.apply(R"({"op":"restart"})");
    node.apply(R"({"op":"clock","advance_s":60})");
    EXPECT_EQ(node.guaranteed("other", 2).outcome, "denied");
    EXPECT_THAT(node.snapshot().containers, SizeIs(1));
  }
}

TEST(Sandbox, ACreateInDoubtEndsWithItsPod) {
  SimulatedNode node(kFourCpus, {"--plugins.enable=numa"});
  node.apply(R"({"op":"run_pod","pod":"p","qos":"guaranteed"})");
  node.apply(R"({"op":"runtime","next":"lost"})");
  node.apply(R"({"op":"create","pod":"p","container":"main","cpu_request_milli":3000,)"
             R"("cpu_limit_milli":3000,"memory_limit":1048576})");
  ASSERT_THAT(node.snapshot().containers, SizeIs(1));
  node.apply(R"({"op":"sandbox","pod":"p","state":"gone"})");
  node.apply(R"({"op":"clock","advance_s":3})");
  EXPECT_THAT(node.snapshot().containers, IsEmpty());
  EXPECT_EQ(node.guaranteed("late", 3).outcome, "placed");
}

TEST(Sandbox, OfALostDatabaseEverybodyKeepsTheirCpus) {
  SimulatedNode node(kFourCpus, {"--plugins.enable=numa"});
  node.guaranteed("alone", 2);
  node.besteffort("web");
  EXPECT_THAT(node.apply(R"({"op":"restart","database":"lost"})").changed, IsEmpty());
  ASSERT_THAT(node.snapshot().containers, SizeIs(2));
  EXPECT_EQ(node.snapshot().containers[0].cpus.to_string(), "0-1");
  EXPECT_EQ(node.snapshot().containers[0].mode, "exclusive");
  EXPECT_EQ(node.snapshot().containers[1].cpus.to_string(), "2-3");
}

}  // namespace
}  // namespace topolet::simulate
