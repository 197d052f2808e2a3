// How the commands tell of containers that run on CPUs which another one has exclusively.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/made_up_status.hpp"
#include "tests/cli/run_topolet.hpp"

namespace topolet::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

void add_overlap(control::v1::StatusResponse& status, const std::string& container, const std::string& cpus,
                 std::int64_t seen_for_ms) {
  control::v1::Overlap& overlap = *status.add_overlaps();
  overlap.set_container(container);
  overlap.set_owner("fin/b/main");
  overlap.set_cpus(cpus);
  overlap.set_seen_for_ms(seen_for_ms);
  status.set_overlapping_containers(status.overlapping_containers() + 1);
}

control::v1::StatusResponse status_with_overlaps(int count) {
  control::v1::StatusResponse status;
  for (int i = 0; i < count; ++i) add_overlap(status, fmt::format("fin/a-{}/main", i), "0", 100 - i);
  return status;
}

TEST(OverlapStatus, IsAsAlwaysWhereThereIsNone) {
  EXPECT_THAT(said_of_status({}), Not(HasSubstr("overlap")));
  const json none = json::parse(said_of_status({}, {"--json"}));
  EXPECT_EQ(none["overlapping_containers"], 0);
  EXPECT_EQ(none["overlaps"], json::array());
}

TEST(OverlapStatus, NamesBothContainersAndSaysWhatToDo) {
  control::v1::StatusResponse status;
  add_overlap(status, "fin/a/main", "0", 3999);
  add_overlap(status, "fin/\033c/main", "2-3", 40);
  EXPECT_THAT(
      said_of_status(status),
      HasSubstr("\noverlap      fin/a/main has been running for 3 s on CPU 0, which fin/b/main has exclusively; "
                "its CPUs are being set again\n"
                "             fin/\\x1bc/main has been running for 40 ms on CPUs 2-3, which fin/b/main has "
                "exclusively; its CPUs are being set again\n"
                "             `topolet audit --event overlap` lists when each began and ended\nCPUs "));
  const json told = json::parse(said_of_status(status, {"--json"}));
  EXPECT_EQ(told["overlapping_containers"], 2);
  EXPECT_EQ(told["overlaps"][0],
            json({{"container", "fin/a/main"}, {"owner", "fin/b/main"}, {"cpus", "0"}, {"seen_for_ms", 3999}}));
}

TEST(OverlapStatus, ListsTenAndCountsAllContainers) {
  EXPECT_THAT(said_of_status(status_with_overlaps(10)), AllOf(HasSubstr("fin/a-9/main"), Not(HasSubstr("and more"))));
  const control::v1::StatusResponse many = status_with_overlaps(12);
  EXPECT_THAT(said_of_status(many), AllOf(HasSubstr("fin/a-9/main"), Not(HasSubstr("fin/a-10/main")),
                                          HasSubstr("\n             and more: 12 containers in all\n")));
  EXPECT_EQ(json::parse(said_of_status(many, {"--json"}))["overlaps"].size(), 12U);
}

}  // namespace
}  // namespace topolet::testing
