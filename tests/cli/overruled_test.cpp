// How the commands tell of containers whose CPUs something else than topolet sets.
#include <fmt/format.h>
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

/// `own` has 0-1 alone, `other` 2, and `web` shares 3; another hand has `own` on 3, and `web` on 2.
constexpr const char* kOverruledStory = R"({"op":"run_pod","pod":"u1","name":"web","qos":"besteffort"}
{"op":"create","pod":"u1","container":"main"}
{"op":"run_pod","pod":"u2","name":"own","qos":"guaranteed"}
{"op":"create","pod":"u2","container":"main","cpu_request_milli":2000,"cpu_limit_milli":2000}
{"op":"run_pod","pod":"u3","name":"other","qos":"guaranteed"}
{"op":"create","pod":"u3","container":"main","cpu_request_milli":1000,"cpu_limit_milli":1000}
{"op":"cpuset","pod":"u2","container":"main","cpus":"3","again":true}
{"op":"cpuset","pod":"u1","container":"main","cpus":"2","again":true}
{"op":"clock","advance_s":20}
)";
constexpr const char* kOverruledEnds = R"({"op":"cpuset","pod":"u2","container":"main","cpus":""}
{"op":"cpuset","pod":"u1","container":"main","cpus":""}
{"op":"clock","advance_s":90}
)";

class OverruledTest : public ToldStory {
 protected:
  void simulate(const std::string& story) { ToldStory::simulate("numa:1 core:4 pu:1", story); }
  json placement_of(const std::string& pod) const {
    for (const json& row : answer({"ps"})) {
      if (row["pod"] == pod) return row;
    }
    return {};
  }
};

TEST_F(OverruledTest, IsNotCalledExclusive) {
  simulate(kOverruledStory);
  EXPECT_THAT(said({"ps"}), Not(HasSubstr("bound  exclusive")));
  EXPECT_EQ(placement_of("own")["mode"], "overruled");
  EXPECT_EQ(placement_of("own")["seen_on"], "3");
  EXPECT_NE(placement_of("own")["overruled_since"], "");
  EXPECT_EQ(placement_of("other")["mode"], "overlapped");
  EXPECT_EQ(placement_of("other")["overlapped"], "2");
  EXPECT_EQ(placement_of("web")["mode"], "shared");
  EXPECT_EQ(placement_of("web")["seen_on"], "2");
  const json node = answer({"nodes"})[0];
  EXPECT_EQ(node["exclusive"], 0);
  EXPECT_EQ(node["lost_exclusive"], 3);
  EXPECT_THAT(said({"nodes"}), HasSubstr("EXCLUSIVE LOST"));
  const json map = answer({"map"});
  EXPECT_EQ(map[0]["use"], "overruled");
  EXPECT_EQ(map[2]["use"], "overlapped");
  EXPECT_THAT(said({"map"}), AllOf(HasSubstr("[!] [!] [!] [.]"),
                                   HasSubstr("! default/own/main: 0-1, overruled: not exclusive now, seen on 3\n")));
  EXPECT_THAT(said({"explain", "own"}),
              AllOf(HasSubstr("something else than topolet sets its CPUs; it is not exclusive now"),
                    HasSubstr("seen on CPUs 3, where it should not be")));
  EXPECT_THAT(said({"explain", "other"}), HasSubstr("others were seen on CPUs 2; it is not exclusive now"));
}

TEST_F(OverruledTest, IsShownOnTheCpuWhereItRuns) {
  simulate(kOverruledStory);
  const json on_first = answer({"cpu", "0"});
  ASSERT_EQ(on_first.size(), 1U);
  EXPECT_EQ(on_first[0]["how"], "should run, is seen on 3");
  EXPECT_EQ(on_first[0]["mode"], "overruled");
  const json on_third = answer({"cpu", "2"});
  ASSERT_EQ(on_third.size(), 2U);
  EXPECT_EQ(on_third[0]["mode"], "overlapped");
  EXPECT_EQ(on_third[1]["pod"], "web");
  EXPECT_EQ(on_third[1]["how"], "is seen here, should be on 3");
}

TEST_F(OverruledTest, IsExclusiveAgainWhenThatIsOver) {
  simulate(std::string(kOverruledStory) + kOverruledEnds);
  for (const char* pod : {"own", "other"}) {
    EXPECT_EQ(placement_of(pod)["mode"], "exclusive");
    EXPECT_EQ(placement_of(pod)["overruled_since"], "");
  }
  EXPECT_EQ(answer({"nodes"})[0]["exclusive"], 3);
  EXPECT_THAT(said({"nodes"}), Not(HasSubstr("EXCLUSIVE LOST")));
  EXPECT_EQ(answer({"audit", "--event", "overruled"}).size(), 4U);
  EXPECT_THAT(said({"map"}), Not(HasSubstr("!")));
}

TEST(OverruledStatus, IsAsAlwaysWhereThereIsNone) {
  EXPECT_THAT(said_of_status({}), Not(HasSubstr("overruled")));
  EXPECT_EQ(json::parse(said_of_status({}, {"--json"}))["overruled"], json::array());
}

TEST(OverruledStatus, NamesTheContainersAndSaysWhatToDo) {
  control::v1::StatusResponse status;
  control::v1::Overruled& first = *status.add_overruled();
  first.set_container("fin/a/main");
  first.set_cpus("0-1");
  first.set_seen_on("3");
  first.set_lasts_ms(185'000);
  control::v1::Overruled& second = *status.add_overruled();
  second.set_container("fin/b/main");
  second.set_cpus("2");
  status.set_overruled_containers(2);
  EXPECT_THAT(said_of_status(status),
              HasSubstr("\noverruled    for 3 min something else has set the CPUs of fin/a/main; it runs on CPU 3 "
                        "instead of 0-1\n"
                        "             for 0 s something else has set the CPUs of fin/b/main; at the moment it is on "
                        "CPU 2, where it should be\n"
                        "             an NRI plugin or another agent does that: see `topolet audit --event "
                        "overruled`\nCPUs "));
  EXPECT_EQ(
      json::parse(said_of_status(status, {"--json"}))["overruled"][0],
      json({{"container", "fin/a/main"}, {"cpus", "0-1"}, {"seen_on", "3"}, {"plugin", ""}, {"lasts_ms", 185000}}));
}

}  // namespace
}  // namespace topolet::testing
