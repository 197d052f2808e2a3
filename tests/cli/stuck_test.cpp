// How the commands tell of containers that do not leave CPUs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/made_up_status.hpp"
#include "tests/cli/run_topolet.hpp"
#include "tests/cli/told_story.hpp"

namespace topolet::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// `dind` is stuck on 0-7, and `own`, which wants two of them, is denied for that.
constexpr const char* kStuckStory = R"({"op":"run_pod","pod":"u1","name":"dind","qos":"besteffort"}
{"op":"create","pod":"u1","container":"main"}
{"op":"stuck","pod":"u1","container":"main"}
{"op":"run_pod","pod":"u2","name":"own","qos":"guaranteed"}
{"op":"create","pod":"u2","container":"main","cpu_request_milli":2000,"cpu_limit_milli":2000}
)";
constexpr const char* kStuckEnds = R"({"op":"stuck","pod":"u1","container":"main","ends":true}
{"op":"clock","advance_s":700}
)";

class StuckCommandsTest : public ToldStory {
 protected:
  void simulate(const std::string& story) { ToldStory::simulate("numa:1 core:8 pu:1", story); }
};

TEST_F(StuckCommandsTest, SayWhoDoesNotLeaveAndWhatCanBeHadThen) {
  simulate(kStuckStory);
  EXPECT_THAT(said({"ps"}), HasSubstr("STUCK ON"));
  EXPECT_EQ(answer({"ps"})[0]["stuck_on"], "0-7");
  EXPECT_THAT(said({"explain", "dind"}), AllOf(HasSubstr("does not leave CPUs 0-7, which nobody else is given alone"),
                                               HasSubstr("device or resource busy")));
  const json node = answer({"nodes"})[0];
  EXPECT_EQ(node["pool"], 8);
  EXPECT_EQ(node["largest_exclusive"], 0);
  EXPECT_THAT(said({"audit", "--event", "stuck"}), HasSubstr("it does not leave CPUs 0-7"));
  EXPECT_THAT(said({"audit", "--event", "denied"}),
              HasSubstr("default/dind/main runs on CPUs 0-7 and cannot be moved"));
}

TEST_F(StuckCommandsTest, SayNothingOfItWhenItIsOver) {
  simulate(std::string(kStuckStory) + kStuckEnds);
  EXPECT_EQ(answer({"ps"})[0]["stuck_on"], "");
  EXPECT_EQ(answer({"nodes"})[0]["largest_exclusive"], 7);
  EXPECT_EQ(answer({"audit", "--event", "stuck"}).size(), 2U);
  EXPECT_THAT(said({"explain", "dind"}), Not(HasSubstr("does not leave CPUs 0-7, which")));
}

TEST(StuckStatus, NamesTheContainersAndSaysWhatTheRuntimeSays) {
  EXPECT_THAT(said_of_status({}), Not(HasSubstr("stuck")));
  control::v1::StatusResponse status;
  control::v1::Stuck& one = *status.add_stuck();
  one.set_container("fin/a/dind");
  one.set_cpus("0-3");
  one.set_why("device or resource busy");
  one.set_lasts_ms(180000);
  status.set_stuck_containers(1);
  EXPECT_THAT(said_of_status(status),
              HasSubstr("\nstuck        for 3 min fin/a/dind has not left CPUs 0-3, which nobody else is given alone: "
                        "device or resource busy\n"));
  EXPECT_EQ(
      json::parse(said_of_status(status, {"--json"}))["stuck"][0],
      (json{{"container", "fin/a/dind"}, {"cpus", "0-3"}, {"why", "device or resource busy"}, {"lasts_ms", 180000}}));
}

}  // namespace
}  // namespace topolet::testing
