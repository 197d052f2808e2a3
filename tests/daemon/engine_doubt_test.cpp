// Creates whose outcome nobody has told.
#include <gmock/gmock.h>

#include <chrono>
#include <string>
#include <vector>

#include "tests/daemon/core_rig.hpp"

namespace topolet::daemon {
namespace {

using testing::CoreRig;
using Fate = testing::ServedRuntime::Fate;

TEST(Engine, BindsACreateWhoseAnswerWasLost) {
  CoreRig rig;
  rig.runtime().next_create(Fate::kCreatedAnswerLost);
  std::string id;
  EXPECT_EQ(rig.create({.pod = "own", .cpus = 2}, id).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(rig.held("own"), "0-1");
  EXPECT_TRUE(CoreRig::eventually(
      [&] { return rig.query("SELECT state FROM current_placements") == std::vector<std::string>{"bound"}; }));
  EXPECT_EQ(rig.query("SELECT container_id FROM current_placements"), rig.runtime().ids());
  EXPECT_TRUE(rig.start_container(rig.runtime().ids().front()).ok());
}

TEST(Engine, FindsACreateWhoseAnswerWasLostWhenItIsStarted) {
  CoreRig rig;
  const std::string shared = rig.run({.pod = "shared"});
  rig.runtime().next_create(Fate::kCreatedAnswerLost);
  std::string id;
  EXPECT_FALSE(rig.create({.pod = "lost"}, id).ok());
  const std::string own = rig.run({.pod = "own", .cpus = 3});
  for (const std::string& made : rig.runtime().ids()) {
    if (made != own && made != shared) id = made;
  }
  EXPECT_TRUE(rig.start_container(id).ok());
  EXPECT_EQ(rig.runtime().row(id).ran_on.front(), "3") << "it never ran on the other's CPUs";
}

TEST(Engine, LetsARetryTakeOverWhatIsInDoubt) {
  CoreRig rig;
  rig.runtime().next_create(Fate::kNotCreatedAnswerLost);
  std::string id;
  EXPECT_FALSE(rig.create({.pod = "own", .cpus = 2}, id).ok());
  EXPECT_EQ(rig.held("own"), "0-1");
  EXPECT_TRUE(rig.create({.pod = "own", .cpus = 2}, id).ok());
  EXPECT_EQ(rig.runtime().row(id).cpus, "0-1");
  EXPECT_EQ(rig.query("SELECT count(*) FROM decided"), std::vector<std::string>{"1"});
}

TEST(Engine, DoesNotTakeARefusedRetryForAnAnswerToTheFirst) {
  CoreRig rig;
  rig.runtime().next_create(Fate::kNotCreatedAnswerLost);
  std::string id;
  EXPECT_FALSE(rig.create({.pod = "own", .cpus = 2}, id).ok());
  rig.runtime().next_create(Fate::kRefused);
  EXPECT_FALSE(rig.create({.pod = "own", .cpus = 2}, id).ok());
  EXPECT_EQ(rig.held("own"), "0-1") << "the first may yet be made";
}

TEST(Engine, ReleasesWhatStaysInDoubtTooLong) {
  CoreRig rig;
  rig.stop();
  rig.options.doubt_timeout = std::chrono::milliseconds(1);
  rig.start();
  rig.runtime().next_create(Fate::kNotCreatedAnswerLost);
  std::string id;
  EXPECT_FALSE(rig.create({.pod = "own", .cpus = 2}, id).ok());
  EXPECT_TRUE(CoreRig::eventually([&] { return rig.held("own").empty(); }));
  EXPECT_EQ(rig.query("SELECT cause FROM ended"), std::vector<std::string>{"pending-timeout"});
}

TEST(Engine, GivesUpOnARuntimeThatNeverAnswers) {
  CoreRig rig;
  rig.stop();
  rig.options.doubt_timeout = std::chrono::milliseconds(1);
  rig.start();
  rig.runtime().hold("CreateContainer");
  std::string id;
  const grpc::Status created = rig.create({.pod = "own", .cpus = 2}, id);
  EXPECT_EQ(created.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_THAT(created.error_message(), ::testing::HasSubstr("placement.pending-timeout"));
  EXPECT_TRUE(CoreRig::eventually([&] { return rig.held("own").empty(); }));
  rig.runtime().release();
}

}  // namespace
}  // namespace topolet::daemon
