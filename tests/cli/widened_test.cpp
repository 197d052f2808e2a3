// How the commands tell of containers that run beside their homes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/cli/told_story.hpp"

namespace topolet::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// `busy` uses all of node 0, and `idle` nothing of node 1.
constexpr const char* kPressed = R"({"op":"run_pod","pod":"u1","name":"busy","qos":"burstable"}
{"op":"create","pod":"u1","container":"main","cpu_request_milli":1500}
{"op":"run_pod","pod":"u2","name":"idle","qos":"burstable"}
{"op":"create","pod":"u2","container":"main","cpu_request_milli":1000}
{"op":"load","pod":"u1","container":"main","cpu_milli":3900}
{"op":"load","pod":"u2","container":"main","cpu_milli":0}
{"op":"clock","advance_s":15}
)";
constexpr const char* kRelaxed = R"({"op":"load","pod":"u1","container":"main","cpu_milli":100}
{"op":"clock","advance_s":15}
)";

class WidenedCommandsTest : public ToldStory {
 protected:
  void simulate(const std::string& story) {
    ToldStory::simulate("node:2(memory=64GB) core:4 pu:1", story,
                        fmt::format("[daemon]\nplugin-dir = {}\n[plugins]\nenable = numa\n[numa]\nshared-home = soft\n",
                                    TOPOLET_BUILT_PLUGINS));
  }
};

TEST_F(WidenedCommandsTest, SayWhatAContainerIsWidenedByAndWhy) {
  simulate(kPressed);
  EXPECT_THAT(said({"ps"}), AllOf(HasSubstr("BESIDE HOME"), HasSubstr("98 % of its home are used; numa: node 0 has")));
  EXPECT_EQ(answer({"ps"})[0]["widened_by"], "5-7");
  EXPECT_EQ(answer({"ps"})[0]["cpus"], "0-3,5-7");
  EXPECT_EQ(answer({"ps"})[1]["widened_by"], "");
  EXPECT_THAT(said({"explain", "busy"}),
              AllOf(HasSubstr("it may also run on CPUs 5-7 of node 1, which are to spare: 98 % of its home are used"),
                    HasSubstr("it may also run on CPUs 5-7, beside its home 0-3, until others need them"),
                    HasSubstr("node 0 has 4 of 4 shared CPUs uncommitted")));
  EXPECT_EQ(answer({"explain", "busy"})["widened_by"], "5-7");
  EXPECT_EQ(answer({"audit", "--event", "widened"}).size(), 1U);
}

TEST_F(WidenedCommandsTest, SayNothingOfItWhenItIsOver) {
  simulate(std::string(kPressed) + kRelaxed);
  EXPECT_EQ(answer({"ps"})[0]["widened_by"], "");
  EXPECT_EQ(answer({"ps"})[0]["cpus"], "0-3");
  EXPECT_THAT(said({"explain", "busy"}), Not(HasSubstr("beside its home 0-3")));
  EXPECT_EQ(answer({"audit", "--event", "narrowed"}).size(), 1U);
}

}  // namespace
}  // namespace topolet::testing
