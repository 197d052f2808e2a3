// The effect of a pod's namespace on its annotations: through a whole life, from the wire to the runtime.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/daemon/core_rig.hpp"

namespace topolet::daemon {
namespace {

using testing::CoreRig;
using testing::CreateSpec;
using Fate = testing::ServedRuntime::Fate;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Map = std::map<std::string, std::string>;
using Namespaces = std::vector<std::string>;

constexpr const char* kReasonOfTheNewest = "SELECT reason FROM decided ORDER BY decision DESC LIMIT 1";
constexpr const char* kModesByPod = "SELECT mode FROM current_placements ORDER BY pod";
const Map kAsksForOwn = {{"topolet.io/cpus", "exclusive"}};

/// Four CPUs on two nodes.
class ExclusiveNamespaces : public ::testing::Test {
 protected:
  void restart_with(const Namespaces& patterns) {
    rig_.stop();
    rig_.rules.exclusive_namespaces = patterns;
    rig_.start();
    rig_.list();
  }
  std::string newest_reason() const { return rig_.query(kReasonOfTheNewest).at(0); }
  static CreateSpec small(const std::string& pod) { return {.pod = pod, .milli = 10, .pod_annotations = kAsksForOwn}; }

  CoreRig rig_;
};

TEST_F(ExclusiveNamespaces, AreNoneByDefaultSoThatASmallRequestSharesCpus) {
  rig_.run(small("tiny"));
  EXPECT_THAT(rig_.query(kModesByPod), ElementsAre("shared"));
  EXPECT_THAT(newest_reason(), HasSubstr("placement.exclusive-namespaces does not list its namespace"));
  rig_.run({.pod = "fraction", .milli = 1500, .annotations = kAsksForOwn});
  rig_.run({.pod = "named",
            .milli = 1500,
            .pod_annotations = {{"topolet.io/containers", R"({"main": {"topolet.io/cpus": "exclusive"}})"}}});
  EXPECT_THAT(rig_.query(kModesByPod), ElementsAre("shared", "shared", "shared"));
  rig_.run({.pod = "whole", .cpus = 2, .pod_annotations = kAsksForOwn});
  EXPECT_EQ(rig_.held("whole").size(), 3U) << "two CPUs of its own: " << rig_.held("whole");
  EXPECT_THAT(newest_reason(), Not(HasSubstr("exclusive-namespaces")));
}

TEST_F(ExclusiveNamespaces, HaveRequestsRoundedUp) {
  restart_with({"other", "*"});
  rig_.run(small("tiny"));
  EXPECT_THAT(rig_.query(kModesByPod), ElementsAre("exclusive"));
}

TEST_F(ExclusiveNamespaces, GiveCpusThatAreKeptApart) {
  rig_.isolated = CpuSet{3};
  restart_with({});
  rig_.run({.pod = "a", .cpus = 1, .pod_annotations = {{"topolet.io/isolated", "require"}}});
  EXPECT_EQ(rig_.held("a"), "0");
  EXPECT_THAT(newest_reason(),
              HasSubstr("annotation topolet.io/isolated is ignored: placement.exclusive-namespaces does not list"));
  restart_with({"*"});
  rig_.run({.pod = "b", .cpus = 1, .pod_annotations = {{"topolet.io/isolated", "require"}}});
  EXPECT_EQ(rig_.held("b"), "3");
}

TEST_F(ExclusiveNamespaces, CountWhenAContainerIsResizedToo) {
  const std::string id = rig_.run({.pod = "a", .cpus = 1, .pod_annotations = kAsksForOwn});
  EXPECT_TRUE(rig_.resize(id, 2000).ok());
  EXPECT_THAT(rig_.query(kModesByPod), ElementsAre("exclusive"));
  EXPECT_EQ(rig_.held("a").size(), 3U);
  EXPECT_TRUE(rig_.resize(id, 1500).ok());
  EXPECT_THAT(rig_.query(kModesByPod), ElementsAre("shared")) << "it may not have more than it requests";
  EXPECT_THAT(newest_reason(), HasSubstr("placement.exclusive-namespaces"));
}

TEST_F(ExclusiveNamespaces, AreThoseOfTheCreate) {
  restart_with({"*"});
  const std::string id = rig_.run({.pod = "a", .milli = 1500, .annotations = kAsksForOwn});
  restart_with({});
  EXPECT_THAT(rig_.query(kModesByPod), ElementsAre("exclusive")) << "what runs keeps what it has";
  EXPECT_TRUE(rig_.resize(id, 1600).ok());
  EXPECT_EQ(rig_.held("a"), "0-1");
  EXPECT_TRUE(rig_.stop_container(id).ok());
  rig_.run({.pod = "a", .attempt = 1, .milli = 1500, .annotations = kAsksForOwn});
  EXPECT_THAT(rig_.query(kModesByPod), ElementsAre("shared")) << "until it is created anew";
}

TEST_F(ExclusiveNamespaces, AreThoseOfTodayForACreateInDoubt) {
  restart_with({"*"});
  rig_.runtime().next_create(Fate::kNotCreatedAnswerLost);
  std::string id;
  EXPECT_FALSE(rig_.create(small("a"), id).ok());
  restart_with({});
  EXPECT_TRUE(rig_.create(small("a"), id).ok());
  EXPECT_THAT(rig_.query(kModesByPod), ElementsAre("shared"));
}

TEST_F(ExclusiveNamespaces, LeaveAContainerWhatItHasWhereTheDatabaseIsNew) {
  restart_with({"*"});
  rig_.run({.pod = "own", .milli = 1500, .annotations = kAsksForOwn});
  rig_.run({.pod = "other", .milli = 1500});
  rig_.stop();
  std::filesystem::remove_all(rig_.file("state"));
  rig_.rules.exclusive_namespaces = {};
  rig_.start();
  rig_.list();
  EXPECT_TRUE(CoreRig::eventually([&] { return rig_.query(kModesByPod).size() == 2; }));
  EXPECT_THAT(rig_.query(kModesByPod), ElementsAre("shared", "exclusive")) << "it has its CPUs to itself";
}

TEST_F(ExclusiveNamespaces, MakeNoSharedContainerExclusiveWhereTheDatabaseIsNew) {
  rig_.run({.pod = "pair", .cpus = 2});
  rig_.run({.pod = "own", .milli = 1500, .annotations = kAsksForOwn});
  rig_.run({.pod = "beside", .milli = 500});
  ASSERT_EQ(rig_.held("own"), "2-3");
  rig_.stop();
  std::filesystem::remove_all(rig_.file("state"));
  rig_.rules.min_shared_cpus = 0;
  rig_.start();
  rig_.list();
  EXPECT_TRUE(CoreRig::eventually([&] { return rig_.query(kModesByPod).size() == 3; }));
  EXPECT_THAT(rig_.query(kModesByPod), ElementsAre("shared", "shared", "exclusive"));
}

}  // namespace
}  // namespace topolet::daemon
